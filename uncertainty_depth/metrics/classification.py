"""Calibration and sparsification of class probabilities: expected calibration error, Brier score, removal by entropy."""

from __future__ import annotations

import math

import numpy as np

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, arrays_of
from uncertainty_depth.metrics.sparsification import (
    VARIANTS,
    Sparsification,
    curves,
    oracle_curve,
    removal_curve,
)

BLOCK = 1 << 16
"""Rows at a time: what they make stays in the cache."""


def ece(probabilities: Array, labels: Array, bins: int = 15) -> float:
    """Expected calibration error of the predicted class: mean over the pixels of `|accuracy - confidence|` of their confidence bin.

    Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017, equation 3: `bins` equal intervals, closed on the right.

    Args:
        probabilities: (N, C) rows that sum to 1, or (N,) the probability of class 1 of two.
        labels: (N,) true classes, integers from 0.
        bins: number of intervals of (0, 1].

    Returns:
        A value in [0, 1]; NaN for N = 0.

    Raises:
        ValueError: wrong shapes, a probability outside [0, 1], a row that does not sum to 1, a label that is no class, no bin.
    """
    if not isinstance(bins, (int, np.integer)) or bins < 1:
        raise ValueError(f"bins is {bins!r}; expected an integer of at least 1")
    xp, given, labels = _checked(probabilities, labels)
    if not len(given):
        return math.nan
    gaps = xp.zeros(
        (int(bins) + 1,), "float64"
    )  # the first is that of a confidence of 0, which rounding alone could give
    for start in range(0, len(given), BLOCK):
        confidence, predicted = _most_likely(xp, given[start : start + BLOCK])
        index = xp.integers(xp.lib.ceil(confidence * bins))
        gaps += xp.sums_of(
            index, xp.floats(predicted == labels[start : start + BLOCK]) - confidence, len(gaps)
        )
    return float(abs(gaps).sum()) / len(given)


def brier(probabilities: Array, labels: Array) -> float:
    """Brier score (1950): mean of `sum_c (p_c - [label = c])^2`, in [0, 2]; for the (N,) form of two classes the customary half of that, `(p -
    label)^2`.

    Arguments and errors as in `ece`; NaN for N = 0.
    """
    xp, table, labels = _checked(probabilities, labels)
    if not len(table):
        return math.nan
    if table.ndim == 1:
        gap = table - labels
        return float(gap @ gap) / len(gap)
    rows = (
        xp.lib.arange(len(table))
        if xp.lib is np
        else xp.lib.arange(len(table), device=table.device)
    )
    hit = table[rows, labels]
    return float((table * table).sum() - 2 * hit.sum()) / len(table) + 1


def entropy(probabilities: Array) -> Array:
    """Shannon entropy of each row, nats: (N, C) probabilities to (N,); 0 ln 0 is 0."""
    xp = arrays_of(probabilities)
    table = xp.floats(probabilities)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -xp.lib.where(table > 0, table * xp.lib.log(table), 0.0).sum(1)


def entropy_sparsification(
    probabilities: Array, labels: Array, variant: str = "poggi"
) -> Sparsification:
    """Sparsification of a classifier: the share of wrong classes among the rest when those of the highest entropy are removed.

    No paper fixes a convention for this; the fractions, ties, normalisation and integral are those of the named variant. The error is called
    "error_rate".

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
    xp, given, labels = _checked(probabilities, labels)
    table = xp.lib.stack((1 - given, given), 1) if given.ndim == 1 else given
    wrong = xp.floats(_most_likely(xp, table)[1] != labels)
    removal = removal_curve(xp, convention, "error_rate", entropy(table), wrong)
    return curves(
        convention, "error_rate", removal, oracle_curve(xp, convention, "error_rate", wrong, wrong)
    )


def _most_likely(xp: Arrays, table: Array) -> tuple[Array, Array]:
    """Probability of the most likely class, and this class; of equals the first."""
    if table.ndim == 1:
        other = 1 - table
        return xp.lib.maximum(table, other), table > other
    if xp.lib is np:
        return table.max(axis=1), table.argmax(axis=1)
    largest = table.max(dim=1)
    return largest.values, largest.indices


def _checked(probabilities: Array, labels: Array) -> tuple[Arrays, Array, Array]:
    """Probabilities, (N, C) or (N,), and labels as integers."""
    xp = arrays_of(probabilities, labels)
    table, labels = (
        checks.floats(xp, "probabilities", probabilities),
        checks.floats(xp, "labels", labels),
    )
    if table.ndim not in (1, 2):
        raise ValueError(
            f"probabilities has shape {tuple(table.shape)}; expected (N, C), or (N,) for two classes"
        )
    if labels.ndim != 1 or len(labels) != len(table):
        raise ValueError(
            f"labels has shape {tuple(labels.shape)}; expected ({len(table)},), one per row of probabilities"
        )
    if len(table):
        _check_values(table, labels)
    return xp, table, xp.integers(labels)


def _check_values(table: Array, labels: Array) -> None:
    if not (float(table.min()) >= 0 and float(table.max()) <= 1):
        raise ValueError(
            f"probabilities contains values from {float(table.min()):g} to {float(table.max()):g}; expected [0, 1]"
        )
    classes = 2 if table.ndim == 1 else table.shape[1]
    sums = table.sum(1) if table.ndim == 2 else np.ones(1)
    if abs(float(sums.min()) - 1) > 1e-3 or abs(float(sums.max()) - 1) > 1e-3:
        raise ValueError(
            f"probabilities has rows that sum to {float(sums.min()):g} ... {float(sums.max()):g}; expected 1"
        )
    if bool((labels != labels.round()).any()) or not (
        float(labels.min()) >= 0 and float(labels.max()) < classes
    ):
        raise ValueError(
            f"labels contains values from {float(labels.min()):g} to {float(labels.max()):g}; expected integers from 0 to {classes - 1}"
        )
