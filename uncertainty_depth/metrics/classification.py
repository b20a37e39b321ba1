"""Calibration and sparsification of class probabilities: expected calibration error, Brier score, removal by entropy."""

from __future__ import annotations

import math

import numpy as np

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Array, Arrays, arrays_of
from uncertainty_depth.metrics.sparsification import VARIANTS, Sparsification, curves, oracle_curve, removal_curve


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
    if bins < 1:
        raise ValueError(f"bins is {bins!r}; expected at least 1")
    xp, table, labels = _checked(probabilities, labels)
    if not len(table):
        return math.nan
    confidence, predicted = _row_maximum(xp, table)
    gaps = xp.zeros((bins,), "float64")
    index = xp.limit_(xp.integers(xp.lib.ceil(confidence * bins)) - 1, bins - 1)
    xp.add_at(gaps, index, xp.floats(predicted == labels) - confidence)
    return float(abs(gaps).sum()) / len(table)


def brier(probabilities: Array, labels: Array) -> float:
    """Brier score (1950): mean of `sum_c (p_c - [label = c])^2`, in [0, 2]; for the (N,) form of two classes the customary half of that, `(p -
    label)^2`.

    Arguments and errors as in `ece`; NaN for N = 0.
    """
    xp, table, labels = _checked(probabilities, labels)
    if not len(table):
        return math.nan
    if table.shape[1] == 2 and np.ndim(probabilities) == 1:
        gap = table[:, 1] - labels
        return float(gap @ gap) / len(gap)
    rows = xp.lib.arange(len(table)) if xp.lib is np else xp.lib.arange(len(table), device=table.device)
    hit = table[rows, labels]
    return float((table * table).sum() - 2 * hit.sum()) / len(table) + 1


def entropy(probabilities: Array) -> Array:
    """Shannon entropy of each row, nats: (N, C) probabilities to (N,); 0 ln 0 is 0."""
    xp = arrays_of(probabilities)
    table = xp.floats(probabilities)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -xp.lib.where(table > 0, table * xp.lib.log(table), 0.0).sum(1)


def entropy_sparsification(probabilities: Array, labels: Array, variant: str = "poggi") -> Sparsification:
    """Sparsification of a classifier: the share of wrong classes among the rest when those of the highest entropy are removed.

    No paper fixes a convention for this; the fractions, ties, normalisation and integral are those of the named variant. The error is called
    "error_rate".

    Args:
        probabilities: (N, C) or (N,) as in `ece`.
        labels: (N,) true classes.
        variant: "poggi", "gustafsson" or "ilg".
    """
    convention = VARIANTS[checks.choice("variant", variant, tuple(VARIANTS))]
    xp, table, labels = _checked(probabilities, labels)
    wrong = xp.floats(_row_maximum(xp, table)[1] != labels)
    removal = removal_curve(xp, convention, "error_rate", entropy(table), wrong)
    return curves(convention, "error_rate", removal, oracle_curve(xp, convention, "error_rate", wrong, wrong))


def _row_maximum(xp: Arrays, table: Array) -> tuple[Array, Array]:
    """Largest probability of each row and its class."""
    if xp.lib is np:
        return table.max(axis=1), table.argmax(axis=1)
    largest = table.max(dim=1)
    return largest.values, largest.indices


def _checked(probabilities: Array, labels: Array) -> tuple[Arrays, Array, Array]:
    """Probabilities as an (N, C) table and labels as integers."""
    xp = arrays_of(probabilities, labels)
    table, labels = xp.floats(probabilities), xp.floats(labels)
    if table.ndim not in (1, 2):
        raise ValueError(f"probabilities has shape {tuple(table.shape)}; expected (N, C), or (N,) for two classes")
    if labels.ndim != 1 or len(labels) != len(table):
        raise ValueError(f"labels has shape {tuple(labels.shape)}; expected ({len(table)},), one per row of probabilities")
    if table.ndim == 1:
        table = xp.lib.stack((1 - table, table), 1)
    if len(table):
        _check_values(table, labels)
    return xp, table, xp.integers(labels)


def _check_values(table: Array, labels: Array) -> None:
    if not (float(table.min()) >= 0 and float(table.max()) <= 1):
        raise ValueError(f"probabilities contains values from {float(table.min()):g} to {float(table.max()):g}; expected [0, 1]")
    sums = table.sum(1)
    if abs(float(sums.min()) - 1) > 1e-3 or abs(float(sums.max()) - 1) > 1e-3:
        raise ValueError(f"probabilities has rows that sum to {float(sums.min()):g} ... {float(sums.max()):g}; expected 1")
    classes = table.shape[1]
    if bool((labels != labels.round()).any()) or not (float(labels.min()) >= 0 and float(labels.max()) < classes):
        raise ValueError(f"labels contains values from {float(labels.min()):g} to {float(labels.max()):g}; expected integers from 0 to {classes - 1}")
