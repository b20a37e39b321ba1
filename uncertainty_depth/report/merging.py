# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fold the evaluations behind several reports into one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.report import Context
from uncertainty_depth.report.saved_state import SavedReport

logger = logging.getLogger(__name__)
NOT_COMPARED = ("example_frames",)
"""Options of an evaluation that change no score."""


def check_same_config(first: SavedReport, report: SavedReport) -> None:
    """Raise `ConfigError` if a report was scored with other options than the first."""
    for field in fields(EvaluationConfig):
        name = field.name
        first_value = getattr(first.evaluation.config, name)
        value = getattr(report.evaluation.config, name)
        if first_value != value and name not in NOT_COMPARED:
            option = (
                f"--set {name}={first_value}"
                if field.metadata["expert"]
                else f"--{name.replace('_', '-')}"
            )
            raise ConfigError(
                f"{report.folder} was scored with {name} {value}, {first.folder} with "
                f"{first_value}; expected the same: evaluate one of them again with {option}"
            )


def merge(
    reports: Iterable[SavedReport], max_frames: int | None = None
) -> tuple[Evaluation, Context]:
    """Return the evaluation of all reports' frames, and their origin.

    Sums are added in the order of the reports: the same reports in the same order give the same
    bits. One report is held at a time. A copied or converted recording is counted once.

    Args:
        reports: at least one.
        max_frames: maximum number of frames whose rows are copied; None copies all.

    Raises:
        ConfigError: they were scored with different options, or with different models.
    """
    merged = None
    parts: list[_Part] = []
    notes: list[str] = []
    for report in reports:
        if merged is None:
            first = report
            merged = Evaluation(report.evaluation.config, None, report.evaluation.without_size)
        check_same_config(first, report)
        if _model_of(report) != _model_of(first):
            raise ConfigError(
                f"{report.folder} is of another model than {first.folder}; expected reports of "
                "one model: `compare` compares models"
            )
        source = str(report.summary["source"])
        if repeats := merged.views.common(report.evaluation.views):
            notes.append(_repeats_note(merged, report, repeats))
            logger.warning(notes[-1])
        if merged.views.includes(report.evaluation.views):
            continue
        copied = max_frames is None or merged.evaluated < max_frames
        merged.merge(report.evaluation, source, with_frames=copied)
        parts.append(_Part.of(report))
    if merged is None:
        raise ConfigError("no report to merge; expected at least one")
    notes += _by_source({part.source: part.notes for part in parts})
    if max_frames is not None and merged.evaluated > max_frames:
        notes.append(
            "frames.csv ends before the last sources; their own reports hold their frames"
        )
    return merged, _context(first, parts, notes)


def _repeats_note(merged: Evaluation, report: SavedReport, repeats: int) -> str:
    source = report.summary["source"]
    if merged.views.includes(report.evaluation.views):
        return f"all frames of {source} are in earlier sources: a copy, not counted again"
    return (
        f"{repeats} of {report.evaluation.evaluated} frames of {source} are in earlier sources "
        "too: they count twice"
    )


def _model_of(report: SavedReport) -> dict[str, Any]:
    """Return the description of a model; recorded predictions are called by their folder."""
    model = dict(report.summary["model"])
    if model.get("method") == "recorded":
        model.pop("model")
    return model


@dataclass(frozen=True)
class _Part:
    """One source in the report over all sources."""

    source: str
    notes: tuple[str, ...]
    trained_on: tuple[str, ...] | None
    calibrated_on: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, report: SavedReport) -> _Part:
        summary = report.summary
        trained_on = report.details.get("trained_on")
        return cls(
            str(summary["source"]),
            tuple(summary["notes"]),
            None if trained_on is None else tuple(trained_on),
            tuple(report.details.get("calibrated_on", ())),
            tuple(summary["geometry"].get("warnings", [])),
        )


def _context(first: SavedReport, parts: Sequence[_Part], notes: Sequence[str]) -> Context:
    is_one = len(parts) == 1
    number = f"{len(parts)} sources: {parts[0].source} ... {parts[-1].source}"
    names = chain.from_iterable(part.trained_on or () for part in parts)
    warned = [part for part in parts if part.warnings]
    warnings: list[str] = []
    for part in warned:
        warnings += [f"{part.source}: {text}" for text in part.warnings]
    geometry = {
        "description": f"{len(warned)} of {len(parts)} sources have warnings",
        "warnings": warnings,
    }
    return Context(
        parts[0].source if is_one else number,
        first.summary["model"],
        tuple(notes),
        first.details["options"],
        None if any(part.trained_on is None for part in parts) else tuple(names),
        geometry,
        calibrated_on=tuple(chain.from_iterable(part.calibrated_on for part in parts)),
    )


def _by_source(sentences: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the sentences of all sources, prefixed by their source unless all share them."""
    first, *others = sentences.values()
    in_all = set(first).intersection(*others)
    shared = [sentence for sentence in first if sentence in in_all]
    own: list[str] = []
    for source, texts in sentences.items():
        own += [f"{source}: {text}" for text in texts if text not in in_all]
    return [*shared, *own]
