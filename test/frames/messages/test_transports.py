# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What image_transport's plugins publish is the image that they were given.

The encoders and the decoder here are naive ones, after ros-perception/image_transport_plugins.
"""

import gzip
import io
import struct
import zlib
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from test.conftest import refused
from test.frames.messages.conftest import compressed_message, encoded, image_message
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.frames.messages.images import (
    FORMAT,
    MAX_VALUE,
    decode_depth,
    decode_image,
    encode_compressed_depth,
)
from uncertainty_depth.frames.recording import Topic
from uncertainty_depth.frames.topics import TopicChooser

RANDOM = np.random.default_rng(0)
SMOOTH = cv2.GaussianBlur(RANDOM.integers(0, 256, (24, 32, 3), np.uint8), (0, 0), 2)
MILLIMETRES = RANDOM.integers(500, 9000, (24, 32)).astype(np.uint16)
MILLIMETRES[:3] = 0


def mosaic(pattern: str, dtype: type) -> np.ndarray:
    """What a sensor behind a Bayer filter sees of `SMOOTH`."""
    values = np.empty(SMOOTH.shape[:2], dtype)
    for place, colour in enumerate(pattern):
        part = np.s_[place // 2 :: 2, place % 2 :: 2]
        values[part] = SMOOTH[..., "rgb".index(colour)][part]
    return values if dtype == np.uint8 else values * 257


@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
@pytest.mark.parametrize(
    ("bits", "codec", "suffix", "loss"),
    [(8, "jpeg", ".jpg", 6), (8, "png", ".png", 0), (16, "png", ".png", 0)],
)
def test_a_compressed_mosaic_becomes_colours_as_a_raw_one_does(pattern, bits, codec, suffix, loss):
    values = mosaic(pattern, np.uint8 if bits == 8 else np.uint16)
    expected = decode_image(image_message(values, f"bayer_{pattern}{bits}")).astype(int)
    message = compressed_message(
        f"bayer_{pattern}{bits}; {codec} compressed ", encoded(values, suffix)
    )
    assert np.ptp(expected, axis=2).max() > 20
    assert_allclose(decode_image(message), expected, atol=loss)


def test_a_mosaic_that_was_compressed_as_grey_or_as_colours_is_none_any_more():
    """Newer plugins convert a mosaic first: "compressed mono8"; other drivers to colours."""
    grey = cv2.cvtColor(SMOOTH, cv2.COLOR_RGB2GRAY)
    message = compressed_message("bayer_rggb8; jpeg compressed mono8", encoded(grey))
    assert_array_equal(decode_image(message), np.repeat(grey[..., None], 3, axis=2))
    message = compressed_message("bayer_rggb8; jpeg compressed bgr8", encoded(SMOOTH[..., ::-1]))
    assert_array_equal(decode_image(message), SMOOTH)


@pytest.mark.parametrize(
    ("text", "is_bgr"),
    [
        ("png", True),
        ("jpeg", True),
        ("", True),
        ("rgb8; png compressed bgr8", True),
        ("bgr8; jpeg compressed bgr8", True),
        ("rgba8; png compressed bgra8", True),
        ("yuv422; png compressed bgr8", True),
        ("mono8; png compressed ", True),
        ("rgb8; png compressed rgb8", False),  # as the plugin wrote PNG before 2020
        ("bgr8; png compressed rgb8", False),
        ("rgb8; png compressed ", False),
        ("rgb8; png", False),
    ],
)
def test_red_is_where_image_transport_has_it(text, is_bgr):
    pixels = SMOOTH[..., ::-1] if is_bgr else SMOOTH
    assert_array_equal(decode_image(compressed_message(text, encoded(pixels))), SMOOTH)


def test_sixteen_bits_of_one_channel_under_png_are_depth_and_no_camera_image():
    """As cv_bridge writes it, which names the codec alone."""
    message = compressed_message("png", encoded(MILLIMETRES))
    expected = np.where(MILLIMETRES == 0, np.nan, MILLIMETRES / np.float32(1000))
    assert_allclose(decode_depth(message), expected, rtol=1e-6)
    with pytest.raises(MessageError, match="holds depth and is no camera image"):
        decode_image(message)
    for values in (SMOOTH, SMOOTH[..., 0], SMOOTH.astype(np.uint16)):
        assert decode_image(compressed_message("png", encoded(values))).shape == SMOOTH.shape
        with refused("image_unknown_encoding"):
            decode_depth(compressed_message("png", encoded(values)))


def rvl(values: np.ndarray) -> bytes:
    """Wilson's code, number by number."""
    nibbles: list[int] = []

    def write(number: int) -> None:
        while True:
            nibble = number & 7
            number >>= 3
            nibbles.append(nibble | (8 if number else 0))
            if not number:
                return

    flat = values.reshape(-1).tolist()
    position = previous = 0
    while position < len(flat):
        start = position
        while position < len(flat) and flat[position] == 0:
            position += 1
        write(position - start)
        start = position
        while position < len(flat) and flat[position] != 0:
            position += 1
        write(position - start)
        for value in flat[start:position]:
            difference = value - previous
            write((difference << 1) ^ (difference >> 31))
            previous = value
    nibbles += [0] * (-len(nibbles) % 8)
    words = [
        int("".join(f"{nibble:x}" for nibble in nibbles[place : place + 8]), 16)
        for place in range(0, len(nibbles), 8)
    ]
    height, width = values.shape
    return struct.pack(f"<II{len(words)}I", width, height, *words)


