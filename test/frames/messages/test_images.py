# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Image messages in every encoding, padded and big-endian, through each back end.

The messages are those of rosbags and of rclpy, and those whose bytes are no buffer of Python's,
as a rosidl_buffer.Buffer of ROS 2 Lyrical.
"""

import sys
from array import array
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from test.conftest import refused
from test.frames.messages.conftest import cloud_message, compressed_message, encoded, image_message
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages import images
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.images import (
    COLOR_ENCODINGS,
    PLANAR,
    decode_depth,
    decode_image,
)

HEIGHT = 6
WIDTH = 8
BAYER = ("RGGB", "BGGR", "GBRG", "GRBG")


def random_pixels(encoding: str, seed: int = 0) -> np.ndarray:
    size, channels, _ = COLOR_ENCODINGS[encoding]
    shape = (HEIGHT, WIDTH) if channels == 1 else (HEIGHT, WIDTH, channels)
    return np.random.default_rng(seed).integers(0, 256**size, shape).astype(f"u{size}")


def expected_rgb(pixels: np.ndarray, encoding: str) -> np.ndarray:
    """What OpenCV makes from it, by what the names mean in sensor_msgs/image_encodings.hpp."""
    if pixels.dtype.itemsize == 2:
        pixels = np.rint(pixels / 257).astype(np.uint8)
    codes = {
        **{f"bayer_{name.lower()}8": getattr(cv2, f"COLOR_Bayer{name}2RGB") for name in BAYER},
        "yuv422": cv2.COLOR_YUV2RGB_UYVY,
        "yuv422_yuy2": cv2.COLOR_YUV2RGB_YUYV,
    }
    eight_bits = encoding.replace("16", "8")
    same = {"8UC1": "mono8", "8UC3": "bgr8", "8UC4": "bgra8"}
    same |= {"uyvy": "yuv422", "yuyv": "yuv422_yuy2"}
    name = same.get(encoding, eight_bits)
    if name in codes:
        return cv2.cvtColor(pixels, codes[name])
    order = {"mono": [0, 0, 0], "rgb": [0, 1, 2], "bgr": [2, 1, 0]}[name.rstrip("a8")]
    return np.atleast_3d(pixels)[..., order]


@pytest.mark.parametrize("encoding", [name for name in COLOR_ENCODINGS if name not in PLANAR])
def test_every_encoding_gives_rgb(encoding):
    pixels = random_pixels(encoding)
    for big_endian in (False, True):
        rgb = decode_image(image_message(pixels, encoding, 5, big_endian))
        assert rgb.dtype == np.uint8
        assert_array_equal(rgb, expected_rgb(pixels, encoding))


def test_all_values_of_mono16_round_to_the_nearest_of_8_bits():
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    assert_array_equal(
        decode_image(image_message(values, "mono16"))[..., 1], np.rint(values / 257.0)
    )


@pytest.mark.parametrize("decode", [decode_image, decode_depth])
@pytest.mark.parametrize(
    ("changes", "reason", "sentence"),
    [
        ({"height": 0, "data": b""}, "image_zero_size", "8x0 pixels"),
        ({"width": 0}, "image_zero_size", "0x6 pixels"),
        ({"step": 15}, "image_wrong_step", "step 15; expected at least 16 for 8 pixels"),
        ({"step": 0}, "image_wrong_step", "step 0"),
        ({"step": 17}, "image_short_data", "has 96 bytes; expected 102, height 6 times step 17"),
        ({"data": b""}, "image_short_data", "has 0 bytes"),
        ({"encoding": "rgb9"}, "image_unknown_encoding", "'rgb9'; expected one of"),
        ({"encoding": ""}, "image_unknown_encoding", "encoding ''"),
    ],
)
def test_messages_that_contradict_themselves_are_refused(decode, changes, reason, sentence):
    sound = image_message(random_pixels("mono16"), "mono16")
    with refused(reason, sentence):
        decode(SimpleNamespace(**{**vars(sound), **changes}))


@pytest.mark.parametrize("pixels", [np.zeros((2, 2), np.uint16), np.zeros((2, 2), np.float32)])
def test_a_depth_image_is_no_camera_image(pixels):
    encoding = "16UC1" if pixels.dtype == np.uint16 else "32FC1"
    with refused("image_unknown_encoding", "holds depth and is no camera image"):
        decode_image(image_message(pixels, encoding))


def test_an_odd_number_of_yuv422_columns_is_refused_whatever_opencv_makes_of_it():
    odd = image_message(np.zeros((4, 5, 2), np.uint8), "yuv422")
    with refused("image_undecodable", "has width 5; expected an even number"):
        decode_image(odd)


def smooth_image() -> np.ndarray:
    ramp = np.linspace(40, 200, 32)
    return np.stack(
        [np.tile(ramp, (24, 1)), np.tile(ramp[:24, None], (1, 32)), np.full((24, 32), 90.0)],
        axis=-1,
    ).astype(np.uint8)


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_compressed_images_are_rgb_grey_and_transparent_ones_too(suffix):
    rgb = smooth_image()
    grey = rgb[..., 0]
    for image, expected in ((rgb[..., ::-1], rgb), (grey, np.dstack([grey] * 3))):
        decoded = decode_image(compressed_message(suffix, encoded(image, f".{suffix}"))).astype(
            int
        )
        assert decoded.shape == (24, 32, 3)
        assert np.abs(decoded - expected).mean() < (3 if suffix == "jpg" else 1e-9)
    alpha = np.dstack([rgb[..., ::-1], np.full((24, 32), 128, np.uint8)])
    assert_array_equal(decode_image(compressed_message("png", encoded(alpha))), rgb)


@pytest.mark.parametrize("data", [b"", b"no image", b"\xff\xd8\xff\xe0"])
def test_undecodable_compressed_images_are_refused(data):
    with refused("image_undecodable", "format 'jpeg'"):
        decode_image(compressed_message("jpeg", data))


BRIDGE = """
import ctypes

