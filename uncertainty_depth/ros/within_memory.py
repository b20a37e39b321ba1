# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Predict with fewer samples at a time where the memory of the device runs out."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from uncertainty_depth.errors import MessageError

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor

Result = TypeVar("Result")
logger = logging.getLogger(__name__)
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What PyTorch says when the GPU's or the computer's memory is spent."""


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out: on the CPU, PyTorch raises a plain RuntimeError."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in OUT_OF_MEMORY)


def within_memory(predictor: Predictor, predict: Callable[[], Result]) -> Result:
    """Return the result of `predict`; where memory runs out, halve `chunk` and retry.

    `chunk` is the number of samples computed at a time: it does not change the result. The
    predictor keeps the lower one until its options are set anew.

    Raises:
        MessageError: "out_of_memory", one sample at a time does not fit either.
    """
    while True:
        try:
            return predict()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            sentence = str(error).splitlines()[0] if str(error) else type(error).__name__
        free_memory()  # outside the handler: the exception's traceback holds the tensors
        config = predictor.config
        at_once = min(config.chunk, config.samples)
        if at_once <= 1:
            raise MessageError(
                "out_of_memory", f"one sample at a time does not fit into memory: {sentence}"
            )
        predictor.config = replace(config, chunk=at_once // 2)
        logger.warning(
            "out of memory (%s): from now on %d samples at a time", sentence, at_once // 2
        )


def free_memory() -> None:
    """Give memory that nothing uses any more back to the GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
