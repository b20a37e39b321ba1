# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of class probabilities in one pass over the pixels, in bounded memory.

Accuracy, mean IoU, Brier score, ECE and the reliability diagram are exact. The sparsification
curves come from logarithmic bins of the entropy and of the Brier score, 128 in each octave: of a
bin that a fraction cuts, the pixels count in proportion. So a mean Brier score of what entropy
leaves is off by at most 2, the largest one, times the fraction of what is left that lies in the
bin cut; one of what the oracle leaves by less than 1 %.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.bins import Bins, first_bin_sums
from uncertainty_depth.metrics.classification import (
    brier_values,
    checked,
    confidence_bin,
    entropy,
    mean_iou,
    most_likely,
)
from uncertainty_depth.metrics.removal_curves import remaining_numbers
from uncertainty_depth.metrics.sparsification import Sparsification, curves
from uncertainty_depth.metrics.sparsification_variants import GUSTAFSSON

RANKS = Bins(-40, 3, 7)
"""Of entropies, up to ln C < 8 nats, and of Brier scores, up to 2."""


class OnlineClassification:
    """Accumulates the scores of class probabilities over any frames.

    The state is 0.2 MB, and C x C counts.

    Args:
        classes: number C of them.
        ignored: label of the pixels that are not scored; None for none.
        bins: of the confidence.

    Raises:
        ValueError: fewer than two classes, or no bin.

    Examples:
        >>> scores = OnlineClassification(2, ignored=255)
        >>> scores.update([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]], [0, 1, 255])
        >>> scores.compute()["accuracy"]
        1.0
    """

    def __init__(self, classes: int, ignored: int | None = None, bins: int = 10) -> None:
        if classes < 2:
            raise ValueError(f"classes is {classes!r}; expected an integer of at least 2")
        checks.bin_number(bins)
        self.classes = classes
        self.ignored = ignored
        self._bins = int(bins)
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
        table, truth = checked(probabilities, labels, self.ignored)
        if table.ndim != 2 or table.shape[1] != self.classes:
            raise ValueError(
                f"probabilities has shape {table.shape}; expected (N, {self.classes}), a column "
                "per class"
            )
        if not len(table):
            return
        confidence, predicted = most_likely(table)
        error = brier_values(table, truth)
        pairs = np.bincount(truth * self.classes + predicted, minlength=self.classes**2)
        confidence_of = confidence_bin(confidence, self._bins)
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

        AUSE is that of `sparsification`.
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
        """Return the sparsification of the Brier score by entropy, variant "gustafsson"."""
        number = self.pixels
        if not number:
            blank = np.full(len(GUSTAFSSON.fractions), np.nan)
            return curves(GUSTAFSSON, "brier", blank, blank)
        remaining = remaining_numbers(GUSTAFSSON, number)
        removal = self._mean_of_first("by_entropy", remaining)
        oracle = self._mean_of_first("by_error", remaining)
        return curves(GUSTAFSSON, "brier", removal, oracle)

    def reliability(self) -> dict[str, Floats]:
        """Return each bin's number of pixels, mean confidence and accuracy, (bins,) each.

        NaN in a bin without pixels.
        """
        count, confidence, hits = self._tables["reliability"]
        with np.errstate(invalid="ignore"):
            return {"pixels": count, "confidence": confidence / count, "accuracy": hits / count}

    def _mean_of_first(self, name: str, numbers: Integers) -> Floats:
        counts, errors = self._tables[name]
        return first_bin_sums(counts, errors, numbers) / numbers

    def _add(self, added: dict[str, Any]) -> None:
        for name, table in added.items():
            self._tables[name] += table


def _sums(place: Integers, number: int, *values: NDArray) -> Floats:
    """Return pixels and the sum of each value in each of `number` bins, (1 + values, number)."""
    counts = np.bincount(place, minlength=number).astype(np.float64)
    return np.stack((counts, *(np.bincount(place, value, number) for value in values)))
