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

from uncertainty_depth.array_types import Floats32
from uncertainty_depth.calibration.fit import (
    NO_CONFIDENCE,
    RECORDED_RANK,
    RECORDED_SIGMA,
    Uncertainty,
)
from uncertainty_depth.errors import MessageError
from uncertainty_depth.metrics import sparsification
from uncertainty_depth.records import DepthPrediction

NONE = "none"
"""Type of a depth without a confidence, whose uncertainty is 1 everywhere."""
MIN_RANK = 2.0**-12
"""Values of rank_down below this one tie: their reciprocals would leave the metrics' range."""


@dataclass(frozen=True)
class ConfidenceType:
    """A type of confidence.

    Attributes:
        name: the option's value.
        has_unit: whether the uncertainty is a standard deviation in the unit of the depth.
        minimum: smallest value that the type allows.
        maximum: largest value that the type allows.
        uncertainty: returns the uncertainty of values and depth, (H, W) each.
    """

    name: str
    has_unit: bool
    minimum: float
    maximum: float
    uncertainty: Callable[[Floats32, Floats32], NDArray[Any]]

    @property
    def uncertainty_kind(self) -> Uncertainty:
        """What a sigma map is fitted to."""
        if self.name == NONE:
            return NO_CONFIDENCE
        return RECORDED_SIGMA if self.has_unit else RECORDED_RANK

    def read(self, values: Floats32, depth: Floats32) -> Floats32:
        """Return the uncertainty, (H, W) float32, NaN for values that are not finite.

        Args:
            values: (H, W) as they were recorded.
            depth: (H, W), in the unit of the prediction.

        Raises:
            MessageError: "confidence_out_of_range", a value cannot be of this type.
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
                f"({limits}); expected {_suggestion(low, high)}",
            )
        with np.errstate(invalid="ignore"):
            uncertainty = self.uncertainty(values, depth)
        return np.where(finite, uncertainty, np.float32(np.nan)).astype(np.float32, copy=False)


def _suggestion(low: float, high: float) -> str:
    """Return what to type for a confidence of this range."""
    if low < 0:
        return "values of 0 or more: publish exp(value) of a logarithm, or a rank"
    if low >= 1 and high > 100:
        return "confidence_type exp_plus_one, rank_up (larger = less certain) or rank_down"
    if high <= 1:
        return "confidence_type confidence_0_1, rank_up (larger = less certain) or rank_down"
    if high <= 100:
        return "confidence_type confidence_0_100, rank_up (larger = less certain) or rank_down"
    return "confidence_type rank_up (larger = less certain) or rank_down (larger = more certain)"


TYPES = {
    meaning.name: meaning
    for meaning in (
        ConfidenceType("sigma", True, 0.0, math.inf, lambda v, d: v),
        ConfidenceType("variance", True, 0.0, math.inf, lambda v, d: np.sqrt(v)),
        ConfidenceType("relative_error", True, 0.0, math.inf, lambda v, d: v * d),
        ConfidenceType("log_error", True, 0.0, math.inf, lambda v, d: v * d),
        ConfidenceType("confidence_0_1", False, 0.0, 1.0, lambda v, d: 1 - v),
        ConfidenceType("confidence_0_100", False, 0.0, 100.0, lambda v, d: (100 - v) / 100),
        ConfidenceType("exp_plus_one", False, 1.0, math.inf, lambda v, d: 1 / v),
        ConfidenceType("rank_up", False, 0.0, math.inf, lambda v, d: v),
        ConfidenceType(
            "rank_down", False, 0.0, math.inf, lambda v, d: 1 / np.maximum(v, MIN_RANK)
        ),
        ConfidenceType(NONE, False, -math.inf, math.inf, lambda v, d: np.ones_like(d)),
    )
}
"""Every type by name.

