# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Checks for the verdict's line domain: are these data like the training data?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from uncertainty_depth.frames.source import PERHAPS
from uncertainty_depth.metrics.registry import BY_NAME, SHARE
from uncertainty_depth.report import references
from uncertainty_depth.report.bootstrap import Resampled
from uncertainty_depth.report.cameras import CameraRange
from uncertainty_depth.report.judgement import GREEN, GREY, MIN_BLOCKS, RED, Check
from uncertainty_depth.report.model_facts import limits_of, part_of
from uncertainty_depth.report.summary import unfamiliarity_text

OUTSIDE_TOLERANCE = 0.01  # fraction of the ground truth that a depth range may leave out
SAME_FACTOR = 1.02  # up to it focal length or aspect equal the training's, but for rounding
DIFFERENT_FACTOR = 1.1  # beyond it the camera is another one
CALIBRATED_DEPTH_TOLERANCE = 0.1  # the range it is compared with held 98 % of the depths fitted to
CALIBRATED_CAMERA_FACTOR = 1.05  # beyond it the camera is not one that sigma was calibrated on
FEW_UNFAMILIAR = 0.05  # fraction of the frames; of held-out ones of the training it is 1 %
MANY_UNFAMILIAR = 0.25
CAMERA_NAMES = {
    "focal_length_per_width": "focal length / image width",
    "aspect": "image width / height",
}


def checks(
    sample: Resampled,
    cameras: CameraRange,
    model: Mapping[str, Any],
    trained_on: Sequence[str] | None,
) -> list[Check]:
    """Return all domain checks, grey if model or data lack the information."""
    training_camera = part_of(part_of(model, "training"), "camera")
    results = unfamiliarity_checks(sample)
    results.append(_depth_range_check(sample, _depth_range(model, cameras)))
    for name, label in CAMERA_NAMES.items():
        trained = limits_of(training_camera.get(name))
        results.append(_camera_check(label, getattr(cameras, name), trained))
    if trained_on is not None:
        results.append(_trained_on_check(trained_on))
    return results


def calibration_notes(
    sample: Resampled, cameras: CameraRange, model: Mapping[str, Any]
) -> list[str]:
    """Return a sentence for each way in which the data differ from the calibration data."""
    fitted = part_of(model, "fitted_to")
    sources = fitted.get("sources")
    names = [str(name) for name in sources] if isinstance(sources, (list, tuple)) else ["unknown"]
    origin = (
        f"the data that the calibration ({model.get('calibration')}) was fitted to, "
        f"{', '.join(names)}: calibrate on data like these"
    )
    if model.get("method") != "recorded":
        origin += ", or take --no-calibrated"
    notes = []
    depths = limits_of(fitted.get("depth_range_m"))
    outside = float(references.outside(*depths)(sample.total)[0]) if depths else 0.0
    if depths and outside > CALIBRATED_DEPTH_TOLERANCE:
        notes.append(
            f"{outside:.0%} of the ground truth lies outside {depths[0]:.3g} to "
            f"{depths[1]:.3g} m, the depths of {origin}"
        )
    camera = part_of(fitted, "camera")
    for name, label in CAMERA_NAMES.items():
        data_range = getattr(cameras, name)
        training_range = limits_of(camera.get(name))
        if (
            data_range
            and training_range
            and _camera_factor(data_range, training_range) > CALIBRATED_CAMERA_FACTOR
        ):
            notes.append(
                f"{label} is {_span(data_range)}, and {_span(training_range)} in {origin}"
            )
    return notes


def unfamiliarity_checks(sample: Resampled) -> list[Check]:
    """Return the check of frames with known unfamiliarity; none without such frames."""
    prefix = "unfamiliarity."
    values = {
        name.removeprefix(prefix): metric.values(sample.total)[0].item()
        for name, metric in BY_NAME.items()
        if name.startswith(prefix)
    }
    fraction = values["fraction_above_1"]
    if not values["frames"]:
        return []
    values["frames"] = int(values["frames"])
    rows = sample.rows(BY_NAME[f"{prefix}fraction_above_1"])
    interval = sample.interval(rows, 1.0, SHARE)  # by blocks: frames of one place are similar
    if fraction <= FEW_UNFAMILIAR:
        color = GREEN
        word = "like"
    elif interval.low > FEW_UNFAMILIAR or (
        fraction >= MANY_UNFAMILIAR and sample.blocks >= MIN_BLOCKS
    ):
        color = RED
        word = "unlike"
    else:
        color = GREY
        word = "a little unlike"
    sentence = (
        f"the images are {word} those of the training: unfamiliarity is "
        f"{unfamiliarity_text(values)}"
    )
    return [Check("unfamiliarity", color, sentence, fraction, (interval.low, interval.high))]


def _depth_range(model: Mapping[str, Any], cameras: CameraRange) -> Sequence[float] | None:
    """Return the depths the model can predict for these cameras, metres; None if not known.

    A canonical camera's depth is rescaled by each camera's focal length, assuming square pixels.
    """
    limits = limits_of(model.get("depth_range"))
    canonical = model.get("canonical_focal_length")
    focal_lengths = cameras.focal_length_per_width
    aspects = cameras.aspect
    if not limits or not canonical or not focal_lengths or not aspects:
        return limits
    low = focal_lengths[0] * math.sqrt(aspects[0]) / canonical
    high = focal_lengths[1] * math.sqrt(aspects[1]) / canonical
    return (limits[0] * low, limits[1] * high)


def _depth_range_check(sample: Resampled, depth_range: Sequence[float] | None) -> Check:
    name = "ground truth outside the depth range"
    if not depth_range:
        return Check(name, GREY, "the depth range of the model is not known")
    low, high = depth_range
    rows = sample.rows(references.outside(low, high))
    outside = sample.interval(rows, float(rows[0]), SHARE)
    if outside.low > OUTSIDE_TOLERANCE:
        color = RED
    elif outside.high < OUTSIDE_TOLERANCE:
        color = GREEN
    else:
        color = GREY
    text = (
        f"{outside.value:.1%} ({outside.low:.1%} to {outside.high:.1%}) of the "
        f"ground truth lies outside the depth range of the model, {low:g} to {high:g} m"
    )
    return Check(name, color, text, outside.value, (outside.low, outside.high))


def _camera_check(
    label: str, data_range: Sequence[float] | None, training_range: Sequence[float] | None
) -> Check:
    if not training_range:
        return Check(label, GREY, f"the {label} of the training is not known")
    if not data_range:
        return Check(label, GREY, f"the {label} of these data is not known")
    factor = _camera_factor(data_range, training_range)
    if factor <= SAME_FACTOR:
        color = GREEN
        word = "as in"
    elif factor > DIFFERENT_FACTOR:
        color = RED
        word = "unlike"
    else:
        color = GREY
        word = "a little unlike"
    text = f"{label} is {_span(data_range)}, {word} the training data, {_span(training_range)}"
    return Check(label, color, text, float(data_range[0]))


def _camera_factor(data_range: Sequence[float], training_range: Sequence[float]) -> float:
    """Return the factor by which these data's range exceeds the training range."""
    return max(training_range[0] / data_range[0], data_range[1] / training_range[1])


def _span(limits: Sequence[float]) -> str:
    low = f"{limits[0]:.2f}"
    high = f"{limits[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _trained_on_check(trained_on: Sequence[str]) -> Check:
    name = "frames of the training"
    if not trained_on:
        text = "no source with these names was trained on"
        return Check(name, GREEN, text)
    certain = [sentence for sentence in trained_on if PERHAPS not in sentence]
    return Check(name, RED if certain else GREY, "; ".join(trained_on))