@given(
    arrays(
        np.uint16,
        st.tuples(st.integers(1, 9), st.integers(1, 9)),
        elements=st.one_of(st.just(0), st.integers(0, 65535)),
    )
)
def test_rvl_is_read_back_bit_for_bit(values):
    depth_m = decode_depth(
        compressed_message("16UC1; compressedDepth rvl", bytes(12) + rvl(values))
    )
    known = (values > 0) & (values < 65535)
    assert_array_equal(np.isnan(depth_m), ~known)
    assert_array_equal(depth_m[known], values[known] / np.float32(1000))


def test_rvl_of_quantised_inverse_depth_is_read_as_its_png():
    header = struct.pack("<iff", 0, 100.0, 0.5)
    by_png = decode_depth(
        compressed_message("32FC1; compressedDepth png", header + encoded(MILLIMETRES))
    )
    by_rvl = decode_depth(
        compressed_message("32FC1; compressedDepth rvl", header + rvl(MILLIMETRES))
    )
    assert np.isfinite(by_png).any()
    assert_array_equal(by_rvl, by_png)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "image_undecodable"),
        (struct.pack("<II", 30_000, 30_000), "image_too_large"),
        (struct.pack("<II", 0, 5), "image_zero_size"),
        (struct.pack("<II", 5, 5), "image_undecodable"),
        (struct.pack("<III", 5, 5, 0xFFFFFFFF), "image_undecodable"),  # a number without an end
        (struct.pack("<III", 5, 5, 0x00000000), "image_undecodable"),  # runs of none
        (struct.pack("<III", 1, 1, 0x20000000), "image_undecodable"),  # more than there are
        (rvl(MILLIMETRES)[:-40], "image_undecodable"),
    ],
)
def test_a_damaged_rvl_is_refused(data, reason):
    with refused(reason):
        decode_depth(compressed_message("16UC1; compressedDepth rvl", bytes(12) + data))


def zstd(image: SimpleNamespace, pack=gzip.compress) -> SimpleNamespace:
    """zstd_image_transport's, which is zlib's gzip."""
    sizes = (image.height, image.width, image.is_bigendian, image.step, len(image.encoding))
    head = struct.pack("<IIBII", *sizes) + image.encoding.encode()
    return compressed_message("zstd", head + pack(image.data))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_zstd_holds_the_raw_image(pack):
    for encoding, values in (("rgb8", SMOOTH), ("bayer_rggb8", SMOOTH[..., 0])):
        image = image_message(values, encoding)
        assert_array_equal(decode_image(zstd(image, pack)), decode_image(image))
    for encoding, values in (("16UC1", MILLIMETRES), ("32FC1", MILLIMETRES / np.float32(1000))):
        image = image_message(values, encoding)
        assert_array_equal(decode_depth(zstd(image, pack)), decode_depth(image))


def test_zstd_is_inflated_no_further_than_its_size():
    image = image_message(SMOOTH, "rgb8")
    image.data += bytes(10_000_000)
    assert_array_equal(decode_image(zstd(image)), SMOOTH)
    image.height = image.width = 30_000
    with refused("image_too_large"):
        decode_image(zstd(image))


