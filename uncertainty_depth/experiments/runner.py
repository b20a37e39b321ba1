# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Resumable runs: each finished piece is a JSON file, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from uncertainty_depth import strict_json
from uncertainty_depth.interrupt import deferred_interrupt

FORMAT = 1


Settings = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]


def resume(
    folder: Path,
    names: Iterable[str],
    settings: Settings,
    compute: Callable[[str], Any],
    label: str,
) -> list[Any]:
    """The result of `compute(name)` for each name, read from `folder/name.json` where a run with the same settings left it.

    Args:
        folder: where the pieces are kept, created where missing.
        names: file names without their ending.
        settings: everything a result depends on besides its name, for all names or as a function of it; a piece of other settings is computed again.
        compute: returns numbers, strings, arrays, lists and mappings of these.
        label: name on the progress bar.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, and the piece at hand is finished and kept; a second
            one ends it at once.
    """
    names = list(names)
    settings_of = settings if callable(settings) else lambda _: settings
    results = []
    with deferred_interrupt() as interrupt, tqdm(names, desc=label, unit="piece") as progress:
        for name in progress:
            settings_now = strict_json.plain({"format": FORMAT, **settings_of(name)})
            results.append(_piece(folder / f"{name}.json", name, settings_now, compute))
            if interrupt.requested:
                raise KeyboardInterrupt
    return results


def _piece(path: Path, name: str, settings: Any, compute: Callable[[str], Any]) -> Any:
    stored = _read(path)
    if stored.get("settings") != settings:
        stored = {"settings": settings, "result": strict_json.plain(compute(name))}
        strict_json.write(path, stored)
    return stored["result"]


def _read(path: Path) -> dict[str, Any]:
    """The stored piece, or an empty mapping for one that is missing or damaged: it is computed again."""
    try:
        stored = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
