# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What to do now: the steps that follow from a verdict, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import islice

from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report.judgement import GREEN, GREY, RED, SCORED

MAX_STEPS = 3
UNFAMILIARITY = "unfamiliarity"
OUTSIDE_RANGE = "ground truth outside the depth range"
TRAINED_ON = "frames of the training"
CAMERA_NAMES = {
    "focal_length_per_width": "focal length / image width",
    "aspect": "image width / height",
}
"""Names of the domain's checks."""
NOTHING_SCORED = (
    "Run `uncertainty-depth info` on the source: it shows the topics, and whether depth and image "
    "fit.",
)


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the steps depend on.

    `few_views`: so few are independent that more of them could decide a line; `is_unclear`: the
    intervals are too wide to decide one.
    """

    colors: Mapping[str, str]
    red_checks: Set[str]
    kind: SigmaKind
    is_recorded: bool
    is_calibrated_on: bool
    ranks_as_depth: bool
    few_views: bool
    is_unclear: bool


def next_steps(found: Findings) -> tuple[str, ...]:
    """Return up to `MAX_STEPS` sentences."""
    return tuple(islice(_steps(found), MAX_STEPS))


def _steps(found: Findings) -> Iterator[str]:
    red = [name for name, color in found.colors.items() if color == RED]
    if TRAINED_ON in found.red_checks:
        yield "Score frames that the model was not trained on."
    if SCORED in found.red_checks:
        yield "Find out why the model leaves pixels out: they are not scored."
    elif "depth" in red:
        yield (
            "Do not act on this depth. Check its unit and geometry (`uncertainty-depth info`); a "
            "wrong scale shows as `scale` far from 1."
            if found.is_recorded
            else "Do not act on this depth here. Fine-tune the model on drives like these (`train "
            "--from MODEL`), or correct its depth by odometry or a sensor (`--measurements`)."
        )
    elif found.red_checks & {UNFAMILIARITY, *CAMERA_NAMES.values()}:
        yield (
            "Fine-tune the model on drives like these (`train --from MODEL`), or correct its "
            "depth by odometry or a sensor (`--measurements`)."
        )
    if OUTSIDE_RANGE in found.red_checks:
        yield "Leave out what lies beyond the model's range (`--max-depth`), or train a wider one."
    if "order" in red:
        yield (
            "Check which way sigma or the confidence counts (`--confidence-type`): no calibration "
            "can mend a wrong order."
            if found.is_recorded
            else "Try another method (`--method`): no calibration can mend a wrong order."
        )
    if "size" in red:
        yield "Calibrate sigma on drives of your own (`calibrate`), then score others."
    elif found.is_calibrated_on:
        yield "Score frames that sigma was not calibrated on."
    if found.kind is SigmaKind.RANK:
        yield "Put the confidence in metres (`calibrate`), then score with `--sigma-map`."
    if found.kind is SigmaKind.NONE:
        yield "Give the depth a sigma (`calibrate`), then score with `--sigma-map`."
    if found.ranks_as_depth and "order" not in red:
        yield (
            "Use sigma's size, for bounds and gates: its order tells no more than the depth does."
        )
    if found.few_views and GREY in found.colors.values():
        yield "Record in more places: more frames of the same ones do not help."
    elif found.is_unclear:
        yield "Record in more places: the intervals are too wide to decide."
    if set(found.colors.values()) == {GREEN}:
        yield (
            "Act on it in places like these: bounds, trusted pixels and free space follow from "
            "sigma."
        )
        yield "Score again when the place, the camera or the light changes."
