# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Exceptions with one user-facing sentence, which only `cli` prints; warnings; extras."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

logger = logging.getLogger(__name__)
LONGEST_WORD = 1000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
KEPT = 100
EXTRAS = {
    "cv2": "bags",
    "rosbags": "bags",
    "torch": "network",
    "transformers": "pretrained",
    "onnx": "onnxruntime",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "ray": "ray",
    "rclpy": "ros",
    "rerun": "view",
}
"""The extra that brings each library."""


def shortened(text: str) -> str:
    """Return the text with what is left of words too long to read: their first and last part."""
    return _LONG_WORD.sub(
        lambda word: f"{word[0][:KEPT]}[... {len(word[0]) - 2 * KEPT} more ...]{word[0][-KEPT:]}",
        text,
    )


def first_line(error: BaseException) -> str:
    """Return an error's first line, or its type if it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class UncertaintyDepthError(Exception):
    """Base class for errors caused by user input, with the exit code for the command."""

    exit_code = 1

    def __str__(self) -> str:
        return shortened(super().__str__())


class ConfigError(UncertaintyDepthError):
    """An option, parameter or YAML key is unknown, of the wrong type or out of range."""


class SourceError(UncertaintyDepthError):
    """A bag, drive or folder is missing, unreadable, ambiguous or incomplete."""


class ModelError(UncertaintyDepthError):
    """A model folder is missing, damaged, of another architecture or of a newer format."""


class CalibrationError(UncertaintyDepthError):
    """A calibration makes the scores of held-out frames worse."""


class RequirementError(UncertaintyDepthError):
    """The metrics of an evaluation do not meet its requirements."""

    exit_code = 3


class MessageError(UncertaintyDepthError):
    """A message cannot be used; its frame is counted as skipped and the run continues."""

    def __init__(self, reason: str, message: str) -> None:
        """Store `reason`, the key the frame is counted under, e.g. "image_wrong_step"."""
        super().__init__(message)
        self.reason = reason


def warn(sentences: Iterable[str]) -> None:
    """Log sentences as warnings."""
    for sentence in sentences:
        logger.warning(sentence)


def missing(library: str) -> str:
    """Return the sentence that a library is not installed, and what installs it."""
    extra = EXTRAS[library]
    return (
        f"{library} is not installed; expected the extra {extra!r} of uncertainty_depth: "
        f"pip install '.[{extra}]' in a clone"
    )


def missing_in(error: ModuleNotFoundError) -> str | None:
    """Return the sentence on the library that an import lacks; None if no extra brings it."""
    library = (error.name or "").partition(".")[0]
    return missing(library) if library in EXTRAS else None
