# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""compressedDepth, read back by a decoder that follows compressed_depth_image_transport's."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from test.frames.messages.conftest import compressed_message
from uncertainty_depth.frames.messages.images import (
    FORMAT,
    MAX_VALUE,
    decode_depth,
    encode_compressed_depth,
)


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
    # half a step of the code on either side of 1 / v, and float32 in the codes
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
