# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calibration error, Brier score and sparsification of class probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.sparsification import (
    VARIANTS,
    Sparsification,
    curves,
    oracle_curve,
    removal_curve,
)

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
            label that is no class, no bin.
    """
    if not isinstance(bins, (int, np.integer)) or bins < 1:
        raise ValueError(f"bins is {bins!r}; expected an integer of at least 1")
    given, labels = _checked(probabilities, labels)
    if not len(given):
        return math.nan
    gaps = np.zeros(int(bins))
    for start in range(0, len(given), BLOCK):
        confidence, predicted = _most_likely(given[start : start + BLOCK])
        bin_of = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
        hit = predicted == labels[start : start + BLOCK]
        gaps += np.bincount(bin_of, hit - confidence, len(gaps))
    return float(np.abs(gaps).sum()) / len(given)


def brier(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the Brier score (1950): mean of `sum_c (p_c - [label = c])^2`, in [0, 2].

    For the (N,) form of two classes the customary half of that, `(p - label)^2`.

    Arguments and errors as in `ece`; NaN for N = 0.
    """
    table, labels = _checked(probabilities, labels)
    if not len(table):
        return math.nan
    if table.ndim == 1:
        gap = table - labels
        return float(gap @ gap) / len(gap)
    hit = table[np.arange(len(table)), labels]
    return float((table * table).sum() - 2 * hit.sum()) / len(table) + 1


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
    probabilities: ArrayLike, labels: ArrayLike, variant: str = "poggi"
) -> Sparsification:
    """Return the sparsification of a classifier by entropy.

    The fraction of wrong classes among the rest when the pixels of the highest entropy are
    removed.

    No paper fixes a convention for this; the fractions, ties, normalisation and integral are those
    of the named variant. The error is called "error_rate".

    Args:
        probabilities: (N, C) or (N,) as in `ece`.
        labels: (N,) true classes.
        variant: "poggi", "gustafsson" or "ilg".

    Returns:
        Curves and areas; NaN for N = 0.

    Raises:
        ValueError: as in `ece`, or an unknown variant.
    """
    convention = VARIANTS[checks.choice("variant", variant, tuple(VARIANTS))]
    given, labels = _checked(probabilities, labels)
    table = np.stack((1 - given, given), 1) if given.ndim == 1 else given
    wrong = (_most_likely(table)[1] != labels).astype(np.float64)
    removal = removal_curve(convention, "error_rate", entropy(table), wrong)
    return curves(
        convention, "error_rate", removal, oracle_curve(convention, "error_rate", wrong, wrong)
    )


def _most_likely(table: Floats) -> tuple[Floats, Integers]:
    """Probability of the most likely class, and this class; of equals the first."""
    if table.ndim == 1:
        other = 1 - table
        return np.maximum(table, other), (table > other).astype(np.int64)
    return table.max(axis=1), table.argmax(axis=1)


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    """Probabilities, (N, C) or (N,), and labels as integers."""
    table = checks.floats("probabilities", probabilities)
    labels = checks.floats("labels", labels)
    if table.ndim not in (1, 2):
        raise ValueError(
            f"probabilities has shape {tuple(table.shape)}; "
            "expected (N, C), or (N,) for two classes"
        )
    if labels.ndim != 1 or len(labels) != len(table):
        raise ValueError(
            f"labels has shape {tuple(labels.shape)}; "
            f"expected ({len(table)},), one per row of probabilities"
        )
    if len(table):
        _check_values(table, labels)
    return table, labels.astype(np.int64)


def _check_values(table: Floats, labels: Floats) -> None:
    if not (float(table.min()) >= 0 and float(table.max()) <= 1):
        raise ValueError(
            f"probabilities contains values from {float(table.min()):g} to "
            f"{float(table.max()):g}; expected [0, 1]"
        )
    classes = 2 if table.ndim == 1 else table.shape[1]
    sums = table.sum(1) if table.ndim == 2 else np.ones(1)
    if abs(float(sums.min()) - 1) > 1e-3 or abs(float(sums.max()) - 1) > 1e-3:
        raise ValueError(
            f"probabilities has rows that sum to {float(sums.min()):g} ... "
            f"{float(sums.max()):g}; expected 1"
        )
    if bool((labels != labels.round()).any()) or not (
        float(labels.min()) >= 0 and float(labels.max()) < classes
    ):
        raise ValueError(
            f"labels contains values from {float(labels.min()):g} to {float(labels.max()):g}; "
            f"expected integers from 0 to {classes - 1}"
        )
