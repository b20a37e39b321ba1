"""Resumable runs: each finished piece is a JSON file, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from uncertainty_depth import atomic
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
            settings_now = _plain({"format": FORMAT, **settings_of(name)})
            results.append(_piece(folder / f"{name}.json", name, settings_now, compute))
            if interrupt.requested:
                raise KeyboardInterrupt
    return results


def _piece(path: Path, name: str, settings: Any, compute: Callable[[str], Any]) -> Any:
    stored = _read(path)
    if stored.get("settings") != settings:
        stored = {"settings": settings, "result": _plain(compute(name))}
        write_json(path, stored)
    return stored["result"]


def _read(path: Path) -> dict[str, Any]:
    """The stored piece, or an empty mapping for one that is missing or damaged: it is computed again."""
    try:
        stored = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def write_json(path: Path, value: Any) -> None:
    """Replace the file by `value` as strict JSON: NaN and infinity become null."""
    atomic.write_text(path, json.dumps(_plain(value), indent=1, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """As JSON gives it back: lists, mappings with string keys, None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
