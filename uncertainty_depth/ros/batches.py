# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict several cameras' images with one model, in batches that fit time and memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uncertainty_depth.core.device_errors import DeviceLostError, free_memory
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import DepthPrediction, Frame, SampleRange

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor

logger = logging.getLogger(__name__)
OUT_OF_MEMORY = "out_of_memory"


class Batches:
    """Predicts waiting images in one pass, with the samples that fit; used from one thread.

    Attributes:
        predictor: the model.
    """

    def __init__(self, predictor: Predictor) -> None:
        from uncertainty_depth.depth.sample_budget import SampleBudget

        self.predictor = predictor
        self._budget = SampleBudget()
        self._is_one_by_one = False
        """Whether memory ran out for several images at once."""

    def choose(self, budget_ms: float, images: int) -> SampleRange:
        """Return the samples of the next batch, the same for all of its images.

        Args:
            budget_ms: time for the batch, `frame_budget_ms`; 0 uses all samples.
            images: number of images in the batch; they share the time equally.
        """
        return self._budget.choose(budget_ms / images, self.predictor.passes)

    def predict(
        self, frames: Sequence[Frame], samples: SampleRange
    ) -> list[DepthPrediction | Exception]:
        """Return each image's prediction, or why there is none.

        If a batch fails, predict each image alone, so one bad image does not drop the others.

        Raises:
            DeviceLostError: the GPU is lost.
        """
        is_alone = len(frames) == 1
        if is_alone or not self._is_one_by_one:
            try:
                return [*self.predictor.predict_batch(frames, samples)]
            except DeviceLostError:
                raise
            except Exception as error:
                failure: Exception = error.with_traceback(None)  # which holds the tensors
            if isinstance(failure, MessageError) and failure.reason == OUT_OF_MEMORY:
                self._is_one_by_one = True
                free_memory()
            if is_alone:
                return [failure]
            logger.warning("a batch of %d images failed (%s)", len(frames), failure)
        return [self.predict([frame], samples)[0] for frame in frames]

    def finished(self, samples: SampleRange, images: int, milliseconds: float) -> None:
        """Record a batch's duration, from its start to the publication of its maps."""
        self._budget.add(samples.count, milliseconds / images)
