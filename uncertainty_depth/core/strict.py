# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files from unknown origin, read within limits: JSON, YAML and arrays in an `.npz`.

What would be built is checked before it is built: a few bytes of YAML can stand for many, and an
archive of a few megabytes can claim gigabytes. JSON is written without NaN.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml
from numpy.typing import DTypeLike, NDArray

from uncertainty_depth.core import atomic
from uncertainty_depth.core.errors import UncertaintyDepthError, first_line

MAX_JSON_DEPTH = 32
MAX_YAML_DEPTH = 16
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*\\?(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
"""Strings, whose brackets do not count, and brackets. An open string ends with the text."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class FormatError(UncertaintyDepthError):
    """A text is no JSON or no YAML, or is beyond the limits."""


def read_json(
    text: str | bytes, max_bytes: int, max_depth: int = MAX_JSON_DEPTH, allow_nan: bool = False
) -> Any:
    """Return the value in a JSON text from unknown origin.

    The limits are checked before anything is built. All numbers are finite and fit a float, and
    all strings can be written as UTF-8: lone surrogates become "?".

    Raises `FormatError` if the text is longer, deeper or no JSON; `allow_nan` reads Python's NaN
    and Infinity.
    """
    if len(text) > max_bytes:
        raise FormatError(f"JSON of {len(text)} bytes; expected at most {max_bytes}")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise FormatError(f"JSON is not UTF-8 ({error.reason} at byte {error.start})") from error
    depth = 0
    for token in _TOKENS.finditer(decoded):
        character = token[0]
        depth += (character in "[{") - (character in "]}")
        if depth > max_depth:
            raise FormatError(f"{decoded[:80]!r} is JSON of more than {max_depth} levels")
    try:
        value = json.loads(
            decoded,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=float if allow_nan else _refuse,
        )
    except ValueError as error:
        raise FormatError(f"{decoded[:80]!r} is not JSON ({error})") from error
    return encodable(value) if _SURROGATE.search(decoded) else value


def open_file(path: str | os.PathLike) -> IO[bytes]:
    """Open a file to read bytes.

    Raise OSError for a pipe or a device, which could block for ever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a file, but a folder, a pipe or a device", str(path))


def check_file(path: str | os.PathLike) -> None:
    """Raise `OSError` for a path that `open_file` does not open, before a library opens it."""
    open_file(path).close()


def read_text(path: str | os.PathLike) -> str:
    """Return a UTF-8 file's text, or raise OSError or UnicodeDecodeError."""
    with open_file(path) as file:
        return file.read().decode()


def read_json_file(path: Path, max_bytes: int) -> Any:
    """Return a JSON file's value, at most `max_bytes`; raise as `read_json`, or OSError."""
    with open_file(path) as file:
        return read_json(file.read(max_bytes + 1), max_bytes)


def _integer(text: str) -> int:
    _finite(text)  # else Python refuses to convert the digits, and does not say how long they are
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FormatError(f"a number in JSON is {text[:40]}; expected one that fits a float")
    return value


def _refuse(text: str) -> float:
    raise FormatError(f"JSON has {text}; expected a finite number or null")


def encodable(value: Any) -> Any:
    """Return the value with "?" for lone surrogates in its strings, which UTF-8 cannot write."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {encodable(key): encodable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [encodable(part) for part in value]
    return value


def write_json(path: Path, value: Any) -> None:
    """Replace the file by `value`, whole or not at all."""
    atomic.write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return the content of the JSON file of a value, see `plain`."""
    return f"{json.dumps(plain(value), indent=1, allow_nan=False)}\n".encode()


def plain(value: Any) -> Any:
    """Return the value as JSON gives it back: lists, mappings with string keys, null for NaN."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def read_yaml_file(path: Path, max_bytes: int) -> Any:
    """Return the lists and mappings in a UTF-8 YAML file; every scalar is a string.

    Raises:
        FormatError: the file is longer than `max_bytes`, nested more than `MAX_YAML_DEPTH` levels,
            has an alias, or is no YAML.
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise FormatError(f"it is longer than {max_bytes} bytes")
    try:
        text = content.decode("utf-8")
        check_yaml(text)
        return yaml.load(text, yaml.BaseLoader)  # it constructs no objects
    except UnicodeDecodeError as error:
        raise FormatError(f"it is not UTF-8 ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise FormatError(f"it is not YAML ({first_line(error)})") from error


def check_yaml(text: str) -> None:
    """Refuse a YAML text that stands for more than it holds, before anything is built of it.

    Raises:
        FormatError: it is nested more than `MAX_YAML_DEPTH` levels, or has an alias.
        YAMLError: it is no YAML.
    """
    depth = 0
    for event in yaml.parse(text, yaml.BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise FormatError(f"it has the alias *{event.anchor}; expected none")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH:
            raise FormatError(f"it is nested more than {MAX_YAML_DEPTH} levels deep")


def limits_of(value: Any) -> tuple[float, float] | None:
    """Return a pair of positive numbers in ascending order; None for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    if not all(isinstance(limit, (int, float)) for limit in value):
        return None
    low = float(value[0])
    high = float(value[1])
    return (low, high) if 0 < low <= high and math.isfinite(high) else None


COMPRESSION_LEVEL = 1
"""A seventh of the time of zlib's default level, for files that are a sixth larger."""
MAX_HEADER_BYTES = 8 << 20
HEADER = "header"


@dataclass(frozen=True)
class Expected:
    """What an array must be.

    Attributes:
        dtype: its elements'.
        shape: without the first axis; with it if `max_rows` is None.
        max_rows: the first axis's maximum length; None for an array with exactly `shape`.
    """

    dtype: DTypeLike
    shape: tuple[int, ...] = ()
    max_rows: int | None = None


def write_arrays(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Write arrays, and a header as JSON."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL
    ) as archive:
        for name, array in {HEADER: text, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Return the header that `write_arrays` was given; raise as `read_arrays`."""
    text = read_arrays(path, {HEADER: Expected(np.uint8, (), MAX_HEADER_BYTES)})[HEADER]
    header = read_json(text.tobytes(), MAX_HEADER_BYTES, allow_nan=True)
    if not isinstance(header, dict):
        raise ValueError(f"the header is {type(header).__name__}; expected a mapping")
    return header


def read_arrays(path: str | os.PathLike, layout: Mapping[str, Expected]) -> dict[str, NDArray]:
    """Return a layout's arrays; whatever else the file holds is not read.

    Raises:
        OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error: the file is missing or
            damaged, or an array is not what the layout says.
    """
    arrays = {}
    with open_file(path) as opened, zipfile.ZipFile(opened) as archive:
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
    rows = 0 if expected.max_rows is None else 1
    fits = shape[rows:] == expected.shape and len(shape) == len(expected.shape) + rows
    if not fits or dtype != expected.dtype or (rows and shape[0] > (expected.max_rows or 0)):
        first = f"at most {expected.max_rows} x " if rows else ""
        raise ValueError(
            f"{name} is {dtype} of shape {shape}; expected {np.dtype(expected.dtype)} of shape "
            f"{first}{expected.shape}"
        )
    size = math.prod(shape) * dtype.itemsize
    data = file.read(size + 1)
    if len(data) != size:
        raise ValueError(f"{name} has {len(data)} bytes of data; expected {size}")
    return np.frombuffer(data, dtype).reshape(shape).copy()
