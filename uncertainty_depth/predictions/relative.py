# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A relative network's predictions on a source, to be aligned and scored as recorded ones are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uncertainty_depth.evaluation.evaluate import DepthPredictor
from uncertainty_depth.frames.source import Source
from uncertainty_depth.predictions.config import PredictionConfig
from uncertainty_depth.records import Frame, RecordedMaps, Skipped


class RelativePredictions:
    """A `Source` of frames with the inverse depth that a network predicts for each, `recorded`.

    Args:
        source: of frames with images and ground truth.
        predictor: whose `depth_m` and `sigma_m` are of inverse depth, up to scale and shift.
    """

    def __init__(self, source: Source, predictor: DepthPredictor) -> None:
        self.name = source.name
        self._source = source
        self._model = predictor

    @property
    def notes(self) -> list[str]:
        """The notes of the source."""
        return self._source.notes

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        for record in self._source:
            if isinstance(record, Skipped):
                yield record
                continue
            maps = self._model.predict(record.need_image(), record.stamp_ns, record.camera)
            yield replace(record, recorded=RecordedMaps(maps.depth_m, maps.sigma_m))


def meaning_of_relative(config: PredictionConfig) -> PredictionConfig:
    """Return the options as they apply to inverse depth up to scale and shift.

    Without another `align` both are fitted: such a network promises neither.
    """
    align = "scale_shift" if config.align == "none" else config.align
    return replace(config, depth_type="inverse_depth", confidence_type="sigma", align=align)


def describe_alignment(config: PredictionConfig) -> dict[str, str]:
    """Return how depth came by its metres, as plain values for a report."""
    return {"depth_type": config.depth_type, "align": config.align, "align_per": config.align_per}
