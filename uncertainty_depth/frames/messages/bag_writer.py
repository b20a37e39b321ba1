# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a rosbag2 MCAP that ROS tools can play: images, camera info, clouds and transforms."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
)
from rosbags.interfaces import (
    QosTime as Time,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import parameters_from
from uncertainty_depth.core.output import NewFolder
from uncertainty_depth.frames.messages.camera_info import fields_from_camera
from uncertainty_depth.frames.messages.decoding import SECOND_NS

VERSION: Final = 8  # of rosbag2's metadata, understood by ROS 2 Iron and later
FOREVER = Time(9223372036, 854775807)
LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,  # late subscribers receive it too
    FOREVER,
    FOREVER,
    QosLiveliness.AUTOMATIC,
    FOREVER,
    False,
)
"""Quality of service for /tf_static."""
_MCAP_MAGIC_BYTES = 8
_MCAP_RECORD = struct.Struct("<BQ")  # kind, length
_MCAP_CHUNK = 0x06
_MCAP_DATA_END = 0x0F
_CHUNK_CHECKSUM = 24  # after its first and last time and its size
_CHUNK_DATA = _CHUNK_CHECKSUM + 4 + 4 + len("zstd") + 8  # after the compression's name and a size
_IMAGE_ENCODINGS = {("u1", 3): "rgb8", ("u1", 1): "mono8", ("u2", 1): "16UC1", ("f4", 1): "32FC1"}
_INTENSITY_POINT = np.dtype([(name, np.float32) for name in ("x", "y", "z", "intensity")])


@cache
def _types() -> Any:
    return get_typestore(Stores.ROS2_JAZZY)


def _new(message_type: str, *values: Any) -> Any:
    return _types().types[message_type](*values)


def _header(stamp_ns: int, frame_id: str) -> Any:
    return _new(
        "std_msgs/msg/Header",
        _new("builtin_interfaces/msg/Time", *divmod(stamp_ns, SECOND_NS)),
        frame_id,
    )


_Transform = tuple[str, str, NDArray[np.float64]]


def _transforms_message(stamp_ns: int, transforms: Iterable[_Transform]) -> Any:
    stamped = []
    for parent, child, pose in transforms:
        x, y, z, *quaternion = parameters_from(pose)
        transform = _new(
            "geometry_msgs/msg/Transform",
            _new("geometry_msgs/msg/Vector3", x, y, z),
            _new("geometry_msgs/msg/Quaternion", *quaternion),
        )
        header = _header(stamp_ns, parent)
        stamped.append(_new("geometry_msgs/msg/TransformStamped", header, child, transform))
    return _new("tf2_msgs/msg/TFMessage", stamped)


