# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sentences on what a command lost or assumed, in the log and in its report."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation

logger = logging.getLogger(__name__)


def warn(sentences: Iterable[str]) -> None:
    """Log sentences as warnings."""
    for sentence in sentences:
        logger.warning(sentence)


def end_notes(evaluation: Evaluation, frames: int) -> list[str]:
    """Return a note on each reason that frames were skipped for, and on a run Ctrl-C ended."""
    notes = [f"first {reason}: {text}" for reason, text in evaluation.first_skips.items()]
    if evaluation.interrupted:
        logger.warning("interrupted: reporting on the frames scored so far; Ctrl-C again aborts")
        notes.append(f"interrupted: only the first frames of about {frames} were read")
    return notes
