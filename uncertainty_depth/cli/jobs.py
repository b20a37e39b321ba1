# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The job that a command's arguments describe."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uncertainty_depth.core.config import (
    DepthScaleConfig,
    EvaluationConfig,
    HeldOutConfig,
    PredictionConfig,
    PredictionTopics,
    PredictorConfig,
    SourceConfig,
)
from uncertainty_depth.core.options import from_arguments

if TYPE_CHECKING:
    from uncertainty_depth.stream.job import Job


def job_of(arguments: argparse.Namespace, sources: Sequence[str]) -> Job:
    """Return the job of these sources; what a command has no argument for keeps its default."""
    from uncertainty_depth.stream.job import Job

    return Job(
        sources=tuple(sources),
        model=str(getattr(arguments, "model", None) or ""),
        max_frames=getattr(arguments, "max_frames", 0),
        reading=from_arguments(SourceConfig, arguments),
        evaluation=from_arguments(EvaluationConfig, arguments),
        predictor=from_arguments(PredictorConfig, arguments),
        held_out=from_arguments(HeldOutConfig, arguments),
        topics=from_arguments(PredictionTopics, arguments),
        meaning=from_arguments(PredictionConfig, arguments),
        scale=from_arguments(DepthScaleConfig, arguments),
    )
