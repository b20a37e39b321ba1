# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write arrays to an `.npz`, and read them back with bounds on all that the file claims to be.

A file of a few megabytes can claim gigabytes. Only the arrays that the caller names are read, and
of each the header first: shape and dtype must be those expected before any of the data is.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth import strict_json

COMPRESSION_LEVEL = 1
"""A seventh of the time of zlib's default level, for files that are a sixth larger."""
MAX_JSON_BYTES = 8 << 20
JSON = "header"


@dataclass(frozen=True)
class Expected:
    """What an array must be: its dtype, its trailing shape, and at most how many rows.

    Attributes:
        dtype: of the elements.
        shape: without the first axis; with it if `max_rows` is None.
        max_rows: length of the first axis at most; None for an array of exactly `shape`.
    """

    dtype: type
    shape: tuple[int, ...] = ()
    max_rows: int | None = None

    def check(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Refuse another shape or dtype."""
        rows = 0 if self.max_rows is None else 1
        fits = shape[rows:] == self.shape and len(shape) == len(self.shape) + rows
        if not fits or dtype != self.dtype or (rows and shape[0] > (self.max_rows or 0)):
            first = "" if self.max_rows is None else f"at most {self.max_rows} x "
            raise ValueError(
                f"{name} is {dtype} of shape {shape}; expected {np.dtype(self.dtype)} of shape "
                f"{first}{self.shape}"
            )


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Write arrays, and a header as JSON."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL
    ) as archive:
        for name, array in {JSON: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Return the header that `write` was given.

    Raises:
        OSError, ValueError, KeyError, JsonError, zipfile.BadZipFile, zlib.error: the file is
            missing or damaged.
    """
    text = read(path, {JSON: Expected(np.uint8, (), MAX_JSON_BYTES)})[JSON]
    header = strict_json.read(text.tobytes(), MAX_JSON_BYTES, allow_nan=True)
    if not isinstance(header, dict):
        raise ValueError(f"the header is {type(header).__name__}; expected a mapping")
    return header


def read(path: str | os.PathLike, layout: Mapping[str, Expected]) -> dict[str, NDArray]:
    """Return the arrays of a layout; whatever else the file holds is not read.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error: the file is missing or
            damaged, or an array is not what the layout says.
    """
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name, expected in layout.items():
            with archive.open(f"{name}.npy") as file:
                arrays[name] = _read_array(file, name, expected)
    return arrays


def _read_array(file: IO[bytes], name: str, expected: Expected) -> NDArray:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{name} has npy version {version}; expected (1, 0)")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    if fortran_order:
        raise ValueError(f"{name} is in Fortran order; expected C order")
    expected.check(name, shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    data = file.read(size + 1)
    if len(data) != size:
        raise ValueError(f"{name} has {len(data)} bytes of data; expected {size}")
    return np.frombuffer(data, dtype).reshape(shape).copy()
