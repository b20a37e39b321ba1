# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write 32FC1 images as compressed_depth_image_transport does: quantised inverse depth in a PNG.

A value v becomes `q = round(A / v + B)` of 16 bits, `A = z (z + 1)`, `B = 1 - A / MAX_VALUE`;
0 is NaN. The reader, `depth_images.decode_depth`, computes `v = A / (q - B)`. Source of the
format: `codec.cpp` of ros-perception/image_transport_plugins, which truncates where this rounds.
"""

from __future__ import annotations

import struct
from array import array

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import MessageError

FORMAT = "32FC1; compressedDepth png"
"""Of the `sensor_msgs/CompressedImage`."""
HEADER = struct.Struct("<iff")
"""ConfigHeader: the compression format, and A and B."""
INVERSE_DEPTH = 0
MAX_VALUE = 10_000.0
"""Greater values have no code, and become NaN. It takes nothing from the precision of others."""
MAX_CODE = 65535
PNG_LEVEL = 1
"""Of zlib: fast; higher levels are smaller and slower."""


def encode_compressed_depth(values: NDArray[np.float32], quantization: float) -> array[int]:
    """Return the data of a `sensor_msgs/CompressedImage` of format `FORMAT`.

    A value v is read back within `v^2 / (2 A)`, A = quantization (quantization + 1). Values below
    `A / MAX_CODE` are read back as that: a near obstacle does not vanish. NaN, infinity and
    negative values become NaN.

    Args:
        values: (H, W) depth or sigma, metres.
        quantization: the value at which neighbouring codes are 1 metre apart.

    Raises:
        MessageError: OpenCV cannot write the image.
    """
    scale = quantization * (quantization + 1)
    offset = 1 - scale / MAX_VALUE
    valid = (values >= 0) & (values < np.float32(MAX_VALUE))
    codes = np.zeros(values.shape, np.uint16)
    with np.errstate(divide="ignore"):
        inverse = np.rint(np.float32(scale) / values[valid] + np.float32(offset))
    codes[valid] = np.minimum(inverse, np.float32(MAX_CODE))
    succeeded, png = cv2.imencode(".png", codes, [cv2.IMWRITE_PNG_COMPRESSION, PNG_LEVEL])
    if not succeeded:
        shape = "x".join(map(str, values.shape[::-1]))
        raise MessageError("image_unencodable", f"a {shape} image cannot be written as PNG")
    data = array("B", HEADER.pack(INVERSE_DEPTH, scale, offset))
    data.frombytes(png.data)
    return data
