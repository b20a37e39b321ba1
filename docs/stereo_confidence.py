# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write drives of a simulated stereo camera with a LiDAR: depth, and a confidence of 0 to 1.

    python docs/stereo_confidence.py drive_a drive_b

The rooms and the LiDAR are those of `synthesize`. The disparity has Gaussian noise that is small
where the image has texture; the confidence tells of the texture alone, as that of a stereo matcher
does, not of the depth, with whose square the error grows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig, SynthesisConfig
from uncertainty_depth.records import Frame
from uncertainty_depth.synthetic.source import SyntheticSource
from uncertainty_depth.writers.bag_writer import BagWriter

TOPICS = ("/stereo/depth/image", "/stereo/confidence")
FIRST_SEED = 301
FRAMES = 16
BASELINE_M = 0.1
HALF_TEXTURE = 12.0  # gradient of the image, grey values a pixel, at a confidence of 0.5
MIN_NOISE_PX = 0.08
MAX_NOISE_PX = 0.8


def frames(seed: int) -> Iterator[tuple[Frame, NDArray[np.float32]]]:
    """Yield frames with a LiDAR scan, and the exact depth of their pixels."""
    options = {"worlds": 2, "frames": FRAMES // 2, "seed": seed, "rate": 2.0}
    scans = SyntheticSource(SynthesisConfig(**options), SourceConfig())
    exact = SyntheticSource(SynthesisConfig(**options, dense=True), SourceConfig())
    for scanned, dense in zip(scans, exact, strict=True):
        if isinstance(scanned, Frame) and isinstance(dense, Frame):
            yield scanned, dense.ground_truth_m


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
                pose = np.linalg.inv(frame.scan.lidar_to_camera)
                bag.static_transforms([("lidar", "camera", pose)])
            depth, confidence = stereo(frame, depth_m, random)
            stamp_ns = frame.stamp_ns
            bag.camera_info("/stereo/depth/camera_info", stamp_ns, "camera", frame.camera)
            bag.image(TOPICS[0], stamp_ns, "camera", depth)
            bag.image(TOPICS[1], stamp_ns, "camera", confidence)
            points = np.pad(frame.scan.points[:, :3], ((0, 0), (0, 1)))
            bag.cloud("/lidar/points", stamp_ns, "lidar", points)


if __name__ == "__main__":
    for number, name in enumerate(sys.argv[1:]):
        write_drive(Path(name), FIRST_SEED + number)
        print(f"bag written to {name}")
