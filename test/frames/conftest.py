# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Small recordings that the tests make themselves."""

import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.frames.messages.bag_writer import BagWriter

_HEADER = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
ENORMOUS = b"\x89PNG\r\n\x1a\n\0\0\0\r" + _HEADER + struct.pack(">I", zlib.crc32(_HEADER))
"""A 33-byte PNG whose sound header says 900 million pixels."""
START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
CAMERA = Camera(32, 24, np.array([[20.0, 0, 15.5], [0, 20.0, 11.5], [0, 0, 1]]))
LIDAR_TO_CAMERA = transform_from(
    0.1, -0.2, 0.05, 0.5, -0.5, 0.5, 0.5
)  # x forward, z up, as a LiDAR; roughly level with the camera


def image_at(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 256, (24, 32, 3), dtype=np.uint8)


def points_at(index: int) -> np.ndarray:
    """(N, 4) points around the LiDAR, most of them in the camera's view."""
    rng = np.random.default_rng(1000 + index)
    ahead = rng.normal([4, 0, 0], [0.1, 1, 1], (300, 3))
    points = np.vstack([ahead, rng.normal(0, 5, (100, 3))])
    return np.hstack([points, rng.random((400, 1))]).astype(np.float32)


def write_frame(writer: BagWriter, index: int, leave_out: str = "") -> None:
    """Write camera info, image and cloud number `index` of the standard recording.

    What is in `leave_out` is not written.
    """
    stamp_ns = START_NS + index * PERIOD_NS
    if "info" not in leave_out:
        writer.camera_info("/camera/camera_info", stamp_ns, "camera", CAMERA)
    if "image" not in leave_out:
        writer.image("/camera/image", stamp_ns, "camera", image_at(index))
    if "cloud" not in leave_out:
        writer.cloud("/lidar/points", stamp_ns + 10_000_000, "lidar", points_at(index))


@contextmanager
def recording(path: Path, kind: type[BagWriter] = BagWriter) -> Iterator[BagWriter]:
    """Open a bag that has the LiDAR's pose in the camera already."""
    with kind(path) as writer:
        writer.static_transforms([("camera", "lidar", LIDAR_TO_CAMERA)])
        yield writer


@pytest.fixture
def write_bag(tmp_path) -> Callable[..., Path]:
    """Write the standard recording: base with camera and LiDAR on it, `frames` frames at 10 Hz."""

    def write(name: str = "bag", frames: int = 5, leave_out: str = "") -> Path:
        base_to_camera = transform_from(0.3, 0, 1, -0.5, 0.5, -0.5, 0.5)
        with BagWriter(tmp_path / name) as writer:
            if "transforms" not in leave_out:
                camera_in_base = base_to_camera
                lidar_in_base = base_to_camera @ LIDAR_TO_CAMERA
                writer.static_transforms(
                    [("base", "camera", camera_in_base), ("base", "lidar", lidar_in_base)]
                )
            for index in range(frames):
                write_frame(writer, index, leave_out)
        return tmp_path / name

    return write


TYPES = get_typestore(Stores.ROS2_JAZZY).types


def replace_file(target: Path, content: str | None) -> None:
    """Write a file anew; without content remove it, or the whole folder."""
    if content is not None:
        target.write_text(content)
    elif target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


def message_header(stamp_ns: int, frame_id: str) -> object:
    time = TYPES["builtin_interfaces/msg/Time"](*divmod(stamp_ns, 10**9))
    return TYPES["std_msgs/msg/Header"](time, frame_id)


def transform_message(
    stamp_ns: int, parent: str, child: str, xyz: Iterable[float], quaternion: Iterable[float]
) -> object:
    """Make a TFMessage of one transform: where `child` is in `parent` at `stamp_ns`."""
    translation = TYPES["geometry_msgs/msg/Vector3"](*xyz)
    rotation = TYPES["geometry_msgs/msg/Quaternion"](*quaternion)
    transform = TYPES["geometry_msgs/msg/Transform"](translation, rotation)
    header = message_header(stamp_ns, parent)
    stamped = TYPES["geometry_msgs/msg/TransformStamped"](header, child, transform)
    return TYPES["tf2_msgs/msg/TFMessage"]([stamped])


def pose_message(stamp_ns: int, parent: str, child: str, pose: np.ndarray) -> object:
    x, y, z, *quaternion = parameters_from(pose)
    return transform_message(stamp_ns, parent, child, (x, y, z), quaternion)


@pytest.fixture(scope="session")
def kitti_drive() -> Path:
    drives = sorted((_real_data() / "kitti_raw").glob("*/*_sync"))
    if not drives:
        pytest.skip("no KITTI drive under UNCERTAINTY_DEPTH_DATA/kitti_raw")
    return drives[0]


@pytest.fixture(scope="session")
def nyu_folder() -> Path:
    if not (folder := _real_data() / "nyuv2").is_dir():
        pytest.skip("no folder nyuv2 under UNCERTAINTY_DEPTH_DATA")
    return folder


def _real_data() -> Path:
    if not (folder := os.environ.get("UNCERTAINTY_DEPTH_DATA")):
        pytest.skip("UNCERTAINTY_DEPTH_DATA does not name the folder of real sensor data")
    return Path(folder)
