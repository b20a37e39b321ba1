# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The end of every command that scores: its report on disk, and the scores on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uncertainty_depth.report import report, summary, verdict
from uncertainty_depth.report.evaluation import Evaluation


def write_and_print(
    evaluation: Evaluation, folder: Path, context: report.Context
) -> dict[str, Any]:
    """Write a report, print its scores and verdict, and return its summary.

    Raises:
        SourceError: the report cannot be written.
    """
    page = report.write(evaluation, folder, context)
    scores = report.summarize(evaluation, context)
    print(summary.table(scores, context.model))
    print("\n".join(["", *verdict.sentences(scores["verdict"])]))
    print(f"report: {page}")
    return scores