import cv2


class CvBridge:
    def imgmsg_to_cv2(self, message, encoding):
        assert (message.encoding, encoding) == ("bgr8", "rgb8")
        {}
        import numpy as np
        pixels = np.frombuffer(bytes(message.data), np.uint8)
        return pixels.reshape(message.height, message.width, 3)[..., ::-1]
"""


@pytest.mark.parametrize("works", [True, False])
def test_a_cv_bridge_is_used_unless_it_ends_the_process(works, tmp_path, monkeypatch):
    """One built for another NumPy: it is imported, and the first image is a segmentation fault."""
    pytest.importorskip("sensor_msgs", reason="ROS 2 is not installed")
    (tmp_path / "cv_bridge" / "boost").mkdir(parents=True)
    text = BRIDGE.format("" if works else "ctypes.string_at(0)")
    (tmp_path / "cv_bridge" / "__init__.py").write_text(text)
    (tmp_path / "cv_bridge" / "boost" / "cv_bridge_boost.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    images.has_cv_bridge.cache_clear()
    try:
        assert images.has_cv_bridge() == works
        pixels = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
        assert_array_equal(decode_image(image_message(pixels, "bgr8", 3)), pixels[..., ::-1])
        assert ("cv_bridge" in sys.modules) == works
    finally:
        images.has_cv_bridge.cache_clear()
        sys.modules.pop("cv_bridge", None)


@pytest.mark.parametrize("encoding", ["nv12", "nv21"])
def test_brightness_and_colour_in_two_planes_are_rgb(encoding):
    """Both orders of the colours, by a gray and by a red image, with padded rows."""
    yuv = {"gray": (128, 128, 128), "red": (81, 90, 240)}  # BT.601
    for name, (brightness, blue, red) in yuv.items():
        planes = np.full((6 * 3 // 2, 8), 7, np.uint8)
        planes[:6] = brightness
        planes[6:, 0::2], planes[6:, 1::2] = (blue, red) if encoding == "nv12" else (red, blue)
        image = image_message(planes, encoding, padding=2)
        image.height = 6
        rgb = decode_image(image)
        assert rgb.shape == (6, 8, 3)
        expected = (130, 130, 130) if name == "gray" else (254, 0, 0)
        assert np.abs(rgb.astype(int) - expected).max() <= 2, name
        image.data = image.data[:-1]
        with pytest.raises(MessageError, match="expected 90, 3/2 height 6 times step 10"):
            decode_image(image)


PIXELS = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
POINTS = np.random.default_rng(1).uniform(1, 5, (20, 3)).astype(np.float32)
DEPTH_M = np.random.default_rng(2).uniform(1, 5, (12, 16)).astype(np.float32)


class Buffer:
    """rosidl_buffer.Buffer's interface: a length, and copies."""

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
