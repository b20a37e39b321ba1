# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A source whose known depth is split: a part for the model's input, the rest to score on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.completion.held_out import (
    check_scorable,
    held_out,
    random_pixels,
)
from uncertainty_depth.completion.sparse_input import SparseInput
from uncertainty_depth.frames.source import Source
from uncertainty_depth.records import Frame, Skipped

logger = logging.getLogger(__name__)


class CompletingPredictor(Protocol):
    """Protocol of a predictor with the property `sparse_input`."""

    @property
    def sparse_input(self) -> SparseInput | None:
        """The sparse depth that the model takes; None where it takes the image alone."""


def for_model(source: Source, predictor: CompletingPredictor, config: HeldOutConfig) -> Source:
    """Return the source as the model may see it, with a part of its known depth or without."""
    if predictor.sparse_input is None:
        if config != HeldOutConfig():
            logger.warning(
                "held_out_fraction and held_out_by have no effect: the model takes the image "
                "alone, and is scored on all known depth"
            )
        return source
    return CompletionSource(source, predictor.sparse_input, config)


class CompletionSource:
    """The frames of a source, with `sparse_m`, and ground truth only where it was not given.

    Raises:
        ConfigError: nothing is held out.
    """

    def __init__(self, source: Source, sparse_input: SparseInput, config: HeldOutConfig) -> None:
        """Split each frame's depth into sparse input and held-out ground truth."""
        check_scorable(config)
        self.name = source.name
        self._source = source
        self._sparse_input = sparse_input
        self._config = config
        self._frames = 0
        self._input_pixels = 0
        self._scored = 0

    @property
    def notes(self) -> list[str]:
        """The notes of the source, and how much depth was given and held out."""
        if not self._frames:
            return self._source.notes
        pixels = self._input_pixels / self._frames
        scored = self._scored / self._frames
        return [
            *self._source.notes,
            f"the model was given {pixels:.0f} pixels of known depth per image; it is scored on "
            f"{scored:.0f} others, {self._rule()}",
        ]

    def _rule(self) -> str:
        if self._sparse_input.pixels:
            return "all that were not drawn"
        unit = "pixels" if self._config.held_out_by == "pixel" else "LiDAR rings"
        return f"{100 * self._config.held_out_fraction:g} % of the {unit}"

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for record in self._source:
            yield self._split(record) if isinstance(record, Frame) else record

    def _split(self, frame: Frame) -> Frame | Skipped:
        depth_m = frame.need_ground_truth()
        if self._sparse_input.pixels:
            input_mask = random_pixels(depth_m, frame.stamp_ns, self._sparse_input.pixels)
        else:
            input_mask = np.isfinite(depth_m) & ~held_out(
                depth_m, frame.stamp_ns, self._config, frame.scan, frame.camera
            )
        scored = np.isfinite(depth_m) & ~input_mask
        if not scored.any():
            return Skipped(frame.stamp_ns, "no_depth_held_out", _why(frame, int(input_mask.sum())))
        self._frames += 1
        self._input_pixels += int(input_mask.sum())
        self._scored += int(scored.sum())
        unknown = np.float32(np.nan)
        return replace(
            frame,
            sparse_m=np.where(input_mask, depth_m, unknown),
            ground_truth_m=np.where(scored, depth_m, unknown),
        )


def _why(frame: Frame, input_pixels: int) -> str:
    """Return the reason why a frame has no pixel to score."""
    if not input_pixels:
        return (
            f"frame {frame.name} has no known depth, to give to the model or to score; expected "
            "LiDAR points in view of the camera, or ground truth"
        )
    return (
        f"frame {frame.name} has {input_pixels} pixels of known depth, and the model is given "
        "them all: none is left to score; expected denser ground truth, or a model that takes "
        "fewer"
    )
