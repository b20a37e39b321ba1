# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options for what is published beside depth and sigma: trusted depth, bounds, colours."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.config.limits import MAX_DEPTH_M
from uncertainty_depth.core.options import option

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
        live=True,
    )
    max_relative_sigma: float = option(
        0.15,
        "depth with a greater sigma than this fraction of it is left out of depth/confident and "
        "points/confident; 0 disables",
        minimum=0.0,
        maximum=1000.0,
        live=True,
    )
    clearing_sigmas: float = option(
        2.0,
        "points/clearing lies at least this many sigmas before the depth: up to there is free",
        minimum=0.0,
        maximum=MAX_SIGMAS,
        live=True,
    )
    clearing_fraction: float = option(
        1.0,
        "points/clearing lies at most at this fraction of the depth",
        minimum=0.01,
        maximum=1.0,
        live=True,
    )
    clearing_margin: float = option(
        0.2,
        "a ray of points/clearing ends at the nearest bound that it passes within this distance, "
        "metres: two cells of the costmap; 0 disables",
        minimum=0.0,
        maximum=2.0,
        live=True,
    )
    coverage: float = option(
        0.95,
        "fraction of the true depths that depth/lower and depth/upper enclose",
        minimum=0.01,
        maximum=0.99,
        live=True,
    )
    point_stride: int = option(
        1,
        "stride in rows and columns from one point of the clouds to the next",
        minimum=1,
        maximum=64,
        live=True,
    )


@dataclass(frozen=True)
class ColorConfig:
    """Colour scales for depth and sigma images; fixed, so that images can be compared."""

    color_max_depth: float = option(
        10.0,
        "depth at the upper end of its colour scale, metres; sigma's ends at a tenth of it",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
        expert=True,
        live=True,
    )

    @property
    def color_max_sigma(self) -> float:  # noqa: D102  an attribute
        return self.color_max_depth / 10


@dataclass(frozen=True)
class OutputConfig(ColorConfig, GatingConfig):
    """What is published of depth and sigma beside the maps themselves."""
