# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether frames that are scored are those that a model or its sigma was fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncertainty_depth.core.records import Overlap, Use
from uncertainty_depth.frames.protocol import NAME_SEPARATOR
from uncertainty_depth.stream.opening import frames_of, prefix_of


def trained_on(model: str, training: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source whose frames the model has seen in training, by their names alone.

    A fine-tuned model's record has, in `started_from`, the sources of the trainings before.
    """
    started_from = training.get("started_from")
    earlier = started_from.get("sources") if isinstance(started_from, Mapping) else None
    joined = [training.get("source"), *(earlier if isinstance(earlier, list) else [])]
    trained: list[str] = []
    for names in joined:
        trained += str(names or "").split(NAME_SEPARATOR)
    return _overlaps(model, Use.TRAINING, trained, sources)


def calibrated_on(fitted_to: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source that a calibration of sigma was fitted to, by its record's `sources`."""
    fitted = fitted_to.get("sources")
    names = [str(name) for name in fitted] if isinstance(fitted, (list, tuple)) else []
    return _overlaps("sigma", Use.CALIBRATION, names, sources)


def _overlaps(model: str, use: Use, used: Sequence[str], sources: Sequence[str]) -> list[Overlap]:
    overlaps = []
    for source in sources:
        found = [same for name in used if (same := _is_same(source, name)) is not None]
        if found:
            overlaps.append(Overlap(source, use, any(found), model))
    return overlaps


def _is_same(source: str, used: str) -> bool | None:
    """Return whether two sources share frames for certain; None if they share none."""
    if not used or prefix_of(source) != prefix_of(used):
        return None
    place, parts = frames_of(source)
    other_place, other_parts = frames_of(used)
    if not parts & other_parts:
        return None
    real, other_real = map(_real, (place, other_place))
    if real == other_real:
        return True
    return False if real.name == other_real.name else None


def _real(place: Path) -> Path:
    """Return the path without links, as far as it can be followed: a model may name any place."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, no path at all
        return place
