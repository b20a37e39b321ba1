# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which known depth does not measure but is scored on, and a source that is split so.

A prediction must not be scored on what corrected it. Live, two processes decide that apart from
each other, the depth node what measures and the evaluator node what it scores, perhaps from
different clouds. So the decision is a function of what both know: of pixel and stamp of the image.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.options import from_mapping
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import MapSource, Source
from uncertainty_depth.sigma.measurement_option import MeasurementSources, parse_measurements

logger = logging.getLogger(__name__)
FrameT = TypeVar("FrameT", bound=Frame)


def held_out(
    depth_m: NDArray[np.floating], stamp_ns: int, config: HeldOutConfig
) -> NDArray[np.bool_]:
    """Return which pixels of an (H, W) depth map are held out; unknown ones never are."""
    return _selected(depth_m, pixel_hashes(depth_m, stamp_ns) < config.held_out_fraction)


def unmeasured(depth_m: NDArray[np.float32], measured: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the depth of pixels that nothing measured, nor a neighbour of theirs; else NaN.

    Beside a measurement depth is as easy as in it.
    """
    near = cv2.dilate(measured.astype(np.uint8), np.ones((3, 3), np.uint8))
    return np.where(near, np.float32(np.nan), depth_m)


def without_measured(source: Source) -> Source:
    """Return the source without ground truth where its frames' `measurements` are."""

    def step(record: Frame | Skipped) -> Frame | Skipped:
        if isinstance(record, Skipped) or record.measurements is None:
            return record
        truth_m = record.need_ground_truth()
        measured = record.measurements.mask(truth_m.shape)
        return replace(record, ground_truth_m=unmeasured(truth_m, measured))

    return MapSource(source, step)


def without_given(
    frame: FrameT, config: HeldOutConfig | None, measured: Sequence[int] = ()
) -> FrameT:
    """Return the frame without ground truth in the pixels that corrected its prediction.

    Another process made it by the known depth that was not held out, None for none at all, and by
    measured pixels, row * width + column.

    Raises `MessageError`: "would_score_its_input", nothing was held out; "no_depth_held_out", no
    pixel of this frame; "prediction_info", a measured pixel lies outside the frame.
    """
    depth_m = frame.need_ground_truth()
    if measured:
        if max(measured) >= depth_m.size:
            raise MessageError(
                "prediction_info",
                f"depth/prediction_info says that pixel {max(measured)} was measured; expected "
                f"less than {depth_m.size}",
            )
        mask = np.zeros(depth_m.shape, np.bool_)
        mask.flat[list(measured)] = True
        depth_m = unmeasured(depth_m, mask)
    # Ground truth that is a depth image is another sensor's than the points that were given.
    if config is not None and frame.scan is not None:
        if config.held_out_fraction == 0:
            raise MessageError(
                "would_score_its_input",
                "the model was given all of the LiDAR, and would be scored on its input; start "
                "depth_node with held_out_fraction above 0",
            )
        given = np.isfinite(depth_m) & ~held_out(depth_m, frame.stamp_ns, config)
        depth_m = unmeasured(depth_m, given)
        if np.isnan(depth_m).all():
            raise MessageError(
                "no_depth_held_out",
                "no pixel of the ground truth was held out from the model's input",
            )
    return replace(frame, ground_truth_m=depth_m)


def held_out_rule(description: Mapping[str, Any]) -> HeldOutConfig | None:
    """Return how much known depth what predicts held out; None if no known depth measures.

    Raise `MessageError` for bad entries.
    """
    fraction = description.get("held_out_fraction", 0.0)
    try:
        if not parse_measurements(str(description.get("measurements", ""))).use_ground_truth:
            return None
        return from_mapping(HeldOutConfig, {"held_out_fraction": fraction})
    except ConfigError as error:
        raise MessageError("model_description", f"depth/model says {error}") from error


def random_pixels(depth_m: NDArray[np.floating], stamp_ns: int, count: int) -> NDArray[np.bool_]:
    """Return `count` known pixels, the same in every run, (H, W); all if there are fewer."""
    hashes = pixel_hashes(depth_m, stamp_ns)
    if hashes.size <= count:
        return np.isfinite(depth_m)
    return _selected(depth_m, hashes <= np.partition(hashes, count - 1)[count - 1])


def _selected(depth_m: NDArray[np.floating], selection: NDArray[np.bool_]) -> NDArray[np.bool_]:
    mask = np.zeros(depth_m.shape, dtype=np.bool_)
    mask[np.isfinite(depth_m)] = selection
    return mask


def pixel_hashes(depth_m: NDArray[np.floating], stamp_ns: int) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each known pixel, from its index and the stamp alone, (n,)."""
    indices = np.flatnonzero(np.isfinite(depth_m)).astype(np.uint64)
    key = _mixed(np.array([stamp_ns % 2**64], dtype=np.uint64))
    return unit_hashes(indices ^ key)


def unit_hashes(values: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each value, spread as if by chance."""
    return (_mixed(values) >> np.uint64(11)).astype(np.float64) / 2**53


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of SplitMix64 (Steele et al. 2014) of each value."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def hold_out_pixels(
    source: Source, measuring: MeasurementSources, config: HeldOutConfig
) -> Source:
    """Return the source with `sparse_m` that measures, and ground truth away from it.

    random:N is drawn; of a LiDAR's depth a part is `held_out`. Without either the source stays as
    it is. Raises `ConfigError` if nothing is held out.
    """
    if not measuring.use_ground_truth:
        if config != HeldOutConfig():
            logger.warning(
                "held_out_fraction has no effect: no known depth corrects the prediction, which "
                "is scored on all of it"
            )
        return source
    if config.held_out_fraction == 0:
        raise ConfigError(
            "held_out_fraction is 0, so the model would be scored on the depth that it is given; "
            "expected above 0"
        )
    step = _Split(measuring.random, config)
    return MapSource(source, step, step.notes)


