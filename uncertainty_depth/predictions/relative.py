# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A relative network's predictions, aligned to the ground truth as recorded ones are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from uncertainty_depth.frames.predicted import DepthPredictor
from uncertainty_depth.predictions.config import PredictionConfig
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import DepthPrediction, Frame, RecordedMaps, Skipped


class RelativePredictor:
    """Predicts inverse depth up to scale and shift, and has it aligned."""

    def __init__(self, predictor: DepthPredictor, interpreter: Interpreter) -> None:
        """Take a predictor whose `depth_m` and `sigma_m` are of inverse depth, and its meaning."""
        self._predictor = predictor
        self._interpreter = interpreter

    def __call__(self, frame: Frame) -> DepthPrediction:
        """Return depth and sigma of a frame, metres."""
        return self._interpreter.predict(self._recorded(frame))

    def fit_to(self, name: str, frames: Iterable[Frame | Skipped]) -> None:
        """Align all frames together, if the options ask for that, see `Interpreter.fit_to`."""
        self._interpreter.fit_to(name, self._all_recorded(frames))

    def _all_recorded(self, frames: Iterable[Frame | Skipped]) -> Iterator[Frame]:
        for record in frames:
            if isinstance(record, Frame):
                yield self._recorded(record)

    def _recorded(self, frame: Frame) -> Frame:
        maps = self._predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)
        return replace(frame, recorded=RecordedMaps(maps.depth_m, maps.sigma_m))


def meaning_of_relative(config: PredictionConfig) -> PredictionConfig:
    """Return the options as they apply to inverse depth up to scale and shift.

    Without another `align` both are fitted: such a network promises neither.
    """
    align = "scale_shift" if config.align == "none" else config.align
    return replace(config, depth_type="inverse_depth", confidence_type="sigma", align=align)
