# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames for the viewer with their scores: of a source, or of a report."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth.errors import SourceError
from uncertainty_depth.records import Frame, Skipped
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import KEYS
from uncertainty_depth.report.model_facts import law_of
from uncertainty_depth.report.saved_summary import read_summary
from uncertainty_depth.viewing.recorder import NOMINAL, SCORES

FRAMES = "frames.csv"
SUMMARY = "summary.json"


def scores_of(row: Mapping[str, Any], law: str = "gaussian") -> dict[str, float]:
    """Return the scores for the viewer from a frame's metrics by dotted names.

    Args:
        row: a frame's metrics, as `Evaluation.add` and `frames.csv` have them.
        law: distribution of the error, "gaussian" or "laplace", for coverage and AUCE.
    """
    suffix = "_laplace" if law == "laplace" else ""
    scores = {}
    for name in (*SCORES, *NOMINAL):
        places = (f"uncertainty.{name}{suffix}", f"uncertainty.{name}", f"depth.{name}")
        value = next((row[place] for place in places if place in row), None)
        if value is not None:
            scores[name] = float(value)
    return scores


def scored_frames(
    frames: Iterable[Frame | Skipped], evaluation: Evaluation, law: str = "gaussian"
) -> Iterator[tuple[Frame, dict[str, float]]]:
    """Yield each frame, which has a prediction, with its scores; others are counted."""
    for record in frames:
        if isinstance(record, Skipped):
            evaluation.skip(record)
        else:
            yield record, scores_of(evaluation.add(record) or {}, law)


def is_report(path: Path) -> bool:
    """Return whether a folder is a report."""
    return (path / SUMMARY).is_file()


def report_frames(report: Path) -> Iterator[tuple[Frame, dict[str, float]]]:
    """Yield the scores of each frame of a report: it holds no maps of all frames.

    Raises:
        SourceError: the report has no metrics of each frame, or they cannot be read.
    """
    path = report / FRAMES
    law = law_of_report(report)
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                numbers = {name: value for name, value in row.items() if name not in KEYS}
                frame = Frame(int(row["stamp_ns"]), row["frame"])
                yield frame, scores_of(numbers, law)
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise SourceError(
            f"{path} cannot be read: {error!r}; expected the metrics of each frame, which "
            "evaluate writes"
        ) from error


def law_of_report(report: Path) -> str:
    """Return the distribution that the model's head assumes, by a report's summary.

    Raises:
        SourceError: the summary cannot be read.
    """
    return law_of(read_summary(report)["model"])
