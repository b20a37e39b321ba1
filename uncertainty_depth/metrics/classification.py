# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calibration error, Brier score and sparsification of class probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.removal_curves import oracle_curve, removal_curve
from uncertainty_depth.metrics.sparsification import Sparsification, curves
from uncertainty_depth.metrics.sparsification_variants import VARIANTS

BLOCK = 1 << 16
"""Rows at a time: what they make stays in the cache."""


def ece(probabilities: ArrayLike, labels: ArrayLike, bins: int = 10) -> float:
    """Return the expected calibration error of the predicted class.

    The mean over the pixels of `|accuracy - confidence|` of their confidence bin.

    Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017,
    equation 3: `bins` equal intervals, closed on the right.

    Args:
        probabilities: (N, C) rows that sum to 1, or (N,) the probability of class 1 of two.
        labels: (N,) true classes, integers from 0.
        bins: number of intervals of (0, 1].

    Returns:
        A value in [0, 1]; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a probability outside [0, 1], a row that does not sum to 1, a
            label outside the classes, no bin.
    """
    checks.bin_number(bins)
    table, truth = checked(probabilities, labels)
    if not len(table):
        return math.nan
    gaps = np.zeros(int(bins))
    for start in range(0, len(table), BLOCK):
        confidence, predicted = most_likely(table[start : start + BLOCK])
        hit = predicted == truth[start : start + BLOCK]
        gaps += np.bincount(confidence_bin(confidence, int(bins)), hit - confidence, len(gaps))
    return float(np.abs(gaps).sum()) / len(table)


def confidence_bin(confidence: Floats, bins: int) -> Integers:
    """Return which of `bins` equal intervals of (0, 1], closed on the right, each lies in."""
    return np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)


def mean_iou(confusion: ArrayLike) -> float:
    """Return the mean over the classes of intersection over union.

    Args:
        confusion: (C, C) pixels by true (rows) and predicted class (columns).

    Returns:
        A value in [0, 1]; classes that are neither true nor predicted anywhere are left out. NaN
        where there is no pixel.
    """
    table = checks.floats("confusion", confusion)
    intersection = np.diag(table)
    union = table.sum(0) + table.sum(1) - intersection
    present = union > 0
    return float((intersection[present] / union[present]).mean()) if present.any() else math.nan


