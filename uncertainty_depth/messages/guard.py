# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Decoder guards: for any bytes, decoders return a value or raise `MessageError`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from uncertainty_depth.config.choices import MAX_PIXELS
from uncertainty_depth.errors import MessageError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def total(
    reason: str, subject: str
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Return a decorator that turns a decoder's unexpected exceptions into `MessageError`.

    Args:
        reason: the reason that the message is counted under.
        subject: the sentence's beginning, e.g. "a point cloud".
    """

    def decorate(decode: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(decode)
        def decoded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            try:
                return decode(*args, **kwargs)
            except MessageError:
                raise
            except Exception as error:  # NumPy's, OpenCV's, out of memory ...
                sentence = f"{subject} cannot be decoded: {type(error).__name__}: {error}"
                raise MessageError(reason, sentence) from error

        return decoded

    return decorate


def check_pixels(width: int, height: int, max_pixels: int = MAX_PIXELS) -> None:
    """Raise `MessageError` image_zero_size or image_too_large, before anything is decoded."""
    if width <= 0 or height <= 0:
        raise MessageError(
            "image_zero_size", f"an image is {width}x{height} pixels; expected at least 1x1"
        )
    if width * height > max_pixels:
        raise MessageError(
            "image_too_large",
            f"an image is {width}x{height} pixels; expected at most max_pixels, {max_pixels}",
        )
