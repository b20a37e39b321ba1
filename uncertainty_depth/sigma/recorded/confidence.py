# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each type of confidence means: its range, and its monotone map to an uncertainty.

An uncertainty is larger if the depth is less certain. For types with a unit, it is the standard
deviation in the depth's unit. For other types, it only ranks until a map is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats32
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.metrics.arrays import trapezoid
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.registry import BY_NAME
from uncertainty_depth.metrics.sparsification import FRACTIONS, STATISTICS
from uncertainty_depth.metrics.state import PLOTTED_FRACTIONS, Sums
from uncertainty_depth.sigma.calibration.fit import (
    NO_CONFIDENCE,
    RECORDED_SIGMA,
    UNITLESS_CONFIDENCE,
    MapInput,
)

NONE = "none"
"""Type of a depth without a confidence, which a map may give a sigma of the depth."""
MIN_RANK = 2.0**-12
"""Values of certainty_rank below it tie: their reciprocals would leave the metrics' range."""


@dataclass(frozen=True)
class ConfidenceType:
    """A type of confidence.

    Values lie from `minimum` to `maximum`; `has_unit` if the uncertainty is a standard deviation
    in the depth's unit. `uncertainty` makes it of values and depth, (H, W) each.
    """

    name: str
    has_unit: bool
    minimum: float
    maximum: float
    uncertainty: Callable[[Floats32, Floats32], NDArray[Any]]

    @property
    def sigma_kind(self) -> SigmaKind:
        """What sigma is without a map."""
        if self.name == NONE:
            return SigmaKind.NONE
        return SigmaKind.METRES if self.has_unit else SigmaKind.RANK

    @property
    def uncertainty_kind(self) -> MapInput:
        """What a sigma map is fitted to."""
        if self.name == NONE:
            return NO_CONFIDENCE
        return RECORDED_SIGMA if self.has_unit else UNITLESS_CONFIDENCE

    def read(self, values: Floats32, depth: Floats32) -> Floats32:
        """Return the uncertainty, (H, W), NaN for not finite.

        Raise `MessageError` if out of range.
        """
        finite = np.isfinite(values)
        if not finite.any():
            raise MessageError(
                "confidence_empty",
                "the confidence image has no finite pixel; expected another --confidence-topic, "
                "or none to score the depth alone",
            )
        low = float(values.min(where=finite, initial=math.inf))
        high = float(values.max(where=finite, initial=-math.inf))
        if low < self.minimum or high > self.maximum:
            limits = f"{self.minimum:g} to {self.maximum:g}"
            if math.isinf(self.maximum):
                limits = f"at least {self.minimum:g}"
            raise MessageError(
                "confidence_out_of_range",
                f"the confidence is {low:.4g} to {high:.4g}, which cannot be {self.name} "
                f"({limits}); expected {suggested_types(low, high)}",
            )
        with np.errstate(invalid="ignore"):
            uncertainty = self.uncertainty(values, depth)
        return np.where(finite, uncertainty, np.float32(np.nan)).astype(np.float32, copy=False)


RANKS = "uncertainty_rank (larger = less certain) or certainty_rank (larger = more certain)"


def suggested_types(low: float, high: float) -> str:
    """Return what to type for a confidence of this range: the types that it could be."""
    if low < 0:
        return "values of 0 or more: publish exp(value) of a logarithm, or a rank"
    if low >= 1 and high > 100:
        return f"confidence_type dust3r, {RANKS}"
    if high <= 1:
        return f"confidence_type confidence_0_1, {RANKS}"
    if high <= 100:
        return f"confidence_type confidence_0_100, {RANKS}"
    return f"confidence_type {RANKS}"


TYPES = {
    meaning.name: meaning
    for meaning in (
        ConfidenceType("sigma", True, 0.0, math.inf, lambda v, d: v),
        ConfidenceType("variance", True, 0.0, math.inf, lambda v, d: np.sqrt(v)),
        ConfidenceType("relative_error", True, 0.0, math.inf, lambda v, d: v * d),
        ConfidenceType("log_error", True, 0.0, math.inf, lambda v, d: v * d),
        ConfidenceType("confidence_0_1", False, 0.0, 1.0, lambda v, d: 1 - v),
        ConfidenceType("confidence_0_100", False, 0.0, 100.0, lambda v, d: (100 - v) / 100),
        ConfidenceType("dust3r", False, 1.0, math.inf, lambda v, d: 1 / v),
        ConfidenceType("uncertainty_rank", False, 0.0, math.inf, lambda v, d: v),
        ConfidenceType(
            "certainty_rank", False, 0.0, math.inf, lambda v, d: 1 / np.maximum(v, MIN_RANK)
        ),
        ConfidenceType(NONE, False, -math.inf, math.inf, lambda v, d: np.ones_like(d)),
    )
}
"""Every type by name.

log_error is the standard deviation of ln d, which is v d to the first order. A network with a
dust3r confidence c = 1 + exp(x) minimises c |e| - a ln c (Wang et al., "DUSt3R", CVPR 2024,
eq. 4), whose minimum is at c = a / |e|: 1 / c is in proportion to the expected error.
"""


