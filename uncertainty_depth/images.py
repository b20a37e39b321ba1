# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whatever holds an image, as an array: image files, PIL images."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import MAX_PIXELS
from uncertainty_depth.errors import MessageError, SourceError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PHOTO_PIXELS = 8 * MAX_PIXELS
"""Of a file that a user names: telephones take up to 108 million."""
ImageLike = Union[NDArray[np.uint8], "Image", "os.PathLike[str]", str]


def as_rgb(image: ImageLike) -> NDArray[np.uint8]:
    """Return an array as it is, and a PIL image or an image file as (H, W, 3) uint8 RGB.

    Raises:
        SourceError: the file is missing or not a readable image.
    """
    if isinstance(image, (str, os.PathLike)):
        return read_rgb(Path(image))
    if hasattr(image, "convert"):  # PIL's, which need not be installed
        image = image.convert("RGB")
    array: NDArray[Any] = np.asarray(image)
    return array


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """Read an image file as (H, W, 3) uint8 RGB.

    Raises:
        SourceError: the file is missing or not a readable image.
    """
    if path.is_dir():
        raise SourceError(f"{path} is a folder; expected image files")
    if not path.is_file():
        raise SourceError(f"no such image: {path}")
    try:
        image = read_pixels(path, MAX_PHOTO_PIXELS)
    except MessageError as error:
        raise SourceError(str(error)) from error
    return np.asarray(image, np.uint8)


def read_pixels(path: Path, max_pixels: int = MAX_PIXELS, color: bool = True) -> NDArray[Any]:
    """Read an image file, after its header has told its size.

    Args:
        path: of the file.
        max_pixels: maximum size to decode.
        color: convert to (H, W, 3) uint8 RGB; else the values stay as they are.

    Raises:
        MessageError: image_undecodable, image_zero_size or image_too_large.
    """
    import cv2

    from uncertainty_depth.messages.compressed import decode_bytes, image_size

    try:
        data = path.read_bytes()
    except OSError as error:
        raise MessageError(
            "image_undecodable", f"{path} cannot be read: {error.strerror}"
        ) from error
    size = image_size(data) or _size_of_other_formats(data)
    if size is None:
        raise MessageError("image_undecodable", f"{path} does not begin as an image")
    flags = cv2.IMREAD_COLOR if color else cv2.IMREAD_UNCHANGED
    pixels = decode_bytes(data, str(path), size, flags, max_pixels)
    return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB, dst=pixels) if color else pixels


SATURATED = 65535


def read_depth(path: Path, per_metre: float, max_pixels: int = MAX_PIXELS) -> NDArray[np.float32]:
    """Read a 16-bit depth image as (H, W) metres, NaN for 0 and 65535, which mean none.

    Args:
        path: of the file.
        per_metre: units to the metre.
        max_pixels: maximum size to decode.

    Raises:
        MessageError: depth_undecodable if it is not of 16 bits and one channel, or as
            `read_pixels`.
    """
    values = read_pixels(path, max_pixels, color=False)
    if values.dtype != np.uint16 or values.ndim != 2:
        raise MessageError(
            "depth_undecodable",
            f"{path} is {values.dtype} {values.shape}; expected 16 bits and one channel",
        )
    known = (values > 0) & (values < SATURATED)
    return np.where(known, values / np.float32(per_metre), np.float32(np.nan))


def _size_of_other_formats(data: bytes) -> tuple[int, int] | None:
    """Return width and height by Pillow, which reads the header alone; None if it cannot."""
    from PIL import Image
    from PIL.TiffImagePlugin import IMAGELENGTH, IMAGEWIDTH, PREFIXES, ImageFileDirectory_v2

    stream = BytesIO(data)
    try:
        if not data.startswith(tuple(PREFIXES)):
            with Image.open(stream) as image:
                return image.size
        header = data[: 16 if b"+" in data[2:4] else 8]  # "+": 64-bit offsets
        directory = ImageFileDirectory_v2(header)  # whatever the pixels are: 64-bit floats too
        stream.seek(directory.next)
        directory.load(stream)
        return int(directory[IMAGEWIDTH]), int(directory[IMAGELENGTH])
    except Exception:  # Pillow's parsers raise of everything
        return None