class _Split:
    """Splits each frame's known depth, and counts."""

    def __init__(self, random: int, config: HeldOutConfig) -> None:
        self._random = random
        self._config = config
        self._frames = 0
        self._input_pixels = 0
        self._scored = 0

    def notes(self) -> list[str]:
        """Return how much depth was given and held out."""
        if not self._frames:
            return []
        pixels = self._input_pixels / self._frames
        scored = self._scored / self._frames
        rule = "all that were not drawn"
        if not self._random:
            rule = f"{100 * self._config.held_out_fraction:g}% of the pixels"
        return [
            f"the model was given {pixels:.0f} pixels of known depth per image; it is scored on "
            f"{scored:.0f} others, {rule}",
        ]

    def __call__(self, frame: Frame | Skipped) -> Frame | Skipped:
        if isinstance(frame, Skipped):
            return frame
        depth_m = frame.need_ground_truth()
        known = np.isfinite(depth_m)
        if self._random:
            input_mask = random_pixels(depth_m, frame.stamp_ns, self._random)
        else:
            input_mask = known & ~held_out(depth_m, frame.stamp_ns, self._config)
        scored_m = unmeasured(depth_m, input_mask)
        scored = int(np.isfinite(scored_m).sum())
        if not scored:
            sentence = _why(frame, int(input_mask.sum()), bool(input_mask[known].all()))
            return Skipped(frame.stamp_ns, "no_depth_held_out", sentence)
        self._frames += 1
        self._input_pixels += int(input_mask.sum())
        self._scored += scored
        sparse_m = np.where(input_mask, depth_m, np.float32(np.nan))
        return replace(frame, sparse_m=sparse_m, ground_truth_m=scored_m)


def _why(frame: Frame, input_pixels: int, are_all_given: bool) -> str:
    """Return the reason why a frame has no pixel to score."""
    if not input_pixels:
        return (
            f"frame {frame.name} has no known depth, to give to the model or to score; expected "
            "LiDAR points in view of the camera, or ground truth"
        )
    if not are_all_given:
        return (
            f"frame {frame.name}: {input_pixels} pixels of known depth are given, and every other "
            "known pixel is beside one of them: none is left to score; expected random:N of depth "
            "as dense as this"
        )
    return (
        f"frame {frame.name} has {input_pixels} pixels of known depth, and the model is given "
        "them all: none is left to score; expected denser ground truth, or fewer by random:N"
    )
