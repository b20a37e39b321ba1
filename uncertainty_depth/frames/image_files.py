# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whatever holds an image, as an array: image files, PIL images."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.source import MAX_PIXELS
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.frames.messages.decoding import check_pixels

if TYPE_CHECKING:
    from PIL.Image import Image

WEBP_MAGIC = b"RIFF"
MAX_PHOTO_PIXELS = 8 * MAX_PIXELS
"""Largest file that a user may name: telephones take up to 108 million."""
ImageLike = Union[NDArray[np.uint8], "Image", "os.PathLike[str]", str]


def as_rgb(image: ImageLike) -> NDArray[np.uint8]:
    """Return an array as it is, others as upright (H, W, 3) uint8 RGB, or raise `SourceError`."""
    if isinstance(image, (str, os.PathLike)):
        return read_rgb(Path(image))
    if hasattr(image, "convert"):  # PIL's, which need not be installed
        from PIL.ImageOps import exif_transpose

        image = exif_transpose(cast("Image", image)).convert("RGB")
    array: NDArray[Any] = np.asarray(image)
    return array


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """Read a photograph as upright (H, W, 3) uint8 RGB; raise `SourceError` if it cannot be."""
    if path.is_dir():
        raise SourceError(f"{path} is a folder; expected image files")
    if not path.is_file():
        raise SourceError(f"no such image: {path}")
    try:
        image = read_pixels(path, MAX_PHOTO_PIXELS, upright=True)
    except MessageError as error:
        raise SourceError(str(error)) from error
    return np.asarray(image, np.uint8)


def read_pixels(
    path: Path, max_pixels: int = MAX_PIXELS, color: bool = True, upright: bool = False
) -> NDArray[Any]:
    """Read an image file, after its header has told its size.

    With `color` it is (H, W, 3) uint8 RGB, else as it is stored; `upright` turns it as its Exif
    data say, else pixels stay where its camera matrix and depth have theirs. Raises `MessageError`
    image_undecodable, image_zero_size or image_too_large.
    """
    import cv2

    from uncertainty_depth.frames.messages.compressed import decode_bytes

    try:
        with strict.open_file(path) as file:
            data = file.read()
    except OSError as error:
        raise MessageError(
            "image_undecodable", f"{path} cannot be read: {error.strerror}"
        ) from error
    size = _header_size(data)
    if size is None:
        raise MessageError(
            "image_undecodable",
            f"{path} does not begin as an image; expected JPEG, PNG, TIFF, BMP or WebP",
        )
    flags = cv2.IMREAD_COLOR if color else cv2.IMREAD_UNCHANGED
    is_webp = data.startswith(WEBP_MAGIC)
    if color and (is_webp or not upright):
        flags |= cv2.IMREAD_IGNORE_ORIENTATION
    pixels = decode_bytes(data, str(path), size, flags, max_pixels)
    if not color:
        return pixels
    cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB, dst=pixels)
    return _turned(pixels, data) if is_webp and upright else pixels


def _turned(pixels: NDArray[np.uint8], data: bytes) -> NDArray[np.uint8]:
    """Return pixels upright as the Exif data of their WebP say, which OpenCV does not read."""
    from PIL import Image, ImageOps

    image = Image.fromarray(pixels)
    with suppress(Exception), Image.open(BytesIO(data), formats=("WEBP",)) as stored:
        image.info["exif"] = stored.getexif().tobytes()
    return np.asarray(ImageOps.exif_transpose(image))


def read_values(path: Path, max_pixels: int = MAX_PIXELS) -> NDArray[Any]:
    """Return a .npy or one-channel image as stored, (H, W); raise as `read_pixels`."""
    if path.suffix.lower() == ".npy":
        try:
            strict.check_file(path)
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # NumPy's parser of headers raises of everything
            raise MessageError("depth_undecodable", f"{path} cannot be read: {error}") from error
    else:
        values = read_pixels(path, max_pixels, color=False)
    shape = values.shape
    values = np.squeeze(values)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise MessageError(
            "depth_undecodable",
            f"{path} holds {values.dtype} of shape {shape}; expected one number a pixel",
        )
    check_pixels(values.shape[1], values.shape[0], max_pixels, str(path))
    return np.asarray(values)


