# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure how often the check of the geometry detects a mistake, and how often it errs.

    python -m benchmarks.geometry_rates --recordings 8

Recordings of `FRAMES` frames: synthetic worlds, and where the environment variable
UNCERTAINTY_DEPTH_DATA names a folder with kitti_raw/ and nyuv2/, parts of KITTI drives and of
NYU Depth v2. Each is checked as it is (a warning is a false alarm) and with each mistake.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from uncertainty_depth.config import LidarConfig, SourceConfig, SynthesisConfig
from uncertainty_depth.frames.source import Source, open_source
from uncertainty_depth.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.geometry.candidate_poses import BODY_TO_OPTICAL
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.records import Frame, Scan
from uncertainty_depth.synthetic.source import SyntheticSource

FRAMES = 8  # of a recording
RECORDINGS = 8  # of a set, at most, by default
STRIDE = 5  # NYU images from one that is looked at to the next: neighbours show one room
Mistake = Callable[[Frame], Frame]
PoseMistake = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def main() -> None:
    """Print the table: mistakes by sets, recordings with a warning of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=RECORDINGS, help="of a set, at most")
    count = parser.parse_args().recordings
    sets = {"synthetic": synthetic_recordings(count)}
    if folder := os.environ.get("UNCERTAINTY_DEPTH_DATA"):
        sets["KITTI"] = kitti_recordings(Path(folder) / "kitti_raw", count)
        sets["NYU"] = nyu_recordings(Path(folder) / "nyuv2", count)
    counts = {name: warning_counts(recordings) for name, recordings in sets.items()}
    print(f"| geometry | {' | '.join(sets)} |")
    print("| --- |" + " ---: |" * len(sets))
    for mistake in MISTAKES:
        cells = [counts[name].get(mistake, "-") for name in sets]
        print(f"| {mistake} | {' | '.join(cells)} |")


def warning_counts(recordings: Iterator[list[Frame]]) -> dict[str, str]:
    """Return "warned of all" recordings for each mistake that the frames allow."""
    warned: dict[str, list[bool]] = {}
    for frames in recordings:
        for name, mistake in MISTAKES.items():
            if frames[0].scan is None and name not in WITHOUT_SCAN:
                continue
            warned.setdefault(name, []).append(is_warned_of(map(mistake, frames)))
    return {name: f"{sum(results)} of {len(results)}" for name, results in warned.items()}


def is_warned_of(frames: Iterator[Frame]) -> bool:
    """Return whether the check warns of anything after these frames."""
    check = GeometryCheck()
    for frame in frames:
        check.update(frame.image, frame.ground_truth_m, frame.camera, frame.scan)
    return bool(check.warnings())


def synthetic_recordings(count: int) -> Iterator[list[Frame]]:
    """Yield a recording of each of `count` worlds."""
    config = SynthesisConfig(
        worlds=count, frames=FRAMES, seed=100, rate=1.0, width=480, height=360, rings=64
    )
    return recordings_of(SyntheticSource(config), stride=1)


def kitti_recordings(folder: Path, count: int) -> Iterator[list[Frame]]:
    """Yield recordings of the drives in turn, at most `count`."""
    drives = sorted(folder.glob("*/*_sync"))
    each = -(-count // max(len(drives), 1))
    recordings: list[list[Frame]] = []
    for drive in drives:
        source = open_source(f"kitti:{drive}", SourceConfig())
        recordings += islice(recordings_of(source, stride=1), each)
    yield from recordings[:count]


def nyu_recordings(folder: Path, count: int) -> Iterator[list[Frame]]:
    """Yield recordings of the test images, at most `count`."""
    source = open_source(f"nyu:{folder}:test", SourceConfig())
    return islice(recordings_of(source, STRIDE), count)


def recordings_of(source: Source, stride: int) -> Iterator[list[Frame]]:
    """Yield `FRAMES` frames at a time, every `stride`-th of the source."""
    frames = (record for record in islice(source, 0, None, stride) if isinstance(record, Frame))
    while len(recording := list(islice(frames, FRAMES))) == FRAMES:
        yield recording


def with_pose(change: PoseMistake) -> Mistake:
    """Return the mistake of a wrong `lidar_to_camera`."""

    def mistake(frame: Frame) -> Frame:
        assert frame.scan is not None
        assert frame.camera is not None
        scan = Scan(frame.scan.points, change(frame.scan.lidar_to_camera))
        depth_m = ground_truth_from_cloud(
            scan.points, scan.lidar_to_camera, frame.camera, LidarConfig()
        )
        return replace(frame, ground_truth_m=depth_m, scan=scan)

    return mistake


def turned(axis: str, degrees: float) -> Mistake:
    """Return the mistake of a camera turned about an axis of its optical frame."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return with_pose(lambda pose: turn @ pose)


def moved(right_m: float) -> Mistake:
    """Return the mistake of a LiDAR that is farther to the right by so many metres."""
    shift = np.eye(4)
    shift[0, 3] = right_m
    return with_pose(lambda pose: shift @ pose)


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


def image_upside_down(frame: Frame) -> Frame:
    """Return the frame with its image rotated by 180 degrees."""
    return replace(frame, image=np.ascontiguousarray(frame.image[::-1, ::-1]))


AS_RECORDED = "as recorded (false alarms)"
MISTAKES: dict[str, Mistake] = {
    AS_RECORDED: lambda frame: frame,
    "camera turned by 1 degree (yaw)": turned("y", 1.0),
    "camera turned by 2 degrees (yaw)": turned("y", 2.0),
    "camera turned by 4 degrees (yaw)": turned("y", 4.0),
    "camera turned by 2 degrees (pitch)": turned("x", 2.0),
    "camera turned by 2 degrees (roll)": turned("z", 2.0),
    "LiDAR moved by 0.3 m to the right": moved(0.3),
    "inverse transform": with_pose(np.linalg.inv),
    "transform applied twice": with_pose(lambda pose: pose @ pose),
    "body frame for optical frame": with_pose(lambda pose: BODY_TO_OPTICAL.T @ pose),
    "depth image shifted by 3 % of the width": depth_shifted(0.03),
    "image upside down": image_upside_down,
    "millimetres for metres": depth_scaled(1000.0),
    "metres for millimetres": depth_scaled(0.001),
}
WITHOUT_SCAN = (AS_RECORDED, *list(MISTAKES)[-4:])


if __name__ == "__main__":
    main()
