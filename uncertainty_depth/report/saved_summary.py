# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read the `summary.json` of a report, whoever wrote it."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth import strict_json
from uncertainty_depth.errors import SourceError
from uncertainty_depth.report.judgement import GREEN, GREY, RED

FILE = "summary.json"
MAX_BYTES = 2**24
LAYOUT: dict[str, Any] = {
    "source": str,
    "notes": [str],
    "model": dict,
    "geometry": dict,
    "frames": {"evaluated": int, "skipped": dict},
    "depth": dict,
    "uncertainty": dict,
    "verdict": {"color": str, "text": str},
}
"""What is read of a summary; it holds more."""


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of `summary.json`, which has all of `LAYOUT`.

    Raises:
        SourceError: the file is missing, is no JSON, or lacks a part.
    """
    path = folder / FILE
    try:
        summary: dict[str, Any] = strict_json.read_file(path, MAX_BYTES)
    except (OSError, strict_json.JsonError) as error:
        raise SourceError(
            f"{folder} holds no report ({error}); expected a folder that `evaluate` or the "
            "evaluator node wrote"
        ) from error
    check_layout(path, "", summary, LAYOUT)
    color = summary["verdict"]["color"]
    if color not in (RED, GREEN, GREY):
        raise SourceError(f"{path} has verdict {reprlib.repr(color)}; expected a color")
    return summary


def check_layout(path: Path, name: str, value: Any, layout: Any) -> None:
    """Raise `SourceError` for the first part of plain values that is of another type.

    Args:
        path: of the file, for the sentence.
        name: dotted name of the part; empty for the whole.
        value: the part.
        layout: its type; or a list with that of its elements; or a mapping of the required keys.
    """
    expected: Any = layout if isinstance(layout, type) else type(layout)
    if not isinstance(value, expected):
        part = f"{name} = {reprlib.repr(value)}" if name else reprlib.repr(value)
        raise SourceError(f"{path} has {part}; expected a {expected.__name__}")
    if isinstance(layout, list):
        for element in value:
            check_layout(path, name, element, layout[0])
    if isinstance(layout, Mapping):
        for key, inner in layout.items():
            check_layout(path, f"{name}.{key}" if name else key, value.get(key), inner)
