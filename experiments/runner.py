# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Resumable runs: each finished piece is a JSON file, written atomically."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from uncertainty_depth.core import strict
from uncertainty_depth.core.process import deferred_interrupt

FORMAT = 1

Settings = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]


def resume(
    folder: Path,
    names: Iterable[str],
    settings: Settings,
    compute: Callable[[str], Any],
    label: str,
) -> list[Any]:
    """Return `compute(name)` for each name, or the stored result of an earlier run.

    Results are stored in `folder/name.json` and used again if the settings are the same.

    Args:
        folder: of the stored results, created if missing.
        names: file names without their ending.
        settings: all that a result depends on besides its name, one mapping for all names or a
            function of the name; a result of other settings is computed again.
        compute: returns numbers, strings, arrays, lists and mappings of these.
        label: name on the progress bar.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, and the current piece is finished and stored; a
            second Ctrl-C stops at once.
    """
    names = list(names)
    results = []
    with deferred_interrupt() as interrupt, tqdm(names, desc=label, unit="piece") as progress:
        for name in progress:
            piece_settings = settings(name) if callable(settings) else settings
            settings_now = strict.plain({"format": FORMAT, **piece_settings})
            results.append(_piece(folder / f"{name}.json", name, settings_now, compute))
            if interrupt.requested:
                raise KeyboardInterrupt
    return results


def _piece(path: Path, name: str, settings: Any, compute: Callable[[str], Any]) -> Any:
    stored = _read(path)
    if stored.get("settings") != settings:
        stored = {"settings": settings, "result": strict.plain(compute(name))}
        strict.write_json(path, stored)
    return stored["result"]


def _read(path: Path) -> dict[str, Any]:
    """Return the stored piece, or an empty mapping if it is missing or damaged."""
    try:
        stored = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
