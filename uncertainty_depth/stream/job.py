# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a command reads, what predicts it and what counts: one frozen record of plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core.config.nodes import DepthScaleConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig, HeldOutConfig, MaskConfig
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import is_hugging_face, model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.frames.protocol import has_recorded
from uncertainty_depth.sigma.measurement_option import (
    DEPTH,
    POINTS,
    MeasurementSources,
    check_one_scale,
    parse_measurements,
)
from uncertainty_depth.stream.opening import place_of

if TYPE_CHECKING:
    from uncertainty_depth.metrics.metric import SigmaKind


@dataclass(frozen=True, kw_only=True)
class Job:
    """What `Stream.open` opens. It travels to other processes and machines.

    Attributes:
        model: folder or name of a model; empty for recorded predictions, or for none.
        may_align: take a model that gives no metres, and align its depth to the ground truth.
        max_frames: how many frames of each source are read at most, evenly spread; 0 for all.
        evaluation: what is scored; its depth range is that of alignments too.
        mask: the part of the image that is scored; alignments see no other.
        held_out: the known depth that is scored on instead of measuring.
        scale: whether depth follows the scale of the frames before.
    """

    sources: tuple[str, ...]
    model: str = ""
    may_align: bool = True
    max_frames: int = 0
    reading: SourceConfig = field(default_factory=SourceConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    mask: MaskConfig = field(default_factory=MaskConfig)
    predictor: PredictorConfig = field(default_factory=PredictorConfig)
    held_out: HeldOutConfig = field(default_factory=HeldOutConfig)
    topics: PredictionTopics = field(default_factory=PredictionTopics)
    meaning: PredictionConfig = field(default_factory=PredictionConfig)
    scale: DepthScaleConfig = field(default_factory=DepthScaleConfig)

    @property
    def is_recorded(self) -> bool:
        """Whether a source brings its predictions."""
        return any(has_recorded(source, self.topics) for source in self.sources)

    @property
    def measuring(self) -> MeasurementSources:
        """What measures depth beside what predicts it."""
        return parse_measurements(self.predictor.measurements)

    @property
    def measured_topics(self) -> dict[str, str]:
        """Topics that measure depth beside the model, by kind; empty for none."""
        return {
            POINTS: self.reading.measured_points_topic,
            DEPTH: self.reading.measured_depth_topic,
        }

    def options(self) -> dict[str, Any]:
        """Return all values that decide scores but the sources, by name, for JSON."""
        values: dict[str, Any] = {"model": self.model, "max_frames": self.max_frames}
        for item in fields(self):
            part = getattr(self, item.name)
            values |= to_mapping(part) if is_dataclass(part) else {}
        return values

    def inputs(self) -> list[Path]:
        """Return the files and folders that are read: none of them may be written to."""
        read = (self.model and model_path(self.model), self.meaning.sigma_map, self.mask.mask)
        return [*map(place_of, self.sources), *(Path(path) for path in read if path)]

    @property
    def sigma_kind(self) -> SigmaKind:
        """What sigma will be; a `ConfigError` if the options do not say."""
        from uncertainty_depth.metrics.metric import SigmaKind
        from uncertainty_depth.sigma.recorded.interpreter import recorded_predictions

        if not self.is_recorded:
            return SigmaKind.METRES
        interpreter, _ = recorded_predictions(
            self.sources, self.topics, self.meaning, self.evaluation
        )
        return interpreter.sigma_kind

    def check(self, write_bag: Path | None = None) -> None:
        """Raise `ConfigError`, before anything is opened, if options do not fit each other."""
        if not self.is_recorded:
            self._check_model()
            return
        names = ", ".join(self.sources)
        if self.model:
            raise ConfigError(
                f"model is {self.model!r}, but {names} has its own predictions; expected "
                "--model, or a depth topic or predictions:DIR, not both"
            )
        self._check_correctable(names)
        if self.scale.use_depth_scale:
            raise ConfigError(
                f"use_depth_scale is true, but {names} has its own predictions, whose depth "
                "no node corrects; expected --model, or false"
            )
        if write_bag and not self.topics.confidence_topic:
            raise ConfigError(
                f"write_bag is {str(write_bag)!r}, which is to hold depth and sigma at the times "
                f"of a bag, but {names} is scored without a confidence topic; expected a "
                "bag with --depth-topic and --confidence-topic, or no --write-bag"
            )

    def _check_correctable(self, names: str) -> None:
        """Refuse to correct recorded predictions that are not depth and sigma in metres."""
        from uncertainty_depth.metrics.metric import SigmaKind

        measurements = self.predictor.measurements
        if not measurements:
            return
        if self.measuring.motion:
            raise ConfigError(
                f"measurements is {measurements!r}, and motion is tracked through images, beside "
                f"which {names} has its predictions; expected --model, or lidar, points or depth"
            )
        if self.meaning.align != "none":
            raise ConfigError(
                f"measurements is {measurements!r} and align is {self.meaning.align!r}, which "
                "corrects the depth by all of the ground truth; expected one of them"
            )
        if self.sigma_kind is not SigmaKind.METRES:
            raise ConfigError(
                f"measurements is {measurements!r}, which correct depth as far as its sigma in "
                f"metres says, and {names} has none; expected --sigma-map, the file that "
                "`uncertainty-depth calibrate` writes, or no measurements"
            )

    def _check_model(self) -> None:
        if not self.model:
            raise ConfigError(
                "--model is missing; expected --model (indoor, demo: shipped ones), or "
                "--depth-topic and --confidence-topic of what is recorded in the bag"
            )
        check_one_scale(self.predictor.measurements, use_depth_scale=self.scale.use_depth_scale)
        defaults = to_mapping(PredictionConfig())
        for name, value in to_mapping(self.meaning).items():
            is_of_relative_networks = name in ("align", "align_per")
            if is_of_relative_networks and is_hugging_face(Path(self.model)):
                continue
            if value != defaults[name]:
                raise ConfigError(
                    f"{name} is {value!r}, an option of recorded predictions, but --model is "
                    f"{self.model}; expected --depth-topic instead of --model, or no {name}"
                )
