# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read reports back, whoever wrote them: to compare, to merge."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.options import flag_of
from uncertainty_depth.core.records import Overlap, Use
from uncertainty_depth.core.strict import Expected
from uncertainty_depth.metrics.state import BLOCK, BLOCK_CELLS, MAX_BLOCKS
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameTable
from uncertainty_depth.report.judgement import GREEN, GREY, RED
from uncertainty_depth.report.model_facts import is_recorded
from uncertainty_depth.report.repeats import MAX_FRAMES, MAX_PATTERNS
from uncertainty_depth.report.report import SUMMARY_FILE, Context
from uncertainty_depth.report.scores import FORMAT, STATE_FILE

logger = logging.getLogger(__name__)

MAX_SUMMARY_BYTES = 2**24
SUMMARY_LAYOUT: dict[str, Any] = {
    "source": str,
    "notes": [str],
    "model": dict,
    "geometry": dict,
    "frames": {"evaluated": int, "skipped": dict},
    "depth": dict,
    "uncertainty": dict,
    "verdict": {
        "color": str,
        "text": str,
        "numbers": str,
        "lines": [{"name": str, "color": str, "text": str}],
    },
}
"""Parts that are read from a summary; it holds more."""
OVERLAP_LAYOUT = {"source": str, "certain": bool, "model": str}
LAYOUT = {
    "blocks": Expected(BLOCK, (), MAX_BLOCKS),
    "frame_keys": Expected(np.uint64, (), 2 * MAX_FRAMES),
    "frame_patterns": Expected(np.float32, (2, BLOCK_CELLS), MAX_PATTERNS),
}
"""Arrays in the state; whatever else the file holds is not read."""


@dataclass(frozen=True)
class SavedReport:
    """A report that was read back, with every sum; its context lacks command and requirements."""

    folder: Path
    summary: Mapping[str, Any]
    evaluation: Evaluation
    context: Context


def read_report(folder: Path) -> SavedReport:
    """Return the report in a folder; raise `SourceError` if it is missing, damaged or newer."""
    content = _summary_json(folder)
    path = folder / STATE_FILE
    try:
        header = strict.read_header(path)
        number = header.get("format")
        if number != FORMAT:
            reason = "an older version wrote it, evaluate again"
            if isinstance(number, int) and number > FORMAT:
                reason = "it was written by a newer version"
            raise SourceError(f"{path} has format {str(number)[:20]}; expected {FORMAT}: {reason}")
        summary = _checked_summary(folder, content)
        arrays = strict.read_arrays(path, LAYOUT)
        evaluation = Evaluation.restored(header, arrays, FrameTable(folder))
        details = header["details"]
    except SourceError:
        raise
    # Whatever the parsers of zip, deflate, npy and JSON raise at damaged bytes.
    except Exception as error:
        raise SourceError(
            f"{path} is not a complete state of an evaluation ({error}); expected the file that "
            "was written with the report"
        ) from error
    check_layout(path, "details", details, {"options": dict})
    for name in ("trained_on", "calibrated_on"):
        if (entries := details.get(name)) is not None:
            check_layout(path, f"details.{name}", entries, [OVERLAP_LAYOUT])
    trained_on = details.get("trained_on")
    context = Context(
        summary["source"],
        summary["model"],
        tuple(summary["notes"]),
        details["options"],
        None if trained_on is None else _overlaps(Use.TRAINING, trained_on),
        summary["geometry"],
        calibrated_on=_overlaps(Use.CALIBRATION, details.get("calibrated_on") or ()),
    )
    return SavedReport(folder, summary, evaluation, context)