MIN_GAIN = 0.2
"""Minimum relative AUSE gain of the reversed order for a warning."""


def ause_the_other_way(sums: Sums) -> float:
    """Return what AUSE abs_rel would be if sigma ranked the pixels in reverse.

    The errors that are left when the least uncertain pixels are removed are all errors less those
    left when the most uncertain are, so one curve gives the other. It is rounded: sums keep every
    second point of the curve, and pixels of equal sigma keep their order.
    """
    row = STATISTICS.index("abs_rel")
    predicted, oracle = (sums[name][0] / sums["frames"][0] for name in ("removal", "oracle"))
    removed = FRACTIONS[PLOTTED_FRACTIONS]
    kept = 1 - removed
    errors = np.interp(removed, [0.0, *kept[::-1]], [0.0, *(kept * predicted[0, row])[::-1]])
    turned = (predicted[0, row, 0] - errors) / kept
    return trapezoid(np.append(turned - oracle[row], 0.0), np.append(removed, 1.0))


LARGE_M = 10.0
"""A sigma in whole numbers up to here or beyond is asked about."""


class AssumedSigma:
    """Watches a confidence whose type nobody named, which is therefore read as sigma."""

    def __init__(self) -> None:
        self._pixels = 0
        self._above_depth = 0
        self._is_whole = True
        self._largest = 0.0

    def add(self, depth: Floats32, confidence: Floats32) -> None:
        """Add the (H, W) maps of a frame as they were recorded."""
        known = np.isfinite(depth) & np.isfinite(confidence)
        values = confidence[known]
        self._pixels += values.size
        self._above_depth += int((values > depth[known]).sum())
        self._is_whole = self._is_whole and bool((values == np.rint(values)).all())
        self._largest = max(self._largest, float(values.max(initial=0.0)))

    def question(self) -> list[str]:
        """Return the question whether it is one; none if nothing speaks against it."""
        share = self._above_depth / max(self._pixels, 1)
        if share < 0.5 and not (self._is_whole and self._largest >= LARGE_M):
            return []
        return [
            f"the confidence, up to {self._largest:g}, is read as sigma in metres, larger than "
            f"the depth in {share:.0%} of the pixels: is it one? Name its type with "
            "--confidence-type, e.g. uncertainty_rank for a ZED's confidence of 1 to 100"
        ]


def doubts(sums: Sums, confidence_type: str) -> list[str]:
    """Return what seems wrong with a confidence, by its frames' scores; the type may be empty."""
    if not sums["frames"][0] or confidence_type == NONE:
        return []
    correlation = float(BY_NAME["uncertainty.spearman"].values(sums)[0])
    if math.isnan(correlation):
        return [
            "the confidence is the same in all pixels of a frame: it ranks nothing; expected "
            "another --confidence-topic, or a camera whose confidence is switched on"
        ]
    ause = float(BY_NAME["uncertainty.ause.abs_rel"].values(sums)[0])
    turned = ause_the_other_way(sums)
    if turned > (1 - MIN_GAIN) * ause:
        return []
    if not confidence_type:
        return [
            "the confidence is read as sigma in metres, for nobody named its type, but ranks the "
            f"errors better the other way: AUSE abs_rel is {ause:.3g}, and would be {turned:.3g}: "
            "is it larger where the depth is certain? Name its type with --confidence-type, e.g. "
            "confidence_0_1 or certainty_rank"
        ]
    if not TYPES[confidence_type].has_unit:
        other = {"uncertainty_rank": "certainty_rank", "certainty_rank": "uncertainty_rank"}.get(
            confidence_type, "uncertainty_rank"
        )
        return [
            f"the confidence ranks the errors better the other way: AUSE abs_rel is {ause:.3g} "
            f"as {confidence_type}, and would be {turned:.3g}; expected --confidence-type "
            f"{other}, if the camera's or network's manual agrees"
        ]
    return []
