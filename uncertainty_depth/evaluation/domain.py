"""The checks behind the line domain of the verdict: are these data like those of the training?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncertainty_depth.data.source import PERHAPS
from uncertainty_depth.evaluation.camera_range import CameraRange
from uncertainty_depth.evaluation.estimates import Estimates
from uncertainty_depth.evaluation.judgement import GREEN, GREY, RED, Check
from uncertainty_depth.evaluation.model_facts import limits_of, training_camera_of

OUTSIDE_TOLERANCE = 0.01  # fraction of the ground truth that a depth range may leave out
SAME = 1.02  # factor up to which a focal length or aspect is the training's: rounding, cropping
UNLIKE = 1.1  # factor from which on it is another's
CAMERA_NAMES = {
    "focal_length_per_width": "focal length / image width",
    "aspect": "image width / height",
}


def checks(
    estimates: Estimates,
    cameras: CameraRange,
    model: Mapping[str, Any],
    trained_on: Sequence[str] | None,
) -> list[Check]:
    """All checks of the domain; grey where the model or the data do not say."""
    known = training_camera_of(model)
    found = [_depth_range_check(estimates, limits_of(model.get("depth_range")))]
    for name, label in CAMERA_NAMES.items():
        found.append(_camera_check(label, getattr(cameras, name), limits_of(known.get(name))))
    if trained_on is not None:
        found.append(_trained_on_check(trained_on))
    return found


def _depth_range_check(estimates: Estimates, depth_range: Sequence[float] | None) -> Check:
    name = "ground truth outside the depth range"
    if not depth_range:
        return Check(name, GREY, "the depth range of the model is not known")
    low, high = depth_range
    rows = estimates.outside(low, high)
    outside = estimates.interval(rows, float(rows[0]))
    if outside.low > OUTSIDE_TOLERANCE:
        color = RED
    elif outside.high < OUTSIDE_TOLERANCE:
        color = GREEN
    else:
        color = GREY
    text = (
        f"{outside.value:.1%} ({max(outside.low, 0):.1%} to {min(outside.high, 1):.1%}) of the "
        f"ground truth lies outside the depth range of the model, {low:g} to {high:g} m"
    )
    return Check(name, color, text, outside.value, (outside.low, outside.high))


def _camera_check(
    label: str, here: Sequence[float] | None, trained: Sequence[float] | None
) -> Check:
    if not trained:
        return Check(label, GREY, f"the {label} of the training is not known")
    if not here:
        return Check(label, GREY, f"the {label} of these data is not known")
    departure = max(trained[0] / here[0], here[1] / trained[1])
    color = GREEN if departure <= SAME else RED if departure > UNLIKE else GREY
    word = "as in" if color == GREEN else "unlike" if color == RED else "a little unlike"
    text = f"{label} is {_span(here)}, {word} the training's, {_span(trained)}"
    return Check(label, color, text, float(here[0]))


def _span(limits: Sequence[float]) -> str:
    low, high = (f"{value:.2f}" for value in limits)
    return low if low == high else f"{low} to {high}"


def _trained_on_check(trained_on: Sequence[str]) -> Check:
    name = "frames of the training"
    if not trained_on:
        text = "none of these frames was trained on, as far as the names of the sources tell"
        return Check(name, GREEN, text)
    certain = [sentence for sentence in trained_on if PERHAPS not in sentence]
    return Check(name, RED if certain else GREY, "; ".join(trained_on))