log_error is the standard deviation of ln d, which is v d to the first order. Networks with an
exp_plus_one confidence c = 1 + exp(x) minimise c |e| - a ln c (Wang et al., "DUSt3R", CVPR 2024,
eq. 4), whose minimum is at c = a / |e|: 1 / c is in proportion to the expected error.
"""


def without_size(confidence_type: str) -> str:
    """Return why sigma of this type has no size; empty for a type with a unit."""
    if TYPES[confidence_type].has_unit:
        return ""
    if confidence_type == NONE:
        return (
            "the depth has no confidence: there is no sigma until `calibrate` has fitted one "
            "(--sigma-map)"
        )
    return (
        f"the confidence has no unit ({confidence_type}): it ranks the pixels, and has no AUCE, "
        "coverage or NLL until `calibrate` has put it in metres (--sigma-map)"
    )


MAX_PIXELS = 2000
"""Of a frame, evenly spaced, that both ways of reading are compared on."""
MIN_GAIN = 0.2
"""By how much AUSE must be smaller the other way, as a fraction, to say so."""
LARGE_M = 10.0
"""A sigma in whole numbers up to here or beyond is asked about."""


class ConfidenceWatch:
    """Watches the values of a confidence over the frames of a source.

    Args:
        confidence_type: the type that it is read as.
        is_assumed: whether the type was not given.
        ranks: whether only the order of its values counts.
    """

    def __init__(self, confidence_type: str, is_assumed: bool, ranks: bool) -> None:
        self._type = confidence_type
        self._is_assumed = is_assumed
        self._ranks = ranks
        self._lowest = math.inf
        self._highest = -math.inf
        self._is_whole = True
        self._values = 0
        self._above_depth = 0
        self._ause: list[tuple[float, float]] = []

    def add_values(self, depth: Floats32, confidence: Floats32) -> None:
        """Add the (H, W) maps of a frame as they were recorded."""
        known = np.isfinite(depth) & np.isfinite(confidence)
        values = confidence[known]
        self._lowest = min(self._lowest, float(values.min(initial=np.inf)))
        self._highest = max(self._highest, float(values.max(initial=-np.inf)))
        if self._is_assumed:
            self._is_whole = self._is_whole and bool((values == np.rint(values)).all())
            self._values += values.size
            self._above_depth += int((values > depth[known]).sum())

    def add_errors(
        self, prediction: DepthPrediction, uncertainty: Floats32, ground_truth_m: Floats32
    ) -> None:
        """Add how the (H, W) uncertainty of a frame ranks the errors, both ways."""
        if not self._ranks:
            return
        maps = (prediction.depth_m, uncertainty, ground_truth_m)
        known = np.logical_and.reduce([np.isfinite(values) for values in maps])
        known &= (prediction.depth_m > 0) & (ground_truth_m > 0)
        chosen = np.flatnonzero(known)
        chosen = chosen[:: max(len(chosen) // MAX_PIXELS, 1)]
        if len(chosen) < 2:
            return
        depth, ranks, truth = (values.reshape(-1)[chosen] for values in maps)
        as_read = sparsification(depth, ranks, truth, "rmse").ause
        turned = sparsification(depth, ranks.max() - ranks, truth, "rmse").ause
        self._ause.append((as_read, turned))

    def notes(self) -> list[str]:
        """Return sentences on what is wrong with the confidence, complete after the last frame."""
        if self._lowest == self._highest:
            return [
                f"the confidence is {self._lowest:g} in every pixel of every frame: it ranks "
                "nothing; expected another --confidence-topic, or a camera whose "
                "confidence is switched on"
            ]
        notes = []
        share = self._above_depth / self._values if self._values else 0.0
        if share >= 0.5 or (self._values and self._is_whole and self._highest >= LARGE_M):
            notes.append(
                f"the confidence is {self._lowest:g} to {self._highest:g} and is read as sigma in "
                f"metres, larger than the depth in {share:.0%} of the pixels: is it one? Name its "
                "type with --confidence-type, e.g. rank_up for a ZED's confidence of 1 to 100"
            )
        as_read, turned = np.mean(self._ause, axis=0) if self._ause else (0.0, math.inf)
        if turned <= (1 - MIN_GAIN) * as_read:
            other = {"rank_up": "rank_down", "rank_down": "rank_up"}.get(self._type, "rank_up")
            notes.append(
                "the confidence ranks the errors better the other way: AUSE (rmse) is "
                f"{as_read:.3g} m as {self._type}, and would be {turned:.3g} m; expected "
                f"--confidence-type {other}, if the camera's or network's manual agrees"
            )
        return notes
