# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of sparse input: what is held out from it, and how old a cloud may be."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.options import option

BY_PIXEL = "pixel"
BY_RING = "ring"
RING_BAND_DEG = 0.5
"""Height of a band of elevation: it holds one ring or two of a LiDAR with 64 or 128."""
BY_HELP = (
    "what is held out: pixels, by a hash of pixel and stamp, or whole LiDAR rings (bands of "
    f"elevation of {RING_BAND_DEG} degrees)"
)


@dataclass(frozen=True)
class HeldOutConfig:
    """The known depth that a model with sparse input is scored on instead of given."""

    held_out_fraction: float = option(
        0.5,
        "model with sparse input: fraction of the known depth that is held out for scoring",
        minimum=0.0,
        maximum=1.0,
    )
    held_out_by: str = option(BY_PIXEL, BY_HELP, choices=(BY_PIXEL, BY_RING))


@dataclass(frozen=True)
class SparseInputConfig:
    """How the depth node gives the LiDAR to a model with sparse input."""

    max_cloud_age: float = option(
        0.15,
        "model with sparse input: maximum time between an image and the newest LiDAR cloud, "
        "seconds; beyond it depth is from the image alone",
        minimum=0.0,
        maximum=60.0,
    )
    held_out_fraction: float = option(
        0.0,
        "model with sparse input: fraction of the LiDAR's depth that it is not given, so that the "
        "evaluator node can score on it",
        minimum=0.0,
        maximum=1.0,
        read_only=True,
    )
    held_out_by: str = option(BY_PIXEL, BY_HELP, choices=(BY_PIXEL, BY_RING), read_only=True)
