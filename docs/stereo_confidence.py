# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write drives of a simulated stereo camera with a LiDAR: depth, and a confidence of 0 to 1.

    python docs/stereo_confidence.py drive_a drive_b
    python docs/stereo_confidence.py --nyu NYU_DIR --mismatched 0.01 camera

The first writes bags of rendered rooms. The second shows photographs of NYU Depth v2 to the
camera and writes two folders for `predictions:DIR`, `camera/seen` and `camera/new`, of 36 frames
each; some pixels are mismatched: their depth has nothing to do with the scene.

The rooms and the LiDAR are those of `synthetic:`. The disparity has Gaussian noise that is small
where the image has texture; the confidence tells of the texture alone, as that of a stereo matcher
does, not of the depth, with whose square the error grows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from uncertainty_depth.core.config import SourceConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.nyu import NyuSource

TOPICS = ("/stereo/depth/image", "/stereo/confidence")
FIRST_SEED = 301
FRAMES = 16
NYU_FRAMES = 36
BASELINE_M = 0.1
HALF_TEXTURE = 12.0  # gradient of the image, grey values a pixel, at a confidence of 0.5
MIN_NOISE_PX = 0.08
MAX_NOISE_PX = 0.8


def frames(seed: int) -> Iterator[tuple[Frame, NDArray[np.float32]]]:
    """Yield frames with a LiDAR scan, and the exact depth of their pixels."""
    options: dict[str, Any] = {"worlds": 2, "frames": FRAMES // 2, "seed": seed, "rate": 2.0}
    scans = SyntheticSource(SynthesisConfig(**options), SourceConfig())
    exact = SyntheticSource(SynthesisConfig(**options, dense=True), SourceConfig())
    for scanned, dense in zip(scans, exact, strict=True):
        if isinstance(scanned, Frame) and isinstance(dense, Frame):
            yield scanned, dense.need_ground_truth()


def stereo(
    frame: Frame, depth_m: NDArray[np.float32], random: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the depth that a stereo camera measures, metres, and its confidence, (H, W) each."""
    assert frame.camera is not None
    grey = cv2.cvtColor(frame.image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    gradient = np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)) / 8
    texture = cv2.GaussianBlur(gradient, (0, 0), 2.0)
    confidence = texture / (texture + HALF_TEXTURE)
    noise_px = MIN_NOISE_PX + (MAX_NOISE_PX - MIN_NOISE_PX) * (1 - confidence) ** 2
    scale = BASELINE_M * frame.camera.intrinsics[0, 0]
    disparity = scale / depth_m + random.normal(0, noise_px)
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = np.where(disparity > 0.5, scale / disparity, np.nan)
    return measured.astype(np.float32), confidence.astype(np.float32)


def write_drive(path: Path, seed: int) -> None:
    """Write a bag of the topics `TOPICS`, their camera info, and `/lidar/points`."""
    random = np.random.default_rng(seed)
    with BagWriter(path) as bag:
        for index, (frame, depth_m) in enumerate(frames(seed)):
            assert frame.camera is not None
            assert frame.scan is not None
            if index == 0:
                pose = np.linalg.inv(frame.scan.lidar_to_camera).astype(np.float64)
                bag.static_transforms([("lidar", "camera", pose)])
            depth, confidence = stereo(frame, depth_m, random)
            stamp_ns = frame.stamp_ns
            bag.camera_info("/stereo/depth/camera_info", stamp_ns, "camera", frame.camera)
            bag.image(TOPICS[0], stamp_ns, "camera", depth)
            bag.image(TOPICS[1], stamp_ns, "camera", confidence)
            points = np.pad(frame.scan.points[:, :3], ((0, 0), (0, 1)))
            bag.cloud("/lidar/points", stamp_ns, "lidar", points)


def write_nyu(path: Path, nyu: Path, mismatched: float, seed: int) -> None:
    """Write folders of depth, confidence and ground truth of photographs.

    Args:
        path: of the two folders.
        nyu: folder of NYU Depth v2.
        mismatched: fraction of the pixels.
        seed: of the random numbers, and of the photographs that are taken.
    """
    source = NyuSource(nyu, "train")
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(source))[: 2 * NYU_FRAMES]
    place = {int(index): number for number, index in enumerate(chosen)}
    for index, frame in enumerate(source):
        if index not in place or not isinstance(frame, Frame):
            continue
        part = path / ("seen", "new")[place[index] % 2]
        truth_m = frame.need_ground_truth()
        depth, confidence = stereo(frame, truth_m, random)
        is_wrong = random.random(depth.shape) < mismatched
        depth[is_wrong] = random.uniform(0.4, 25, is_wrong.sum())
        maps = {"depth": depth, "confidence": confidence, "ground_truth": truth_m}
        for name, values in maps.items():
            (part / name).mkdir(parents=True, exist_ok=True)
            np.save(part / name / f"{frame.name}.npy", values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", nargs="+", type=Path)
    parser.add_argument("--nyu", type=Path, help="folder of NYU Depth v2, instead of rooms")
    parser.add_argument("--mismatched", type=float, default=0.0, help="fraction of the pixels")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for number, name in enumerate(arguments.output):
        if arguments.nyu:
            write_nyu(name, arguments.nyu, arguments.mismatched, arguments.seed + number)
        else:
            write_drive(name, FIRST_SEED + number)
        print(f"{name} written")
