# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Turn recorded depth and confidence into depth and sigma that can be scored; live and offline.

`SavedMap` is the small JSON file of a sigma map for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.array_types import Floats32
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import SOURCE, PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import ConfigError, MessageError, ModelError, SourceError
from uncertainty_depth.core.options import MAX_DEPTH_M
from uncertainty_depth.core.output import MARK, OutputFile
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Skipped
from uncertainty_depth.frames.recorded_folder import has_confidence
from uncertainty_depth.metrics.calibration import DISTRIBUTIONS
from uncertainty_depth.metrics.depth import scorable
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.state import Sums
from uncertainty_depth.sigma.calibration.depth_head import DepthHead
from uncertainty_depth.sigma.calibration.half_widths import (
    BY_DISTRIBUTION,
    HalfWidths,
    from_record,
    guarantee_of,
)
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap
from uncertainty_depth.sigma.recorded.alignment import MIN_POINTS, Alignment, fit
from uncertainty_depth.sigma.recorded.confidence import NONE, TYPES, AssumedSigma, doubts

FORMAT = 2
MAX_BYTES = 1_000_000
EXPECTED = (
    "expected the file that `calibrate --depth-topic T --output map.json` writes in this version"
)

NO_LIMITS = EvaluationConfig(min_depth=0.0, max_depth=MAX_DEPTH_M)
MAX_POINTS_PER_FRAME = 2000
"""Points that a frame gives, evenly spaced, to a whole source's alignment."""
Points = NDArray[np.float64]


@dataclass(frozen=True)
class SavedMap:
    """A map and its origin, as stored in its file.

    Attributes:
        sigma_map: the map.
        confidence_type: of the confidence that it takes.
        depth_type: of the depth.
        distribution: that sigma is the standard deviation of: "gaussian" or "laplace".
        head: what makes the uncertainty that is mapped from the depth; None: the confidence does.
        provenance: sources, topics, what it was fitted to, scores on frames not used.
    """

    sigma_map: SigmaMap
    confidence_type: str
    depth_type: str
    distribution: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    head: DepthHead | None = None

    @property
    def half_widths(self) -> HalfWidths:
        """Half widths of intervals in sigmas: as measured on other frames, else of theory."""
        return from_record(self.provenance) or BY_DISTRIBUTION[self.distribution]

    @property
    def guarantee(self) -> str:
        """The guarantee by frame, a sentence; empty if the file has none."""
        return guarantee_of(self.provenance)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        content = {
            "origin": MARK,
            "format": FORMAT,
            "confidence_type": self.confidence_type,
            "depth_type": self.depth_type,
            "distribution": self.distribution,
            "map": self.sigma_map.to_mapping(),
            **({} if self.head is None else {"head": self.head.to_mapping()}),
            **self.provenance,
        }
        OutputFile(path).write(strict.json_bytes(content))


def read_map(path: str | Path) -> SavedMap:
    """Read a map's file; raise `ConfigError` if it is missing, or holds no sigma map."""
    try:
        content = strict.read_json_file(Path(path), MAX_BYTES)
    except (OSError, strict.FormatError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"sigma_map {str(path)!r} cannot be read ({reason}); {EXPECTED}") from (
            error
        )
    try:
        return _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        fault = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"sigma_map {str(path)!r} is not a valid map ({fault}); {EXPECTED}"
        ) from (error)


def _parsed(content: Mapping[str, Any]) -> SavedMap:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r} instead of {FORMAT}")
    for key, choices in (("confidence_type", TYPES), ("distribution", DISTRIBUTIONS)):
        if content[key] not in choices:
            raise ValueError(f"{key} {content[key]!r}")
    fields = {"origin", "format", "confidence_type", "depth_type", "distribution", "map", "head"}
    saved = SavedMap(
        SigmaMap.from_mapping(content["map"]),
        content["confidence_type"],
        content["depth_type"],
        content["distribution"],
        {key: value for key, value in content.items() if key not in fields},
        DepthHead.from_mapping(content["head"]) if "head" in content else None,
    )
    _ = saved.half_widths, saved.guarantee  # report a damaged record here, not at a frame
    return saved


def recorded_predictions(
    notations: Sequence[str],
    topics: PredictionTopics,
    config: PredictionConfig,
    limits: EvaluationConfig,
) -> tuple[Interpreter, PredictionTopics]:
    """Return what interprets the sources' predictions, and the topics that it needs.

    A depth without a confidence has the type "none", whatever is assumed of others.
    """
    alone = [name for name in notations if not has_confidence(name, topics)]
    if alone and config.confidence_type not in ("", NONE):
        raise ConfigError(
            f"confidence_type is {config.confidence_type!r}, but {alone[0]} is given without a "
            "confidence; expected --confidence-topic (of predictions:DIR a folder confidence), or "
            "no confidence_type"
        )
    if alone:
        config = replace(config, confidence_type=NONE)
    interpreter = Interpreter(config, limits)
    if interpreter.config.confidence_type == NONE:
        topics = replace(topics, confidence_topic="")
    return interpreter, topics


