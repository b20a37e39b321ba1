# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages whose bytes are no buffer of Python's, as a rosidl_buffer.Buffer of ROS 2 Lyrical."""

from array import array

import numpy as np
import pytest

from test.frames.messages.conftest import cloud_message, compressed_message, encoded, image_message
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.images import decode_depth, decode_image

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


@pytest.mark.parametrize("kind", [bytes, Buffer, Shared, OnDevice])
def test_images_and_clouds_are_read_whatever_holds_their_bytes(kind):
    np.testing.assert_array_equal(decode_image(image_message(PIXELS, "rgb8", kind=kind)), PIXELS)
    np.testing.assert_array_equal(
        decode_depth(image_message(DEPTH_M, "32FC1", kind=kind)), DEPTH_M
    )
    packed = compressed_message("png", kind(encoded(PIXELS[..., ::-1])))
    np.testing.assert_array_equal(decode_image(packed), PIXELS)
    np.testing.assert_array_equal(lidar_points(cloud_message(POINTS, kind=kind)), POINTS)


def test_a_view_is_taken_of_shared_memory_and_a_copy_is_told_once(caplog):
    shared = image_message(PIXELS, "rgb8", kind=Shared)
    assert np.shares_memory(decode_image(shared), shared.data.values)
    assert not caplog.records

    class Vendor(Buffer):
        backend_type = "npu"

    for _ in range(3):
        decode_image(image_message(PIXELS, "rgb8", kind=Vendor))
    (record,) = caplog.records
    assert "Vendor of npu" in record.getMessage()
    assert "are copied" in record.getMessage()
