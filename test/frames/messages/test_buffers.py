# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages whose bytes are no buffer of Python's, as a rosidl_buffer.Buffer of ROS 2 Lyrical."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.depth_images import decode_depth
from uncertainty_depth.frames.messages.images import decode_image

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
POINTS = np.random.default_rng(1).uniform(1, 5, (20, 3)).astype(np.float32)
DEPTH_M = np.random.default_rng(2).uniform(1, 5, (12, 16)).astype(np.float32)


class Buffer:
    """The interface of rosidl_buffer.Buffer: a length, and copies."""

    backend_type = "cuda"

    def __init__(self, data):
        self._data = bytes(data)

    def __len__(self):
        return len(self._data)

    def to_array(self):
        return array("B", self._data)


class Shared(Buffer):
    """One whose memory is the computer's, by DLPack."""

    backend_type = "shared"

    def __init__(self, data):
        self.values = np.frombuffer(bytearray(data), np.uint8)

    def __len__(self):
        return self.values.size

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def to_array(self):
        raise AssertionError("a view is enough")


class OnDevice(Buffer):
    """One that answers DLPack with memory that NumPy cannot read."""

    def __dlpack__(self, **options):
        raise BufferError("on cuda")

    def __dlpack_device__(self):
        return (2, 0)


def image(encoding, values, kind):
    height, width = values.shape[:2]
    step = values.nbytes // height
    data = kind(values.tobytes())
    return SimpleNamespace(
        height=height, width=width, encoding=encoding, step=step, is_bigendian=0, data=data
    )


@pytest.mark.parametrize("kind", [bytes, Buffer, Shared, OnDevice])
def test_images_and_clouds_are_read_whatever_holds_their_bytes(kind):
    np.testing.assert_array_equal(decode_image(image("rgb8", PIXELS, kind)), PIXELS)
    np.testing.assert_array_equal(decode_depth(image("32FC1", DEPTH_M, kind)), DEPTH_M)
    png = cv2.imencode(".png", PIXELS[..., ::-1])[1]
    packed = SimpleNamespace(format="png", data=kind(png.tobytes()))
    np.testing.assert_array_equal(decode_image(packed), PIXELS)
    fields = [
        SimpleNamespace(name=name, offset=4 * index, datatype=7, count=1)
        for index, name in enumerate("xyz")
    ]
    cloud = SimpleNamespace(
        height=1,
        width=len(POINTS),
        fields=fields,
        is_bigendian=False,
        point_step=12,
        row_step=POINTS.nbytes,
        data=kind(POINTS.tobytes()),
    )
    np.testing.assert_array_equal(lidar_points(cloud), POINTS)


def test_a_view_is_taken_of_shared_memory_and_a_copy_is_told_once(caplog):
    shared = image("rgb8", PIXELS, Shared)
    assert np.shares_memory(decode_image(shared), shared.data.values)
    assert not caplog.records

    class Vendor(Buffer):
        backend_type = "npu"

    for _ in range(3):
        decode_image(image("rgb8", PIXELS, Vendor))
    (record,) = caplog.records
    assert "Vendor of npu" in record.getMessage()
    assert "are copied" in record.getMessage()
