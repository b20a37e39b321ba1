# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict several cameras' images with one model, in batches that fit time and memory."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import DepthPrediction, Frame, SampleRange
from uncertainty_depth.ros.process_resources import MIB

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor

logger = logging.getLogger(__name__)
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What PyTorch says when the GPU's or the computer's memory is spent."""


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
        """
        is_alone = len(frames) == 1
        if is_alone or not self._is_one_by_one:
            try:
                return [*self.predictor.predict_batch(frames, samples)]
            except Exception as error:
                failure: Exception = error.with_traceback(None)  # which holds the tensors
            if is_out_of_memory(failure):
                self._is_one_by_one = True
                free_memory()
                failure = MessageError("out_of_memory", f"{failure}; expected fewer samples")
            if is_alone:
                return [failure]
            logger.warning("a batch of %d images failed (%s)", len(frames), failure)
        return [self.predict([frame], samples)[0] for frame in frames]

    def finished(self, samples: SampleRange, images: int, milliseconds: float) -> None:
        """Record a batch's duration, from its start to the publication of its maps."""
        self._budget.add(samples.count, milliseconds / images)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out: on the CPU, PyTorch raises a plain RuntimeError."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in OUT_OF_MEMORY)


def free_memory() -> None:
    """Return unused memory to the GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def device_memory_mib() -> int:
    """Return this process's GPU memory, MiB; 0 without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    reserved = map(torch.cuda.memory_reserved, range(torch.cuda.device_count()))
    return sum(reserved) // MIB