def _overlaps(use: Use, entries: Iterable[Mapping[str, Any]]) -> tuple[Overlap, ...]:
    return tuple(
        Overlap(entry["source"], use, entry["certain"], entry["model"]) for entry in entries
    )


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of `summary.json`, with all of `SUMMARY_LAYOUT`, or `SourceError`."""
    return _checked_summary(folder, _summary_json(folder))


def _summary_json(folder: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = strict.read_json_file(folder / SUMMARY_FILE, MAX_SUMMARY_BYTES)
    except (OSError, strict.FormatError) as error:
        raise SourceError(
            f"{folder} holds no report ({error}); expected a folder that `evaluate` or the "
            "evaluator node wrote"
        ) from error
    return content


def _checked_summary(folder: Path, summary: dict[str, Any]) -> dict[str, Any]:
    path = folder / SUMMARY_FILE
    check_layout(path, "", summary, SUMMARY_LAYOUT)
    color = summary["verdict"]["color"]
    if color not in (RED, GREEN, GREY):
        raise SourceError(f"{path} has verdict {reprlib.repr(color)}; expected a color")
    return summary


def check_layout(path: Path, name: str, value: Any, layout: Any) -> None:
    """Raise `SourceError` for the first part of plain values that the layout has otherwise."""
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


def check_same_config(first: SavedReport, report: SavedReport) -> None:
    """Raise `ConfigError` if a report was scored with other options than the first."""
    for option in fields(EvaluationConfig):
        name = option.name
        first_value = getattr(first.evaluation.config, name)
        value = getattr(report.evaluation.config, name)
        if first_value != value:
            raise ConfigError(
                f"{report.folder} was scored with {name} {value}, {first.folder} with "
                f"{first_value}; expected the same: evaluate one of them again with "
                f"{flag_of(option)} {first_value}"
            )


def merge(
    reports: Iterable[SavedReport], max_frames: int | None = None
) -> tuple[Evaluation, Context]:
    """Return the evaluation of all reports' frames, and their origin.

    Sums are added in the reports' order: the same reports in the same order give the same
    bits. One report is held at a time. A copied or converted recording is counted once. At most
    `max_frames` rows are copied; None copies all.
    """
    merged = None
    parts: list[Context] = []
    notes: list[str] = []
    for report in reports:
        if merged is None:
            first = report
            merged = Evaluation(report.evaluation.config, report.evaluation.sigma_kind)
        check_same_config(first, report)
        if _model_of(report.context) != _model_of(first.context):
            raise ConfigError(
                f"{report.folder} is of another model than {first.folder}; expected reports of "
                "one model: `compare` compares models"
            )
        source = report.context.source
        is_copy = merged.views.includes(report.evaluation.views)
        if repeats := merged.views.common(report.evaluation.views):
            notes.append(
                f"all frames of {source} are in earlier sources: a copy, not counted again"
                if is_copy
                else f"{repeats} of {report.evaluation.evaluated} frames of {source} are in "
                "earlier sources too: they count twice"
            )
            logger.warning(notes[-1])
        if is_copy:
            continue
        copied = max_frames is None or merged.evaluated < max_frames
        merged.merge(report.evaluation, source, with_frames=copied)
        parts.append(report.context)
    if merged is None:
        raise ConfigError("no report to merge; expected at least one")
    notes += _by_source({part.source: part.notes for part in parts})
    if max_frames is not None and merged.evaluated > max_frames:
        notes.append(
            "frames.csv ends before the last sources; their own reports hold their frames"
        )
    return merged, _context(parts, notes)


def _model_of(context: Context) -> dict[str, Any]:
    """Return a model's description; recorded predictions are called by their folder."""
    model = dict(context.model)
    if is_recorded(model):
        model.pop("name", None)
    return model


def _context(parts: Sequence[Context], notes: Sequence[str]) -> Context:
    """Return where several reports' metrics come from."""
    sources = f"{len(parts)} sources: {parts[0].source} ... {parts[-1].source}"
    trained_on = chain.from_iterable(part.trained_on or () for part in parts)
    warned = [part for part in parts if part.geometry.get("warnings")]
    geometry = {
        "description": f"{len(warned)} of {len(parts)} sources have warnings",
        "warnings": [
            f"{part.source}: {text}" for part in warned for text in part.geometry["warnings"]
        ],
    }
    return replace(
        parts[0],
        source=parts[0].source if len(parts) == 1 else sources,
        notes=tuple(notes),
        trained_on=None if any(part.trained_on is None for part in parts) else tuple(trained_on),
        geometry=geometry,
        calibrated_on=tuple(chain.from_iterable(part.calibrated_on for part in parts)),
    )


def _by_source(sentences: Mapping[str, Sequence[str]]) -> list[str]:
    """Return all sources' sentences, prefixed by their source unless all share them."""
    first, *others = sentences.values()
    in_all = set(first).intersection(*others)
    shared = [sentence for sentence in first if sentence in in_all]
    own: list[str] = []
    for source, texts in sentences.items():
        own += [f"{source}: {text}" for text in texts if text not in in_all]
    return [*shared, *own]
