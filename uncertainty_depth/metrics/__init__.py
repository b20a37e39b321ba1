# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics of depth and of its uncertainty: exact functions and a one-pass accumulator."""

from uncertainty_depth.metrics.calibration import auce, coverage, kl_divergence, nll, spearman
from uncertainty_depth.metrics.classification import brier, ece, entropy_sparsification
from uncertainty_depth.metrics.depth import depth_errors, valid_pixels
from uncertainty_depth.metrics.intervals import DepthIntervals, by_depth
from uncertainty_depth.metrics.merci import merci, n_merci, n_merci_curve
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.online_classification import OnlineClassification
from uncertainty_depth.metrics.proper_scores import crps, interval_score, mpiw
from uncertainty_depth.metrics.sparsification import Sparsification, aurc, sparsification

__all__ = [
    "DepthIntervals",
    "OnlineClassification",
    "OnlineMetrics",
    "Sparsification",
    "auce",
    "aurc",
    "brier",
    "by_depth",
    "coverage",
    "crps",
    "depth_errors",
    "ece",
    "entropy_sparsification",
    "interval_score",
    "kl_divergence",
    "merci",
    "mpiw",
    "n_merci",
    "n_merci_curve",
    "nll",
    "sparsification",
    "spearman",
    "valid_pixels",
]