def brier(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the Brier score (1950): mean of `sum_c (p_c - [label = c])^2`, in [0, 2].

    For the (N,) form of two classes the customary half of that, `(p - label)^2`.

    Arguments and errors as in `ece`; NaN for N = 0.
    """
    table, truth = checked(probabilities, labels)
    if not len(table):
        return math.nan
    if table.ndim == 1:
        gap = table - truth
        return float(gap @ gap) / len(gap)
    hit = table[np.arange(len(table)), truth]
    return float((table * table).sum() - 2 * hit.sum()) / len(table) + 1


def brier_values(table: Floats, labels: Integers) -> Floats:
    """Return `sum_c (p_c - [label = c])^2` of each row of (N, C), (N,)."""
    hit = table[np.arange(len(table)), labels]
    return np.maximum(np.einsum("nc,nc->n", table, table) - 2 * hit + 1, 0.0)


def auroc(negatives: ArrayLike, positives: ArrayLike) -> float:
    """Return the probability that a positive scores higher than a negative, ties counting half.

    The area under the receiver operating characteristic, by the Mann-Whitney statistic.

    Args:
        negatives: (N,) scores, such as sigma of clean frames.
        positives: (M,) scores, such as sigma of corrupted frames.

    Returns:
        0.5 for scores that tell nothing; NaN where either is empty.
    """
    low = np.sort(np.asarray(negatives, np.float64))
    high = np.asarray(positives, np.float64)
    if not low.size or not high.size:
        return float("nan")
    below = np.searchsorted(low, high, side="left")
    not_above = np.searchsorted(low, high, side="right")
    return float((below + not_above).sum() / (2 * low.size * high.size))


def entropy(probabilities: ArrayLike) -> Floats:
    """Return the Shannon entropy of each row, nats: (N, C) probabilities to (N,); 0 ln 0 is 0."""
    table = checks.floats("probabilities", probabilities)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(table > 0, table * np.log(table), 0.0).sum(1)


def entropy_sparsification(
    probabilities: ArrayLike,
    labels: ArrayLike,
    variant: str = "poggi",
    error: str = "error_rate",
) -> Sparsification:
    """Return the sparsification of a classifier by entropy.

    The fraction of wrong classes, or the mean Brier score, of the rest when the pixels of the
    highest entropy are removed.

    Fractions, ties, normalisation and integral are those of the named variant. Gustafsson et al.
    2020, section 4.3, is "gustafsson" with "brier"; no paper fixes the others.

    Args:
        probabilities: (N, C) or (N,) as in `ece`.
        labels: (N,) true classes.
        variant: "poggi", "gustafsson" or "ilg".
        error: "error_rate" or "brier".

    Returns:
        Curves and areas; NaN for N = 0.

    Raises:
        ValueError: as in `ece`, or an unknown variant or error.
    """
    convention = VARIANTS[checks.choice("variant", variant, tuple(VARIANTS))]
    checks.choice("error", error, ("error_rate", "brier"))
    table, truth = checked(probabilities, labels)
    if table.ndim == 1:
        table = np.stack((1 - table, table), 1)
    if error == "brier":
        values = brier_values(table, truth)
    else:
        values = (most_likely(table)[1] != truth).astype(np.float64)
    removal = removal_curve(convention, error, np.maximum(entropy(table), 0.0), values)
    return curves(convention, error, removal, oracle_curve(convention, error, values, values))


def most_likely(table: Floats) -> tuple[Floats, Integers]:
    """Return the probability of the most likely class, and this class; of equals the first."""
    if table.ndim == 1:
        other = 1 - table
        return np.maximum(table, other), (table > other).astype(np.int64)
    return table.max(axis=1), table.argmax(axis=1)


def checked(
    probabilities: ArrayLike, labels: ArrayLike, ignored: int | None = None
) -> tuple[Floats, Integers]:
    """Return probabilities, (N, C) or (N,), and labels as integers, without the ignored ones.

    Raises:
        ValueError: as in `ece`; a label is neither a class nor `ignored`.
    """
    table = checks.floats("probabilities", probabilities)
    truth = checks.floats("labels", labels)
    if table.ndim not in (1, 2):
        raise ValueError(
            f"probabilities has shape {tuple(table.shape)}; "
            "expected (N, C), or (N,) for two classes"
        )
    if truth.ndim != 1 or len(truth) != len(table):
        raise ValueError(
            f"labels has shape {tuple(truth.shape)}; "
            f"expected ({len(table)},), one per row of probabilities"
        )
    if ignored is not None:
        scored = truth != ignored
        table = table[scored]
        truth = truth[scored]
    if len(table):
        _check_probabilities(table)
        _check_labels(truth, 2 if table.ndim == 1 else table.shape[1], ignored)
    return table, truth.astype(np.int64)


def _check_probabilities(table: Floats) -> None:
    if not (float(table.min()) >= 0 and float(table.max()) <= 1):
        raise ValueError(
            f"probabilities contains values from {float(table.min()):g} to "
            f"{float(table.max()):g}; expected [0, 1]"
        )
    sums = table.sum(1) if table.ndim == 2 else np.ones(1)
    if abs(float(sums.min()) - 1) > 1e-3 or abs(float(sums.max()) - 1) > 1e-3:
        raise ValueError(
            f"probabilities has rows that sum to {float(sums.min()):g} ... "
            f"{float(sums.max()):g}; expected 1"
        )


def _check_labels(labels: Floats, classes: int, ignored: int | None) -> None:
    if bool((labels != labels.round()).any()) or not (
        float(labels.min()) >= 0 and float(labels.max()) < classes
    ):
        also = "" if ignored is None else f", or {ignored} for what is not scored"
        raise ValueError(
            f"labels contains values from {float(labels.min()):g} to {float(labels.max()):g}; "
            f"expected integers from 0 to {classes - 1}{also}"
        )