class BagWriter:
    """Context manager that writes a new rosbag2 folder: one MCAP file with zstd chunks.

    If left with an exception, it removes the unfinished folder.
    """

    def __init__(self, path: Path | str) -> None:
        """Raises `SourceError` if `path` exists: nothing is overwritten."""
        self.path = Path(path)
        NewFolder(self.path).check()
        self._writer = Writer(self.path, version=VERSION, storage_plugin=StoragePlugin.MCAP)
        self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self._topics: dict[str, Connection] = {}
        self._static_transforms: list[_Transform] = []

    def __enter__(self) -> BagWriter:
        self._writer.open()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is None:
            self._write_static_transforms(0)
            self._writer.close()
            for file in self.path.glob("*.mcap"):
                _add_checksums(file)
        else:
            self._writer.abort()
            for name in (f"{self.path.name}.mcap", "metadata.yaml"):
                (self.path / name).unlink(missing_ok=True)
            with suppress(OSError):  # others have put files into it
                self.path.rmdir()

    def image(self, topic: str, stamp_ns: int, frame_id: str, image: NDArray[Any]) -> None:
        """Write (H, W, 3) uint8 as rgb8; (H, W) as mono8, 16UC1 or, from floats, 32FC1."""
        pixels = np.ascontiguousarray(image, dtype=np.float32 if image.dtype.kind == "f" else None)
        encoding = _IMAGE_ENCODINGS[
            pixels.dtype.str[1:], pixels.shape[2] if pixels.ndim == 3 else 1
        ]
        height, width = pixels.shape[:2]
        data = pixels.reshape(-1).view(np.uint8)
        message_type = "sensor_msgs/msg/Image"
        header = _header(stamp_ns, frame_id)
        step = data.size // height
        self.message(
            topic, stamp_ns, _new(message_type, header, height, width, encoding, 0, step, data)
        )

    def camera_info(self, topic: str, stamp_ns: int, frame_id: str, camera: Camera) -> None:
        """Write the camera, without distortion if its images are rectified."""
        message_type = "sensor_msgs/msg/CameraInfo"
        header = _header(stamp_ns, frame_id)
        region = _new("sensor_msgs/msg/RegionOfInterest", 0, 0, 0, 0, False)
        fields = fields_from_camera(camera)
        self.message(topic, stamp_ns, _new(message_type, header, *fields, 0, 0, region))

    def cloud(self, topic: str, stamp_ns: int, frame_id: str, points: NDArray[Any]) -> None:
        """Write (N, 4) x y z intensity, metres, or structured float32 fields, (N,) or (H, W)."""
        if not points.dtype.names:
            points = np.ascontiguousarray(points, dtype=np.float32).view(_INTENSITY_POINT)[..., 0]
        rows = np.ascontiguousarray(np.atleast_2d(points))
        height, width = rows.shape
        layout: Mapping[str, Any] = rows.dtype.fields or {}
        fields = [
            _new("sensor_msgs/msg/PointField", name, field[1], 7, 1)
            for name, field in layout.items()
        ]
        data = rows.reshape(-1).view(np.uint8)
        step = rows.dtype.itemsize
        dense = bool(all(np.isfinite(rows[axis]).all() for axis in "xyz"))
        message_type = "sensor_msgs/msg/PointCloud2"
        header = _header(stamp_ns, frame_id)
        shape = (height, width, fields, False, step, step * width)
        self.message(topic, stamp_ns, _new(message_type, header, *shape, data, dense))

    def static_transforms(
        self, transforms: Iterable[tuple[str, str, NDArray[np.float64]]]
    ) -> None:
        """Write (parent, child, (4, 4) pose of child) to /tf_static, before the next message."""
        self._static_transforms += transforms

    def transform(self, stamp_ns: int, parent: str, child: str, pose: NDArray[np.float64]) -> None:
        """Write a child's (4, 4) pose in its parent at a time to /tf."""
        self.message("/tf", stamp_ns, _transforms_message(stamp_ns, [(parent, child, pose)]))

    def message(self, topic: str, stamp_ns: int, message: Any, latched: bool = False) -> None:
        """Write a message from rosbags' type store unchanged, recorded at `stamp_ns`.

        A topic's first message determines whether late subscribers get its last one.
        """
        message_type = message.__msgtype__
        data = _types().serialize_cdr(message, message_type)
        self.serialized(topic, stamp_ns, message_type, bytes(data), latched)

    def serialized(
        self, topic: str, stamp_ns: int, message_type: str, data: bytes, latched: bool = False
    ) -> None:
        """Write a message's bytes (CDR), recorded at `stamp_ns`."""
        self._write_static_transforms(stamp_ns)
        if topic not in self._topics:
            self._topics[topic] = self._writer.add_connection(
                topic,
                message_type,
                typestore=_types(),
                offered_qos_profiles=[LATCHED] if latched else [],
            )
        self._writer.write(self._topics[topic], stamp_ns, data)

    def _write_static_transforms(self, stamp_ns: int) -> None:
        waiting = self._static_transforms
        self._static_transforms = []
        if waiting:
            message = _transforms_message(stamp_ns, waiting)
            self.message("/tf_static", stamp_ns, message, latched=True)


def _add_checksums(path: Path) -> None:
    """Write each chunk's checksum, which rosbags leaves at 0: none."""
    with path.open("r+b") as file:
        kind = 0
        end = _MCAP_MAGIC_BYTES
        while kind != _MCAP_DATA_END:
            file.seek(end)
            kind, length = _MCAP_RECORD.unpack(file.read(_MCAP_RECORD.size))
            start = end + _MCAP_RECORD.size
            end = start + length
            if kind == _MCAP_CHUNK:
                content = zstd.decompress(file.read(length)[_CHUNK_DATA:])
                file.seek(start + _CHUNK_CHECKSUM)
                file.write(zlib.crc32(content).to_bytes(4, "little"))
