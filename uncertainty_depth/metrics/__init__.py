# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics for depth and its uncertainty: the exact functions."""

from uncertainty_depth.metrics.calibration import auce, coverage, crps, interval_score, mpiw, nll
from uncertainty_depth.metrics.depth import depth_errors, valid_pixels
from uncertainty_depth.metrics.merci import merci, n_merci
from uncertainty_depth.metrics.sparsification import (
    Sparsification,
    aurc,
    sparsification,
    spearman,
)

__all__ = [
    "Sparsification",
    "auce",
    "aurc",
    "coverage",
    "crps",
    "depth_errors",
    "interval_score",
    "merci",
    "mpiw",
    "n_merci",
    "nll",
    "sparsification",
    "spearman",
    "valid_pixels",
]
