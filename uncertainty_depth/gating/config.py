# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the maps and clouds that are derived from sigma."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.options import option

MAX_SIGMA_M = 10_000.0
MAX_SIGMAS = 100.0


@dataclass(frozen=True)
class GatingConfig:
    """Which depth is trusted, and how far a bound lies from it."""

    max_sigma: float = option(
        0.5,
        "depth with a greater sigma is left out of depth/confident and points/confident, metres; "
        "0 disables",
        minimum=0.0,
        maximum=MAX_SIGMA_M,
    )
    max_relative_sigma: float = option(
        0.15,
        "depth with a greater sigma than this fraction of it is left out of depth/confident and "
        "points/confident; 0 disables",
        minimum=0.0,
        maximum=1000.0,
    )
    clearing_sigmas: float = option(
        2.0,
        "points/clearing lies this many sigmas before the depth: space is free up to there",
        minimum=0.0,
        maximum=MAX_SIGMAS,
    )
    coverage: float = option(
        0.95,
        "fraction of the true depths that depth/lower and depth/upper enclose",
        minimum=0.01,
        maximum=0.99,
    )
    point_stride: int = option(
        1,
        "stride in rows and columns from one point of the clouds to the next",
        minimum=1,
        maximum=64,
    )
