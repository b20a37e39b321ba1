# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict images of several cameras by one model, in batches that fit budget and memory."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.records import DepthPrediction, Observation, SampleRange
from uncertainty_depth.ros.within_memory import free_memory, is_out_of_memory, within_memory

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor
    from uncertainty_depth.inference.sample_budget import SampleBudget

logger = logging.getLogger(__name__)


def check_budget(method: str, budget_ms: float) -> None:
    """Refuse a budget for `tta`: views are not exchangeable, fewer of them are another sigma.

    Raises:
        ConfigError: there is a budget, and the method is `tta`.
    """
    if budget_ms and method == "tta":
        raise ConfigError(
            f"frame_budget_ms is {budget_ms:g}, but the sigma of tta depends on the number of "
            "views; expected frame_budget_ms 0, and as many samples as there is time for"
        )


class Batches:
    """Predicts waiting images in one pass, with the samples that fit; used from one thread."""

    def __init__(self) -> None:
        self._predictor: weakref.ref[Predictor] | None = None  # its memory is to be freed
        self._budget: SampleBudget | None = None
        self._max_images = 0
        """Images at once that fitted into memory; 0: nothing is known against more."""

    def choose(self, predictor: Predictor, budget_ms: float, images: int) -> SampleRange:
        """Return the samples of the next batch, the same for all of its images.

        Args:
            predictor: the model.
            budget_ms: time for the batch, `frame_budget_ms`; 0 uses all samples.
            images: in the batch; each has its fraction of the time.
        """
        return self._budget_of(predictor).choose(budget_ms / images, predictor.passes)

    def predict(
        self, predictor: Predictor, observations: Sequence[Observation], samples: SampleRange
    ) -> list[DepthPrediction | Exception]:
        """Return the prediction of each image, its sigma not widened, or why there is none.

        Where a batch fails, its halves are tried, so that an image costs only itself.
        """
        at_once = self._max_images or len(observations)
        results: list[DepthPrediction | Exception] = []
        for start in range(0, len(observations), at_once):
            results += self._together(predictor, observations[start : start + at_once], samples)
        return results

    def finished(self, samples: SampleRange, images: int, milliseconds: float) -> None:
        """Record the duration of a batch, from its start to the publication of its maps."""
        if self._budget is not None:
            self._budget.add(samples.count, milliseconds / images)

    def _together(
        self, predictor: Predictor, observations: Sequence[Observation], samples: SampleRange
    ) -> list[DepthPrediction | Exception]:
        if len(observations) == 1:
            return [_alone(predictor, observations[0], samples)]
        half = len(observations) // 2
        try:
            return [*predictor.predict_batch(observations, samples, widen=False)]
        except Exception as error:
            is_too_large = is_out_of_memory(error)
            sentence = f"{type(error).__name__}: {error}"
        logger.warning("a batch of %d images failed (%s)", len(observations), sentence)
        if is_too_large:
            self._max_images = half
            free_memory()  # outside the handler: the exception's traceback holds the tensors
        first = self._together(predictor, observations[:half], samples)
        return first + self._together(predictor, observations[half:], samples)

    def _budget_of(self, predictor: Predictor) -> SampleBudget:
        """Return the cost measured for this model; another model starts from nothing."""
        from uncertainty_depth.inference.sample_budget import SampleBudget

        if self._budget is None or self._predictor is None or self._predictor() is not predictor:
            self._predictor = weakref.ref(predictor)
            self._budget = SampleBudget()
            self._max_images = 0
        return self._budget


def _alone(
    predictor: Predictor, observation: Observation, samples: SampleRange
) -> DepthPrediction | Exception:
    """Return the prediction of an image, with fewer samples at a time where memory runs out."""
    try:
        (prediction,) = within_memory(
            predictor, lambda: predictor.predict_batch([observation], samples, widen=False)
        )
    except Exception as error:
        return error
    return prediction
