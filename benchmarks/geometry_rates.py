# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure how often the check of the geometry detects a mistake, and how often it errs.

    python -m benchmarks.geometry_rates --recordings 8 --frames 8

Of each mistake the recordings that "does not fit / cannot tell / fits" was said of. Recordings are
of rendered worlds and, if the environment variable UNCERTAINTY_DEPTH_DATA names a folder with
kitti_raw/ and nyuv2/, parts of KITTI drives and of NYU Depth v2. As recorded, "does not fit" is a
false alarm.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import (
    BODY_TO_OPTICAL,
    parameters_from,
    transform_from,
)
from uncertainty_depth.core.records import Frame, Scan
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.geometry_check import CANNOT_TELL, DOES_NOT_FIT, FITS, GeometryCheck
from uncertainty_depth.stream.opening import open_source

FRAMES = 8  # of a recording, by default
RECORDINGS = 8  # of a set, at most, by default
STRIDE = 5  # NYU images from one that is looked at to the next: neighbours show one room
Mistake = Callable[[Frame], Frame]
PoseMistake = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def main() -> None:
    """Print the table: mistakes by sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=RECORDINGS, help="of a set, at most")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of a recording")
    arguments = parser.parse_args()
    count, frames = arguments.recordings, arguments.frames
    sets = {"rendered": synthetic_recordings(count, frames)}
    if folder := os.environ.get("UNCERTAINTY_DEPTH_DATA"):
        sets["KITTI"] = kitti_recordings(Path(folder) / "kitti_raw", count, frames)
        sets["NYU"] = nyu_recordings(Path(folder) / "nyuv2", count, frames)
    counts = {name: outcomes(recordings) for name, recordings in sets.items()}
    print(f"| geometry | {' | '.join(sets)} |")
    print("| --- |" + " ---: |" * len(sets))
    for mistake in MISTAKES:
        cells = [counts[name].get(mistake, "-") for name in sets]
        print(f"| {mistake} | {' | '.join(cells)} |")


def outcomes(recordings: Iterator[list[Frame]]) -> dict[str, str]:
    """Return the counts of the outcomes of each mistake that the frames allow."""
    counts: dict[str, Counter[str]] = {}
    for frames in recordings:
        for name, mistake in MISTAKES.items():
            if frames[0].scan is None and name not in WITHOUT_SCAN:
                continue
            counts.setdefault(name, Counter())[outcome_of(map(mistake, frames))] += 1
    order = (DOES_NOT_FIT, CANNOT_TELL, FITS)
    return {name: " / ".join(str(count[it]) for it in order) for name, count in counts.items()}


def outcome_of(frames: Iterator[Frame]) -> str:
    """Return what the check says after these frames."""
    check = GeometryCheck()
    for frame in frames:
        check.see(frame)
    return check.outcome


def synthetic_recordings(count: int, frames: int) -> Iterator[list[Frame]]:
    """Yield a recording of each of `count` worlds."""
    config = SynthesisConfig(
        worlds=count, frames=frames, seed=100, rate=1.0, width=480, height=360, rings=64
    )
    return recordings_of(SyntheticSource(config), frames, stride=1)


def kitti_recordings(folder: Path, count: int, frames: int) -> Iterator[list[Frame]]:
    """Yield recordings of the drives in turn, at most `count`."""
    drives = sorted(folder.glob("*/*_sync"))
    each = -(-count // max(len(drives), 1))
    recordings: list[list[Frame]] = []
    for drive in drives:
        source = open_source(f"kitti:{drive}", SourceConfig())
        recordings += islice(recordings_of(source, frames, stride=1), each)
    yield from recordings[:count]


def nyu_recordings(folder: Path, count: int, frames: int) -> Iterator[list[Frame]]:
    """Yield recordings of the test images, at most `count`."""
    source = open_source(f"nyu:{folder}:test", SourceConfig())
    return islice(recordings_of(source, frames, STRIDE), count)


def recordings_of(source: Source, count: int, stride: int) -> Iterator[list[Frame]]:
    """Yield `count` frames at a time, every `stride`-th of the source."""
    frames = (record for record in islice(source, 0, None, stride) if isinstance(record, Frame))
    while len(recording := list(islice(frames, count))) == count:
        yield recording


def with_pose(change: PoseMistake) -> Mistake:
    """Return the mistake of a wrong `lidar_to_camera`."""

    def mistake(frame: Frame) -> Frame:
        assert frame.scan is not None
        assert frame.camera is not None
        scan = Scan(frame.scan.points, change(frame.scan.lidar_to_camera))
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, frame.camera)
        return replace(frame, ground_truth_m=depth_m, scan=scan)

    return mistake


def turned(axis: str, degrees: float) -> Mistake:
    """Return the mistake of a camera turned about an axis of its optical frame."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return with_pose(lambda pose: turn @ pose)


