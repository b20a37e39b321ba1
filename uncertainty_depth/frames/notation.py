# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How a source is written: its prefix, its folder, and the options behind it."""

from __future__ import annotations

import re
from pathlib import Path

from uncertainty_depth.core.config.recorded import PredictionTopics
from uncertainty_depth.core.errors import SourceError

RECORDED = "predictions:"
"""Prefix of a folder of recorded predictions."""


def has_recorded(notation: str, topics: PredictionTopics) -> bool:
    """Return whether a source brings its own predictions and needs no model."""
    return notation.startswith(RECORDED) or bool(topics.depth_topic or topics.confidence_topic)


def folder_and_options(notation: str, known: tuple[str, ...]) -> tuple[Path, dict[str, str]]:
    """Return the folder, which may have commas in its name, and the options behind it.

    The notation has its prefix, e.g. `rgbd:DIR,per_metre=5000`.
    """
    folder, *parts = _parts(notation.partition(":")[2])
    options: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name not in known:
            raise SourceError(f"{notation} has {name}={value}; expected {', '.join(known)}")
        if name in options:
            raise SourceError(f"{notation} has {name} twice; expected it once")
        options[name] = value
    return Path(folder), options


def folder_of(rest: str) -> Path:
    """Return the folder after the colon, ignoring options."""
    return Path(_parts(rest)[0])


def _parts(rest: str) -> list[str]:
    return re.split(r",(?=\w+=)", rest)


def numbers(notation: str, option: str, text: str, names: str) -> tuple[float, ...]:
    """Return the numbers in text such as `525/525/319.5/239.5`, or raise `SourceError`."""
    try:
        values = tuple(float(part) for part in text.split("/"))
    except ValueError:
        values = ()
    if len(values) != len(names.split("/")):
        raise SourceError(f"{notation} has {option}={text}; expected {option}={names}, numbers")
    return values


def per_metre(notation: str, options: dict[str, str]) -> float:
    """Return the option `per_metre`: 16-bit depth units to the metre.

    Raise `SourceError` for none.
    """
    text = options.get("per_metre", "1000")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise SourceError(
            f"{notation} has per_metre={text}; expected a positive number, e.g. 1000 for "
            "millimetres, 256 for the depth of KITTI, 5000 for that of TUM"
        )
    return value
