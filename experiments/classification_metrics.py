# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of class probabilities: accuracy, mean IoU, Brier score, calibration error, AUSE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments.pooled_sparsification import FRACTIONS, kept_numbers, normalised
from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Integers
from uncertainty_depth.metrics.bins import Bins, first_bin_sums
from uncertainty_depth.metrics.sparsification import Sparsification

RANKS = Bins(-40, 3, 7)
"""Bins for entropies, up to ln C < 8 nats, and for Brier scores, up to 2."""


class OnlineClassification:
    """Accumulates the scores of class probabilities over any frames.

    The state is 0.2 MB, and C x C counts.

    Args:
        classes: number C of them.
        ignored: label of the pixels that are not scored; None for none.
        bins: of the confidence.

    Raises:
        ValueError: fewer than two classes.

    Examples:
        >>> scores = OnlineClassification(2, ignored=255)
        >>> scores.update([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], [0, 1, 255])
        >>> scores.compute()["accuracy"]
        1.0
    """

    def __init__(self, classes: int, ignored: int | None = None, bins: int = 10) -> None:
        if classes < 2:
            raise ValueError(f"classes is {classes!r}; expected an integer of at least 2")
        self.classes = classes
        self.ignored = ignored
        self._bins = bins
        self._tables: dict[str, Any] = {
            "confusion": np.zeros((classes, classes), np.int64),
            "reliability": np.zeros((3, self._bins)),
            "by_entropy": np.zeros((2, RANKS.number)),
            "by_error": np.zeros((2, RANKS.number)),
        }

    @property
    def pixels(self) -> int:
        """Pixels scored so far."""
        return int(self._tables["confusion"].sum())

    @property
    def nbytes(self) -> int:
        """Size of the state."""
        return sum(table.nbytes for table in self._tables.values())

    def update(self, probabilities: ArrayLike, labels: ArrayLike) -> None:
        """Fold in the pixels of a frame; those whose label is the ignored one are left out.

        Args:
            probabilities: (N, C) rows that sum to 1.
            labels: (N,) true classes, integers from 0, or the ignored label.

        Raises:
            ValueError: wrong shapes, a probability outside [0, 1], a row that does not sum to 1, a
                label that is neither a class nor the ignored one.
        """
        table, truth = self._checked(probabilities, labels)
        if not len(table):
            return
        confidence = table.max(axis=1)
        predicted = table.argmax(axis=1)
        hit = table[np.arange(len(table)), truth]
        error = np.maximum(np.einsum("nc,nc->n", table, table) - 2 * hit + 1, 0.0)
        pairs = np.bincount(truth * self.classes + predicted, minlength=self.classes**2)
        confidence_of = (
            np.ceil(confidence * self._bins).astype(np.int64) - 1
        )  # closed on the right
        confidence_of = np.clip(confidence_of, 0, self._bins - 1)
        entropy_of = RANKS.index(np.maximum(entropy(table), 0.0))
        error_of = RANKS.index(error)
        self._add(
            {
                "confusion": pairs.reshape(self.classes, self.classes),
                "reliability": _sums(confidence_of, self._bins, confidence, predicted == truth),
                "by_entropy": _sums(entropy_of, RANKS.number, error),
                "by_error": _sums(error_of, RANKS.number, error),
            }
        )

    def merge(self, other: OnlineClassification) -> None:
        """Add the frames of another accumulator.

        Raises:
            ValueError: it has another number of classes or bins.
        """
        for name in ("confusion", "reliability"):
            shape = self._tables[name].shape
            other_shape = other._tables[name].shape
            if shape != other_shape:
                raise ValueError(
                    f"other has a {name} table of {other_shape}; expected {shape}, as here"
                )
        self._add(other._tables)

    def compute(self) -> dict[str, float]:
        """Return pixels, accuracy, mean IoU, Brier score, ECE and AUSE; NaN without pixels.

        The Brier score (1950) is the mean of `sum_c (p_c - [label = c])^2`. ECE is equation 3 of
        Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017.
        AUSE is the area of `sparsification`.
        """
        confusion = self._tables["confusion"]
        pixels = self.pixels
        _, confidence, hits = self._tables["reliability"]
        per_pixel = 1 / pixels if pixels else math.nan
        return {
            "pixels": pixels,
            "accuracy": float(np.trace(confusion)) * per_pixel,
            "mean_iou": mean_iou(confusion),
            "brier": float(self._tables["by_error"][1].sum()) * per_pixel,
            "ece": float(np.abs(hits - confidence).sum()) * per_pixel,
            "ause": self.sparsification().ause,
        }

    def sparsification(self) -> Sparsification:
        """Return the sparsification of the Brier score by entropy (Gustafsson et al.)."""
        number = self.pixels
        if not number:
            blank = np.full(len(FRACTIONS), np.nan)
            return normalised(blank, blank)
        remaining = kept_numbers(number)
        removal = self._mean_of_first("by_entropy", remaining)
        oracle = self._mean_of_first("by_error", remaining)
        return normalised(removal, oracle)

    def reliability(self) -> dict[str, Floats]:
        """Return each bin's number of pixels, mean confidence and accuracy, (bins,) each.

        NaN in a bin without pixels.
        """
        count, confidence, hits = self._tables["reliability"]
        with np.errstate(invalid="ignore"):
            return {"pixels": count, "confidence": confidence / count, "accuracy": hits / count}

    def _checked(self, probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
        """Return the rows and labels of the pixels that are scored."""
        table = checks.floats("probabilities", probabilities)
        truth = checks.floats("labels", labels)
        if table.ndim != 2 or table.shape[1] != self.classes:
            raise ValueError(
                f"probabilities has shape {table.shape}; expected (N, {self.classes}), a column "
                "per class"
            )
        if truth.shape != (len(table),):
            raise ValueError(
                f"labels has shape {truth.shape}; expected ({len(table)},), one per row of "
                "probabilities"
            )
        if self.ignored is not None:
            scored = truth != self.ignored
            table = table[scored]
            truth = truth[scored]
        if len(table):
            _check_probabilities(table)
            _check_labels(truth, self.classes, self.ignored)
        return table, truth.astype(np.int64)

    def _mean_of_first(self, name: str, numbers: Integers) -> Floats:
        counts, errors = self._tables[name]
        return first_bin_sums(counts, errors, numbers) / numbers

    def _add(self, added: dict[str, Any]) -> None:
        for name, table in added.items():
            self._tables[name] += table


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


def entropy(probabilities: ArrayLike) -> Floats:
    """Return the Shannon entropy of each row, nats: (N, C) probabilities to (N,); 0 ln 0 is 0."""
    table = checks.floats("probabilities", probabilities)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(table > 0, table * np.log(table), 0.0).sum(1)


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


def _sums(place: Integers, number: int, *values: NDArray) -> Floats:
    """Return pixels and the sum of each value in each of `number` bins, (1 + values, number)."""
    counts = np.bincount(place, minlength=number).astype(np.float64)
    return np.stack((counts, *(np.bincount(place, value, number) for value in values)))


def _check_probabilities(table: Floats) -> None:
    if not (float(table.min()) >= 0 and float(table.max()) <= 1):
        raise ValueError(
            f"probabilities contains values from {float(table.min()):g} to "
            f"{float(table.max()):g}; expected [0, 1]"
        )
    sums = table.sum(1)
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