def read_metres(
    path: Path,
    per_metre: float,
    is_sigma: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> NDArray[np.float32]:
    """Read depth, or with `is_sigma` sigma, as (H, W) metres, NaN for `holes`.

    Whole numbers, in 16 bits at least, are `per_metre` to the metre; others are metres.

    Raises `MessageError` as `read_values`, or depth_undecodable for numbers of 8 bits.
    """
    values = read_values(path, max_pixels)
    if values.dtype.itemsize < 2:
        raise MessageError(
            "depth_undecodable",
            f"{path} has pixels of 8 bits, as a picture of depth; expected 16 bits, "
            f"{per_metre:g} to the metre, or metres as floating-point numbers",
        )
    from uncertainty_depth.frames.messages.images import depth_of, sigma_of  # need OpenCV

    return sigma_of(values, per_metre) if is_sigma else depth_of(values, per_metre=per_metre)


def _header_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height by the header; None for a format that files may not have."""
    from uncertainty_depth.frames.messages.compressed import image_size

    if data.startswith((b"II", b"MM")):
        with suppress(struct.error, OverflowError):
            return _tiff_size(data)
        return None
    if data.startswith((b"BM", WEBP_MAGIC)):
        from PIL import Image

        with suppress(Exception), Image.open(BytesIO(data), formats=("BMP", "WEBP")) as image:
            return image.size  # Pillow's parsers raise of everything
        return None
    return image_size(data)


_TIFF_LAYOUTS = {42: ("I", "H", "HHI4s"), 43: ("4xQ", "Q", "HHQ8s")}
"""Struct formats by version: the first directory's place, its number of entries, and an entry."""
_TIFF_NUMBERS = {3: "H", 4: "I", 16: "Q"}
_WIDTH, _HEIGHT, _ORIENTATION, _TILE_WIDTH, _TILE_HEIGHT = 256, 257, 274, 322, 323
_MAX_TILE_PIXELS = 2**20
"""A tile may be larger than its image."""


def _tiff_size(data: bytes) -> tuple[int, int] | None:
    """Return the first image's width and height; None for what readers may take differently."""
    order = "<" if data.startswith(b"II") else ">"
    (version,) = struct.unpack_from(f"{order}H", data, 2)
    if version not in _TIFF_LAYOUTS:
        return None
    place, count, entry = _TIFF_LAYOUTS[version]
    (start,) = struct.unpack_from(order + place, data, 4)
    (entries,) = struct.unpack_from(order + count, data, start)
    start += struct.calcsize(order + count)
    layout = struct.Struct(order + entry)
    fields = {_ORIENTATION: 1}
    found = []
    for position in range(start, start + entries * layout.size, layout.size):
        tag, kind, numbers, value = layout.unpack_from(data, position)
        if tag in (_WIDTH, _HEIGHT, _ORIENTATION, _TILE_WIDTH, _TILE_HEIGHT):
            if tag in found or kind not in _TIFF_NUMBERS or numbers != 1:
                return None
            found.append(tag)
            (fields[tag],) = struct.unpack_from(order + _TIFF_NUMBERS[kind], value)
    if fields[_ORIENTATION] != 1 or not {_WIDTH, _HEIGHT} <= fields.keys():
        return None
    size = (fields[_WIDTH], fields[_HEIGHT])
    tile_pixels = fields.get(_TILE_WIDTH, 0) * fields.get(_TILE_HEIGHT, 0)
    return size if tile_pixels <= max(size[0] * size[1], _MAX_TILE_PIXELS) else None
