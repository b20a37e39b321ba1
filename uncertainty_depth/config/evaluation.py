# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of evaluation and calibration."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.config.choices import MAX_COUNT, MAX_DEPTH_M
from uncertainty_depth.options import option


@dataclass(frozen=True)
class EvaluationConfig:
    """What is scored, and how."""

    min_depth: float = option(
        0.1,
        "minimum ground truth depth that is scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "maximum ground truth depth that is scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    alpha: float = option(
        0.95,
        "fraction of the pixels whose error the scaled sigma of n-MeRCI must cover",
        minimum=0.01,
        maximum=1.0,
        expert=True,
    )
    example_frames: int = option(
        6,
        "number of frames plotted in the report, half of them those with the largest error",
        minimum=0,
        maximum=100,
        expert=True,
        on_robot=False,
    )


@dataclass(frozen=True)
class RequirementConfig:
    """Requirements that the metrics must meet."""

    require: tuple[str, ...] = option(
        (),
        "limit of a metric, e.g. 'auce<=0.05', or a .yaml file with a list of them; repeatable",
    )


@dataclass(frozen=True)
class CalibrationConfig:
    """How the calibration of sigma is fitted."""

    max_frames: int = option(
        2000,
        "maximum number of frames used per source, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )
    min_depth: float = option(
        0.1,
        "minimum ground truth depth that is used, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "maximum ground truth depth that is used, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    distribution: str = option(
        "",
        "distribution of the error; empty: the model's variance head, or a Gaussian",
        choices=("", "gaussian", "laplace"),
        expert=True,
    )
