# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The unfamiliarity of the frames that a network sees, and a warning where most are unfamiliar."""

from __future__ import annotations

import logging
from collections import deque
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ModelError
from uncertainty_depth.familiarity.features import FeatureTap
from uncertainty_depth.familiarity.score import Familiarity
from uncertainty_depth.network.depth_network import DepthNetwork

logger = logging.getLogger(__name__)

WARNING_FRAMES = 8
"""Frames that decide on the warning: the first ones of a run may be of the floor."""
MEANING = (
    "1 is what one in a hundred held-out frames of the training reaches; above it neither depth "
    "nor sigma has been tried"
)


class Gauge:
    """Scores the latest frame of a network; each thread gets the score of its own."""

    def __init__(self, familiarity: Familiarity | None, network: DepthNetwork) -> None:
        """Follow a network; without a familiarity there are no scores."""
        self._familiarity = familiarity
        self._tap = FeatureTap(network) if familiarity is not None else None
        self._latest: deque[float] = deque(maxlen=WARNING_FRAMES)
        self._is_told = False
        self._lock = Lock()

    @property
    def is_known(self) -> bool:
        """Whether frames have a score."""
        return self._familiarity is not None

    def latest(self) -> float | None:
        """Return the unfamiliarity of this thread's latest frame; None where it is not known."""
        features = self._take()
        if features is None or self._familiarity is None:
            return None
        score = float(self._familiarity.scores(features)[-1])
        self._warn(score)
        return score

    def check(self) -> None:
        """Check the familiarity against this thread's latest frame, a trial, without a score.

        Raises:
            ModelError: it is of another network.
        """
        features = self._take()
        if features is None or self._familiarity is None:
            return
        known = len(self._familiarity.mean)
        if features.shape[1] != known:
            raise ModelError(
                f"the encoder has {features.shape[1]} features, the model's familiarity {known}; "
                "expected that of the same network: compute it again with the command familiarity"
            )

    def _take(self) -> NDArray[np.float32] | None:
        return self._tap.take() if self._tap is not None else None

    def _warn(self, score: float) -> None:
        with self._lock:
            self._latest.append(score)
            is_full = len(self._latest) == WARNING_FRAMES
            median = sorted(self._latest)[len(self._latest) // 2]
            is_due = is_full and median > 1 and not self._is_told
            self._is_told = self._is_told or is_due
        if is_due:
            logger.warning(
                "the images are unlike those of the training: unfamiliarity %.2f, and %s",
                median,
                MEANING,
            )
