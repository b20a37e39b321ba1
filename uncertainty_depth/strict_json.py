# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Strict JSON: written without NaN, and read within limits, whoever wrote it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth import atomic
from uncertainty_depth.errors import UncertaintyDepthError

MAX_DEPTH = 32
MAX_DIGITS = 400  # of an integer; the largest float has 309
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*\\?(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
"""Strings, whose brackets do not count, and brackets. An open string ends with the text."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(UncertaintyDepthError):
    """A text is no JSON, or is beyond the limits."""


def read(
    text: str | bytes, max_bytes: int, max_depth: int = MAX_DEPTH, allow_nan: bool = False
) -> Any:
    """Return the value of a JSON text of unknown origin.

    The limits are checked before anything is built. All numbers are finite and fit a float, and
    all strings can be written as UTF-8: lone surrogates become "?".

    Args:
        text: as a string, or as UTF-8.
        max_bytes: the longest text that is read.
        max_depth: number of levels of objects and lists that is read.
        allow_nan: read NaN and Infinity, which are no JSON but which Python writes.

    Raises:
        JsonError: the text is longer, deeper, or no JSON, or has a number that fits no float.
    """
    if len(text) > max_bytes:
        raise JsonError(f"JSON of {len(text)} bytes; expected at most {max_bytes}")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise JsonError(f"JSON is not UTF-8 ({error.reason} at byte {error.start})") from error
    _check_depth(decoded, max_depth)
    try:
        value = json.loads(
            decoded,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=float if allow_nan else _refuse,
        )
    except ValueError as error:
        raise JsonError(f"{decoded[:80]!r} is not JSON ({error})") from error
    return _encodable(value) if _SURROGATE.search(decoded) else value


def read_file(path: Path, max_bytes: int, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value in a JSON file of unknown origin, as `read`; no more than that is read.

    Raises:
        JsonError: as `read`.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return read(file.read(max_bytes + 1), max_bytes, max_depth)


def _check_depth(text: str, max_depth: int) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        character = token[0]
        depth += (character in "[{") - (character in "]}")
        if depth > max_depth:
            raise JsonError(f"{text[:80]!r} is JSON of more than {max_depth} levels")


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise JsonError(
            f"an integer in JSON has {len(text)} digits; expected one that fits a float"
        )
    _finite(text)
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"a number in JSON is {text[:40]}; expected one that fits a float")
    return value


def _refuse(text: str) -> float:
    raise JsonError(f"JSON has {text}; expected a finite number or null")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    return value


def write(path: Path, value: Any) -> None:
    """Replace the file by `value`, whole or not at all."""
    atomic.write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """Return the value as JSON gives it back: lists, mappings with string keys, null for NaN."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