COLOUR = image_message(SMOOTH, "rgb8")
DEPTH = image_message(MILLIMETRES, "16UC1")
PNG = encoded(MILLIMETRES)
TRANSPORTED = {
    "/camera/image /camera/depth": (COLOUR, DEPTH),
    "/camera/image/zstd /camera/depth/zstd": (zstd(COLOUR), zstd(DEPTH)),
    "/camera/image/compressed /camera/depth/compressed": (
        compressed_message("rgb8; jpeg compressed bgr8", encoded(SMOOTH, ".jpg")),
        compressed_message("png", PNG),
    ),
    "/camera/image /camera/depth/compressedDepth": (
        COLOUR,
        compressed_message("16UC1; compressedDepth png", bytes(12) + PNG),
    ),
}


@pytest.mark.parametrize("names", TRANSPORTED)
def test_a_recording_of_any_transport_has_one_camera_and_one_depth_image(names):
    """Depth and colour are told apart by what they hold, whatever the transport."""
    messages = dict(zip(names.split(), TRANSPORTED[names], strict=True))
    topics = {
        name: Topic(f"sensor_msgs/msg/{'Image' if hasattr(it, 'step') else 'CompressedImage'}", 3)
        for name, it in messages.items()
    }
    chosen = TopicChooser("bag", topics, SourceConfig(), messages.get).choose()
    assert [chosen.image, chosen.depth_image] == list(messages)


def test_clouds_of_a_transport_that_is_not_read_are_explained():
    topics = {
        "/camera/image": Topic("sensor_msgs/msg/Image", 3),
        "/lidar/zstd": Topic("point_cloud_interfaces/msg/CompressedPointCloud2", 3),
    }
    chooser = TopicChooser("bag", topics, SourceConfig(), lambda _: image_message(SMOOTH, "rgb8"))
    with pytest.raises(SourceError, match="/lidar/zstd can be read once they are raw"):
        chooser.choose()


def independent_decode(data):
    """`decodeCompressedDepthImage` of codec.cpp in plain Python; the PNG is read by Pillow."""
    kind, scale, offset = struct.unpack("<iff", data[:12])
    assert kind == 0  # INV_DEPTH
    codes = np.array(Image.open(io.BytesIO(data[12:])), dtype=np.int64)
    depth = np.full(codes.shape, np.nan)
    for place, code in np.ndenumerate(codes):
        if code:
            depth[place] = scale / (code - offset)
    return depth


@pytest.mark.parametrize(
    ("quantization", "low", "high"), [(100.0, 0.2, 120.0), (10.0, 0.002, 20.0), (1.0, 0.01, 3.0)]
)
def test_values_are_read_back_within_half_a_step(quantization, low, high):
    values = np.geomspace(low, high, 600).astype(np.float32).reshape(20, 30)
    data = bytes(encode_compressed_depth(values, quantization))
    decoded = independent_decode(data)
    # half a code's step on either side of 1 / v, and float32 in the codes
    half = 0.5 * values.astype(np.float64) ** 2 / (quantization * (quantization + 1))
    bound = half / (1 - half / values) + 2e-6 * values
    assert (np.abs(decoded - values) <= bound).all()
    assert np.abs(decoded - values).max() > 0


def test_what_is_unknown_stays_unknown_and_what_is_near_stays_near():
    scale = 100.0 * 101.0
    nearest = scale / (65535 - (1 - scale / MAX_VALUE))
    values = np.array(
        [[np.nan, np.inf, -np.inf, -1, MAX_VALUE, 0, nearest / 2, nearest]], np.float32
    )
    decoded = independent_decode(bytes(encode_compressed_depth(values, 100.0)))[0]
    assert np.isnan(decoded[:5]).all()
    np.testing.assert_allclose(decoded[5:], nearest, rtol=1e-4)
    assert nearest == pytest.approx(0.154, abs=1e-3)


def test_the_package_reads_what_it_writes():
    random = np.random.default_rng(0)
    values = random.uniform(0.3, 60, (12, 16)).astype(np.float32)
    values[3, 4] = np.nan
    data = encode_compressed_depth(values, 100.0)
    found = decode_depth(compressed_message(FORMAT, data))
    np.testing.assert_allclose(found, independent_decode(bytes(data)), rtol=1e-5)
