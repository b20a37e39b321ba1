# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Leave a part of the image out of the scores: a robot's own arm, its bumper, the sky."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.scoring import MaskConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.rectification import rectification_map
from uncertainty_depth.core.geometry.resampling import pixel_at_centre
from uncertainty_depth.core.records import Frame, LeftOut, Skipped
from uncertainty_depth.frames.image_files import read_pixels
from uncertainty_depth.frames.messages.images import has_aspect

FrameT = TypeVar("FrameT", bound=Frame)


class Mask:
    """Takes the ground truth of frames where the mask is 0; their predictions stay as they are.

    The mask is of the image as recorded, and is rectified as the image is. Without a file all
    pixels count.
    """

    def __init__(self, config: MaskConfig) -> None:
        """Read the file; raise `ConfigError` if it is no grey 8-bit image, or leaves no pixel."""
        self._path = config.mask
        self._left_out = _read(Path(config.mask)) if config.mask else None
        self._counts: Counter[str] = Counter()
        self._at = lru_cache(maxsize=4)(self._seen_by)

    def __call__(self, record: FrameT | Skipped) -> FrameT | Skipped:
        """Return the frame without ground truth where it is left out, or why it is skipped."""
        if self._left_out is None or isinstance(record, Skipped):
            return record
        truth_m = record.need_ground_truth()
        camera = record.camera
        is_rectified = camera is not None and camera.raw is not None
        try:
            mask = self._at(camera if is_rectified else None, truth_m.shape)
        except MessageError as error:
            return Skipped(record.stamp_ns, error.reason, f"{record.name}: {error}")
        known = np.isfinite(truth_m)
        left_out = LeftOut(mask, int(np.count_nonzero(known & mask)))
        pixels = int(np.count_nonzero(known))
        if pixels and left_out.known == pixels:
            sentence = f"{record.name}: mask {self._path} leaves out all of the ground truth"
            return Skipped(record.stamp_ns, "left_out_by_mask", sentence)
        self._counts.update(pixels=mask.size, left_out=int(np.count_nonzero(mask)))
        self._counts.update(known=pixels, known_left_out=left_out.known)
        masked_m = np.where(mask, np.float32(np.nan), truth_m)
        return replace(record, ground_truth_m=masked_m, left_out=left_out)

    def notes(self) -> list[str]:
        """Return how much was left out so far."""
        counts = self._counts
        if not counts:
            return []
        of_image = counts["left_out"] / counts["pixels"]
        of_truth = counts["known_left_out"] / max(counts["known"], 1)
        return [
            f"mask {self._path} leaves out {of_image:.1%} of the image and {of_truth:.1%} of the "
            "ground truth: no score says anything about them"
        ]

    def _seen_by(self, camera: Camera | None, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Return which pixels of a frame of this shape are left out; the camera is rectified."""
        assert self._left_out is not None
        raw = None if camera is None else camera.raw
        recorded = shape if raw is None else (raw.height, raw.width)
        if not has_aspect(self._left_out.shape, recorded):
            height, width = self._left_out.shape
            raise MessageError(
                "mask_wrong_aspect",
                f"mask {self._path} is {width}x{height}, the image {recorded[1]}x{recorded[0]}; "
                "expected the same size, or the same aspect",
            )
        rows, columns = map(pixel_at_centre, recorded, self._left_out.shape)
        mask = self._left_out[np.ix_(rows, columns)]
        if camera is None or raw is None:
            return mask
        pixels = rectification_map(raw, camera)
        return cv2.remap(mask.astype(np.uint8), pixels, None, cv2.INTER_NEAREST).astype(np.bool_)


def _read(path: Path) -> NDArray[np.bool_]:
    """Return which pixels a file leaves out, (H, W)."""
    try:
        values = read_pixels(path, color=False)
    except MessageError as error:
        raise ConfigError(f"mask is {str(path)!r}: {error}") from error
    problem = ""
    if values.ndim == 3:
        problem = f"has {values.shape[2]} colour channels"
    elif values.dtype != np.uint8:
        problem = f"has pixels of {8 * values.dtype.itemsize} bits"
    elif not values.any():
        problem = "is 0 everywhere, which leaves no pixel to score"
    if problem:
        raise ConfigError(
            f"mask {path} {problem}; expected a grey image of 8 bits that is 0 where pixels are "
            "left out"
        )
    return values == 0