def moved(right_m: float = 0.0, down_m: float = 0.0) -> Mistake:
    """Return the mistake of a LiDAR that is farther to the right, or lower, in metres."""
    shift = np.eye(4)
    shift[:2, 3] = right_m, down_m
    return with_pose(lambda pose: shift @ pose)


def mounted(axis: str, degrees: float) -> Mistake:
    """Return the mistake of a LiDAR turned about an axis of its own frame, z up."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return with_pose(lambda pose: pose @ turn)


def w_first(pose: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pose whose quaternion was given as w x y z and read as x y z w."""
    x, y, z, *vector, w = parameters_from(pose)
    return transform_from(x, y, z, w, *vector)


def depth_scaled(factor: float) -> Mistake:
    """Return the mistake of another unit of depth."""
    return lambda frame: replace(
        frame, ground_truth_m=frame.ground_truth_m * np.float32(factor), scan=None
    )


def depth_shifted(fraction: float) -> Mistake:
    """Return the mistake of a depth image that is shifted by a fraction of the image's width."""

    def mistake(frame: Frame) -> Frame:
        pixels = round(fraction * frame.ground_truth_m.shape[1])
        depth_m = np.roll(frame.ground_truth_m, pixels, axis=1)
        depth_m[:, :pixels] = np.nan
        return replace(frame, ground_truth_m=depth_m, scan=None)

    return mistake


def image_turned(rows: int, columns: int) -> Mistake:
    """Return the mistake of an image whose rows, or columns, are in reverse order: -1."""
    return lambda frame: replace(
        frame, image=np.ascontiguousarray(frame.need_image()[::rows, ::columns])
    )


AS_RECORDED = "as recorded (false alarms)"
MISTAKES: dict[str, Mistake] = {
    AS_RECORDED: lambda frame: frame,
    "camera turned by 1 degree (yaw)": turned("y", 1.0),
    "camera turned by 2 degrees (yaw)": turned("y", 2.0),
    "camera turned by 4 degrees (yaw)": turned("y", 4.0),
    "camera turned by 2 degrees (pitch)": turned("x", 2.0),
    "camera turned by 2 degrees (roll)": turned("z", 2.0),
    "LiDAR moved by 0.1 m to the right": moved(0.1),
    "LiDAR moved by 0.3 m to the right": moved(0.3),
    "LiDAR moved by 0.5 m to the right": moved(0.5),
    "LiDAR moved by 0.3 m down": moved(down_m=0.3),
    "LiDAR turned by 90 degrees": mounted("z", 90.0),
    "LiDAR turned by 180 degrees": mounted("z", 180.0),
    "LiDAR upside down": mounted("x", 180.0),
    "quaternion w x y z for x y z w": with_pose(w_first),
    "inverse transform": with_pose(np.linalg.inv),
    "transform applied twice": with_pose(lambda pose: pose @ pose),
    "body frame for optical frame": with_pose(lambda pose: BODY_TO_OPTICAL.T @ pose),
    "depth image shifted by 3 % of the width": depth_shifted(0.03),
    "image upside down": image_turned(-1, -1),
    "image mirrored left to right": image_turned(1, -1),
    "image mirrored top to bottom": image_turned(-1, 1),
    "millimetres for metres": depth_scaled(1000.0),
    "metres for millimetres": depth_scaled(0.001),
}
WITHOUT_SCAN = (AS_RECORDED, *list(MISTAKES)[-6:])


if __name__ == "__main__":
    main()
