# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Notice a recorded confidence that says nothing, is read in a wrong unit, or the wrong way.

Cameras and networks give opposite meanings to one name, and versions of one driver do: DepthAI 3
turned the sign of DepthAI 2. What a confidence is, its values beside the errors can tell.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics import sparsification
from uncertainty_depth.records import DepthPrediction

Floats = NDArray[np.float32]
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
        is_assumed: whether nobody has named the type.
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

    def add_values(self, depth: Floats, confidence: Floats) -> None:
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
        self, prediction: DepthPrediction, uncertainty: Floats, ground_truth_m: Floats
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
        return [*self._unit_notes(), *self._direction_notes()]

    def _unit_notes(self) -> list[str]:
        if not self._is_assumed or not self._values:
            return []
        share = self._above_depth / self._values
        if share < 0.5 and not (self._is_whole and self._highest >= LARGE_M):
            return []
        return [
            f"the confidence is {self._lowest:g} to {self._highest:g} and is read as sigma in "
            f"metres, larger than the depth in {share:.0%} of the pixels: is it one? Name its "
            "type with --confidence-type, e.g. rank_up for a ZED's confidence of 1 to 100"
        ]

    def _direction_notes(self) -> list[str]:
        if not self._ause:
            return []
        as_read, turned = np.mean(self._ause, axis=0)
        if turned > (1 - MIN_GAIN) * as_read:
            return []
        other = {"rank_up": "rank_down", "rank_down": "rank_up"}.get(self._type, "rank_up")
        return [
            f"the confidence ranks the errors better the other way: AUSE (rmse) is {as_read:.3g} "
            f"m as {self._type}, and would be {turned:.3g} m; expected --confidence-type {other}, "
            "if the camera's or network's manual agrees"
        ]
