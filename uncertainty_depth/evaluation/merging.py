# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read reports back, and fold the evaluations behind them into one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.evaluation import saved_state
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.report import Context

NOT_COMPARED = ("example_frames",)
"""Options of an evaluation that change no score."""


@dataclass(frozen=True)
class SavedReport:
    """A report that was read back.

    Attributes:
        folder: of the report.
        summary: its `summary.json`.
        evaluation: with every sum; its table of frames is read only.
        details: what else is needed to write it again.
    """

    folder: Path
    summary: Mapping[str, Any]
    evaluation: Evaluation
    details: Mapping[str, Any]


def read_report(folder: Path) -> SavedReport:
    """Return the report in a folder.

    Raises:
        SourceError: there is none, it is damaged, or of another format.
    """
    path = folder / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{folder} holds no report ({error}); expected a folder that `evaluate` or the "
            "evaluator node wrote"
        ) from error
    saved = saved_state.read(folder)
    return SavedReport(folder, summary, saved.evaluation, saved.details)


def check_same_config(reports: Sequence[SavedReport]) -> None:
    """Raise `ConfigError` if reports were scored with other options than the first."""
    first = reports[0]
    for report in reports[1:]:
        for name in (item.name for item in fields(EvaluationConfig)):
            one = getattr(first.evaluation.config, name)
            other = getattr(report.evaluation.config, name)
            if one != other and name not in NOT_COMPARED:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(
                    f"{report.folder} was scored with {name} {other}, {first.folder} with {one}; "
                    f"expected the same: evaluate one of them again with {option}"
                )


def merge(reports: Sequence[SavedReport]) -> tuple[Evaluation, Context]:
    """Return the evaluation of all frames of all reports, and where they come from.

    Sums are added in the order of the reports: the same reports in the same order give the same
    bits.

    Raises:
        ConfigError: they were scored with other options, or are of other models.
    """
    check_same_config(reports)
    first = reports[0]
    for report in reports[1:]:
        if report.summary["model"] != first.summary["model"]:
            raise ConfigError(
                f"{report.folder} is of another model than {first.folder}; expected reports of "
                "one model: `compare` compares models"
            )
    merged = Evaluation(first.evaluation.config, None, first.evaluation.without_size)
    for report in reports:
        merged.merge(report.evaluation, str(report.summary["source"]))
    return merged, _context(reports)


def _context(reports: Sequence[SavedReport]) -> Context:
    sources = [str(report.summary["source"]) for report in reports]
    name = f"{len(sources)} sources" if len(sources) > 1 else sources[0]
    trained_on = [report.details["trained_on"] for report in reports]
    known = [sentence for sentences in trained_on for sentence in sentences or ()]
    return Context(
        f"{name}: {sources[0]}" + (f" ... {sources[-1]}" if len(sources) > 1 else ""),
        reports[0].summary["model"],
        tuple(_by_source(reports, "notes")),
        reports[0].details["options"],
        None if None in trained_on else tuple(known),
        _geometry(reports),
    )


def _by_source(reports: Sequence[SavedReport], name: str) -> list[str]:
    """Return the sentences of all reports; those that not all share begin with their source."""
    lists = [report.summary[name] for report in reports]
    shared = [sentence for sentence in lists[0] if all(sentence in each for each in lists)]
    own = [
        f"{report.summary['source']}: {sentence}"
        for report in reports
        for sentence in report.summary[name]
        if sentence not in shared
    ]
    return [*shared, *own]


def _geometry(reports: Sequence[SavedReport]) -> dict[str, Any]:
    warned = {
        str(report.summary["source"]): report.summary["geometry"].get("warnings", [])
        for report in reports
    }
    warnings = [f"{source}: {text}" for source, texts in warned.items() for text in texts]
    number = sum(bool(texts) for texts in warned.values())
    return {
        "description": f"{number} of {len(warned)} sources have warnings",
        "warnings": warnings,
    }