class Interpreter:
    """Converts recorded values to depth and sigma by their types, and aligns them to ground truth.

    The confidence type in `config` is the map's, if there is one; `alignment` is the whole
    source's, None if each frame has its own.
    """

    def __init__(self, config: PredictionConfig, limits: EvaluationConfig = NO_LIMITS) -> None:
        """Take the options, and the depth range for alignment.

        Raise `ConfigError` for a wrong map.
        """
        self.sigma_map = read_map(config.sigma_map) if config.sigma_map else None
        if self.sigma_map is not None:
            config = _with_map(config, self.sigma_map)
        self.config = config
        self._is_inverse = config.depth_type == "inverse_depth"
        self.alignment: Alignment | None = None
        if config.align == "none":
            self.alignment = Alignment(is_inverse=self._is_inverse)
        self._limits = limits
        self._type = TYPES[config.confidence_type or "sigma"]
        self.sigma_kind = SigmaKind.METRES if self.sigma_map else self._type.sigma_kind
        self._assumed = None if config.confidence_type else AssumedSigma()
        self._pixels = 0
        self._holes = 0

    @property
    def distribution(self) -> str:
        """The distribution that sigma is the standard deviation of."""
        return "gaussian" if self.sigma_map is None else self.sigma_map.distribution

    @property
    def half_widths(self) -> HalfWidths:
        """Half widths of intervals: measured with the map, else the distribution's."""
        saved = self.sigma_map
        return BY_DISTRIBUTION[self.distribution] if saved is None else saved.half_widths

    @property
    def sigma_name(self) -> str:
        """Identifier of the sigma, whose size an evaluator may estimate."""
        calibration = "none" if self.sigma_map is None else self.sigma_map.sigma_map.name
        return f"{self.config.confidence_type or 'sigma'}, calibration {calibration}"

    def predict(self, frame: Frame) -> DepthMap:
        """Return depth and sigma, metres, aligned to the ground truth if the options say so.

        Without a unit, sigma is the uncertainty that ranks the pixels. Without a confidence, and
        without a map from depth to sigma, there is none.
        """
        if frame.recorded is None:
            raise MessageError("no_recorded_depth", f"frame {frame.name} has no recorded depth")
        depth = frame.recorded.depth
        confidence = frame.recorded.confidence
        self._pixels += depth.size
        self._holes += depth.size - int(np.isfinite(depth).sum())
        uncertainty = self._uncertainty(depth, confidence)
        if self._assumed is not None and confidence is not None:
            self._assumed.add(depth, confidence)
        truth_m = frame.need_ground_truth()
        alignment = self.alignment
        if alignment is None:
            points = self._points(depth, truth_m)
            alignment = fit(self.config.align, *points, self._is_inverse)
        made = self._aligned(depth, uncertainty, alignment)
        unfamiliarity = frame.recorded.unfamiliarity
        if self.sigma_kind is SigmaKind.NONE:
            return DepthMap(made.depth_m, unfamiliarity=unfamiliarity, aligned_by=made.aligned_by)
        return replace(made, unfamiliarity=unfamiliarity)

    def _uncertainty(self, depth: Floats32, confidence: Floats32 | None) -> Floats32:
        """Return the uncertainty that a map takes; 1 everywhere for a depth alone."""
        if self._type.name == NONE:
            return np.ones_like(depth)
        if confidence is None:
            raise MessageError(
                "no_confidence", f"a depth has no confidence; expected {self._type.name}"
            )
        return self._type.read(confidence, depth)

    def metric(self, depth: Floats32, confidence: Floats32 | None) -> DepthPrediction:
        """Return depth and sigma, metres or 1/m, both NaN if either has no value.

        Raise as `predict`.
        """
        uncertainty = self._uncertainty(depth, confidence)
        made = self._aligned(depth, uncertainty, Alignment(is_inverse=self._is_inverse))
        is_known = (made.depth_m > 0) & (made.sigma_m >= 0)
        unknown = np.float32(np.nan)
        return DepthPrediction(
            np.where(is_known, made.depth_m, unknown), np.where(is_known, made.sigma_m, unknown)
        )

    def _aligned(
        self, depth: Floats32, uncertainty: Floats32, alignment: Alignment
    ) -> DepthPrediction:
        depth_m, sigma = alignment.depth_and_sigma(depth, uncertainty, self._limits.max_depth)
        if not self._type.has_unit:
            sigma = uncertainty
        if self.sigma_map is not None:
            if self.sigma_map.head is not None:
                sigma = self.sigma_map.head(depth_m)
            sigma = self.sigma_map.sigma_map(sigma, depth_m).astype(np.float32, copy=False)
        return DepthPrediction(depth_m, sigma, aligned_by=alignment.depth_scale)

    def _points(self, depth: Floats32, ground_truth_m: Floats32) -> tuple[Points, Points]:
        """Return prediction and ground truth, (N,), in pixels with both that can be aligned."""
        valid = scorable(ground_truth_m, self._limits.min_depth, self._limits.max_depth)
        valid &= np.isfinite(depth)
        return depth[valid].astype(np.float64), ground_truth_m[valid].astype(np.float64)

    def fit_to(self, name: str, frames: Iterable[Frame | Skipped]) -> None:
        """Align all frames of a source together, if the options ask for that.

        At most `MAX_POINTS_PER_FRAME` points of a frame count.

        Raises `SourceError`: too few points, or no positive scale fits.
        """
        if self.config.align_per != SOURCE or self.config.align == "none":
            return
        parts: list[Points] = []
        for record in frames:
            if isinstance(record, Frame) and record.recorded is not None:
                truth_m = record.need_ground_truth()
                points = np.stack(self._points(record.recorded.depth, truth_m))
                step = max(-(-points.shape[1] // MAX_POINTS_PER_FRAME), 1)
                parts.append(points[:, ::step])
        prediction, truth = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
        if len(prediction) < MIN_POINTS:
            raise SourceError(
                f"{name} cannot be aligned: in all its frames together {len(prediction)} pixels "
                "have a prediction and a ground truth within the depth range; expected at least "
                f"{MIN_POINTS}: another --depth-topic, or other --min-depth and --max-depth"
            )
        try:
            self.alignment = fit(self.config.align, prediction, truth, self._is_inverse)
        except MessageError as error:
            raise SourceError(f"{name} cannot be aligned: {error}") from error

    def describe(self, name: str) -> dict[str, object]:
        """Return the named predictions as plain values for a report, in a model's place."""
        saved = self.sigma_map
        fitted: dict[str, object] = {}
        if saved is not None:
            fitted = {
                "calibration": saved.sigma_map.name,
                "head": saved.distribution,
                "fitted_to": saved.provenance.get("fitted_to", {}),
                **({"frame_guarantee": saved.guarantee} if saved.guarantee else {}),
            }
        if self.sigma_kind is SigmaKind.METRES:
            fitted |= self.half_widths.to_mapping()
        return {
            "name": name,
            "method": "recorded",
            **fitted,
            "confidence_type": self.config.confidence_type or "sigma",
            **self.describe_alignment(),
        }

    def describe_alignment(self) -> dict[str, object]:
        """Return how depth came by its metres, as plain values for a report."""
        return {
            "depth_type": self.config.depth_type,
            "align": self.config.align,
            "align_per": self.config.align_per,
        }

    def notes(self) -> list[str]:
        """Return sentences on what the depth and sigma of all frames rest on."""
        notes = []
        space = "inverse depth" if self._is_inverse else "depth"
        if self.config.align == "none":
            pass
        elif self.alignment is not None:
            notes.append(
                f"the source is aligned to its ground truth as a whole ({self.config.align}, in "
                f"{space}: scale {self.alignment.scale:.4g}, shift {self.alignment.shift:.4g})"
            )
        else:
            notes.append(
                f"each frame is aligned to its ground truth ({self.config.align}, in {space}): "
                "a robot cannot do this, and these scores leave out errors of scale: see "
                "scale_deviation"
            )
        if self._holes:
            share = self._holes / self._pixels
            notes.append(
                f"{share:.1%} of the recorded pixels hold no depth (NaN, infinity, 0 or less, "
                "or the largest number of 16 bits) and are not scored"
            )
        return [*notes, *(self._assumed.question() if self._assumed else [])]

    def doubts(self, sums: Sums) -> list[str]:
        """Return what seems wrong with the confidence, from the sums of all frames."""
        return doubts(sums, self.config.confidence_type)


def _with_map(config: PredictionConfig, saved: SavedMap) -> PredictionConfig:
    """Return the options with the confidence that the map takes."""
    if config.confidence_type == NONE != saved.confidence_type:
        raise ConfigError(
            f"the depth has no confidence, but sigma_map {config.sigma_map!r} takes "
            f"{saved.confidence_type!r}; expected the confidence topic that it was fitted to, or "
            "a map of the depth alone"
        )
    if config.confidence_type not in ("", saved.confidence_type):
        raise ConfigError(
            f"confidence_type is {config.confidence_type!r}, but sigma_map {config.sigma_map!r} "
            f"takes {saved.confidence_type!r}; expected that type, or none"
        )
    if config.depth_type != saved.depth_type:
        raise ConfigError(
            f"depth_type is {config.depth_type!r}, but sigma_map {config.sigma_map!r} takes "
            f"{saved.depth_type!r}; expected that type"
        )
    if config.align != "none":
        raise ConfigError(
            f"align is {config.align!r}, but sigma_map {config.sigma_map!r} gives sigma of the "
            "depth as it is; expected align none"
        )
    return replace(config, confidence_type=saved.confidence_type)
