# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The verdict on an evaluation: four lines, each green, red, or grey for "undecided".

depth   is the depth better than a depth that ignores the image?
order   does sigma rank the errors better than a constant, or than depth itself?
size    do sigma's intervals cover as many errors as they claim?
domain  are these data like those the model was trained on? of a recorded depth this is
        known from its node's unfamiliarity alone, and left out without it

A depth without sigma has neither order nor size.

Any red line makes the verdict red. A metric counts as better or worse only if its difference's 95
% interval, by a block bootstrap over frames, excludes zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from uncertainty_depth.core import strict
from uncertainty_depth.core.geometry.focal_length import CameraRange
from uncertainty_depth.core.records import Overlap
from uncertainty_depth.metrics.bootstrap import ENOUGH_BLOCKS, MIN_VIEWS, Resampled
from uncertainty_depth.metrics.metric import NOT_JUDGED, SHARE, SigmaKind, percent_text
from uncertainty_depth.metrics.registry import BASELINES, BY_NAME
from uncertainty_depth.metrics.state import DISTANCE, Sums
from uncertainty_depth.report import judgement
from uncertainty_depth.report.judgement import (
    GREEN,
    GREY,
    MIN_BLOCKS,
    RED,
    SCORED,
    SCORED_ENOUGH,
    Check,
    Outcome,
)
from uncertainty_depth.report.model_facts import is_recorded, part_of
from uncertainty_depth.report.page import MIN_PIXELS, unfamiliarity_text
from uncertainty_depth.report.scores import Scores
from uncertainty_depth.sigma.calibration.fitted_data import advice

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
MANY_STILL = 0.5
"""Above this fraction of still frames the verdict says so."""
MAX_CHECKS_IN_LINE = 2
MAX_STEPS = 3
FAILURES = {
    "depth": "the depth is no better than one that ignores the image",
    "order": "sigma ranks the errors worse than a trivial sigma",
    "size": "sigma has the wrong size",
    "domain": "the data are unlike the training's",
    SCORED: "too little of the ground truth has a prediction",
    TRAINED_ON: "the model was trained on these frames",
    OUTSIDE_RANGE: "much of the ground truth is outside the model's depth range",
}
"""What a red check says, for the headline: by its name if that is here, else by its line's."""
QUESTIONS = {
    "depth": "the depth",
    "order": "the ranking of sigma",
    "size": "the size of sigma",
    "domain": "whether the data are like the training's",
}
"""What a grey line leaves open, for the headline."""
TRUSTED = "Can be trusted here"
USEFUL = {"depth.a1": 0.8, "depth.within_10_percent": 0.5}
ACCURATE = {"depth.a1": 0.95, "depth.within_10_percent": 0.8}
"""Lowest values to be called useful, and accurate to a tenth: a tenth of the distance is what a
planner's margins are made of."""
USEFUL_ORDER = 0.85
"""A sigma is useful if its AUSE of 1 - a1 is at most this fraction of the better baseline's."""
DISTANCES_M = ((0.75, 1.5), (2.0, 4.0), (8.0, 12.0))
"""Where the headline gives the error beside the nearest interval: about 1, 3 and 10 m."""


@dataclass(frozen=True)
class Line:
    """One of the four questions, with the worst color of its checks and their text."""

    name: str
    color: str
    text: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Verdict:
    """The verdict on an evaluation.

    Attributes:
        color: red if any line is, green if all are, else grey.
        text: the headline.
        numbers: what a robot's user can judge: errors by distance, and the share that is known.
        next_steps: what to do now, the most useful first.
        lines: depth, order, size, domain; order and size not for a depth without sigma, domain not
            for a recorded depth without unfamiliarity; empty if no frame was scored.
        blocks: how many blocks of frames the intervals are based on.
        notes: the verdict's limits.
    """

    color: str
    text: str
    numbers: str = ""
    next_steps: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    blocks: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return headline, lines and notes, as on a terminal."""
        return "\n".join(sentences(asdict(self)))


def judge(
    evaluation: Scores,
    model: Mapping[str, Any],
    trained_on: Sequence[Overlap] | None,
    sample: Resampled | None = None,
    calibrated_on: Sequence[Overlap] = (),
) -> Verdict:
    """Return the verdict on all frames scored so far.

    An empty `model` is unknown, `trained_on` is None if the source is, as in a live run; both
    lists name scored sources. `sample` is the metrics', if the caller has it.
    """
    if not evaluation.evaluated:
        reasons = ", ".join(f"{count} {reason}" for reason, count in evaluation.skipped.items())
        text = f"no frame could be scored: {reasons or 'none was read'}"
        return Verdict(GREY, text, next_steps=NOTHING_SCORED)
    sample = sample or evaluation.resampled()
    if not BY_NAME["depth.mae"].values(sample.total)[0]:  # no camera and no LiDAR is that exact
        return Verdict(GREY, "every error is 0: the ground truth is the depth that is scored")
    kind = evaluation.sigma_kind
    checks = {"depth": judgement.depth_checks(sample, model)}
    if kind is not SigmaKind.NONE:
        checks["order"] = judgement.order_checks(sample, model)
        checks["size"] = judgement.size_checks(sample, model)
    if not is_recorded(model):
        checks["domain"] = domain_checks(sample, evaluation.cameras, model, trained_on)
    elif published := unfamiliarity_checks(sample, model):
        checks["domain"] = published
    enough = sample.has_intervals and sample.drawn_blocks >= MIN_BLOCKS
    few = "" if enough else "too few frames for a green line"  # whatever its checks are
    size_doubt = "; ".join(map(str, calibrated_on)) or few
    lines = tuple(
        Line(name, GREY, NOT_JUDGED[kind], ())
        if name == "size" and kind is SigmaKind.RANK
        else _line(name, line_checks, size_doubt if name == "size" else few)
        for name, line_checks in checks.items()
    )
    color = _worst([line.color for line in lines])
    notes = tuple(_notes(evaluation, sample, model, trained_on))
    decisive = [line.name for line in lines if line.color == color]
    ranks_as_depth = {
        check.outcome for check in checks.get("order", ()) if check.color == GREY
    } == {Outcome.EQUAL}
    few_views = not sample.has_intervals or sample.drawn_blocks < ENOUGH_BLOCKS
    if color == GREEN:
        headline = _level(sample, kind)
    elif color == RED:
        red = [(line, check) for line in lines for check in line.checks if check.color == RED]
        failures = [FAILURES.get(check.name, FAILURES[line.name]) for line, check in red]
        headline = f"Do not trust: {'; '.join(dict.fromkeys(failures))}"
    elif decisive == ["order"] and ranks_as_depth:
        headline = "Sigma says no more than depth does"
    else:
        reason = "too few different places" if few_views else "not enough is known"
        headline = f"Undecided: {reason} to judge {_questions(decisive)}"
    steps = _next_steps(
        lines, kind, is_recorded(model), bool(calibrated_on), ranks_as_depth, few_views
    )
    return Verdict(
        color,
        headline,
        _numbers(sample),
        tuple(islice(steps, MAX_STEPS)),
        lines,
        sample.drawn_blocks,
        notes,
    )


def _next_steps(
    lines: Sequence[Line],
    kind: SigmaKind,
    is_recorded: bool,
    is_calibrated_on: bool,
    ranks_as_depth: bool,
    few_views: bool,
) -> Iterator[str]:
    """Yield what to do now as sentences, the most useful first."""
    colors = {line.color for line in lines}
    red = {line.name for line in lines if line.color == RED}
    checks = [(line.name, check) for line in lines for check in line.checks]
    red_checks = {check.name for _, check in checks if check.color == RED}
    is_unclear = any(
        check.color == GREY and check.outcome is not Outcome.EQUAL
        for line, check in checks
        if line != "domain" and check.name != SCORED
    )
    if TRAINED_ON in red_checks:
        yield "Score frames that the model was not trained on."
    if SCORED in red_checks:
        yield "Find out why the model leaves pixels out: they are not scored."
    elif "depth" in red:
        yield (
            "Do not act on this depth. Check its unit and geometry (`uncertainty-depth info`); a "
            "wrong scale shows as `scale` far from 1."
            if is_recorded
            else "Do not act on this depth here. Fine-tune the model on drives like these (`train "
            "--from MODEL`), or correct its depth by odometry or a sensor (`--measurements`)."
        )
    elif red_checks & {UNFAMILIARITY, *CAMERA_NAMES.values()}:
        yield (
            "Fine-tune the model on drives like these (`train --from MODEL`), or correct its "
            "depth by odometry or a sensor (`--measurements`)."
        )
    if OUTSIDE_RANGE in red_checks:
        yield "Leave out what lies beyond the model's range (`--max-depth`), or train a wider one."
    if "order" in red:
        yield (
            "Check which way sigma or the confidence counts (`--confidence-type`): no calibration "
            "can mend a wrong order."
            if is_recorded
            else "Try another method (`--method`): no calibration can mend a wrong order."
        )
    if "size" in red:
        yield "Calibrate sigma on drives of your own (`calibrate`), then score others."
    elif is_calibrated_on:
        yield "Score frames that sigma was not calibrated on."
    if kind is SigmaKind.RANK:
        yield "Put the confidence in metres (`calibrate`), then score with `--sigma-map`."
    if kind is SigmaKind.NONE:
        yield "Give the depth a sigma (`calibrate`), then score with `--sigma-map`."
    if ranks_as_depth and "order" not in red:
        yield (
            "Use sigma's size, for bounds and gates: its order tells no more than the depth does."
        )
    if few_views and GREY in colors:
        yield "Record in more places: more frames of the same ones do not help."
    elif is_unclear:
        yield "Record in more places: the intervals are too wide to decide."
    if colors == {GREEN}:
        yield (
            "Act on it in places like these: bounds, trusted pixels and free space follow from "
            "sigma."
        )
        yield "Score again when the place, the camera or the light changes."


def sentences(verdict: Mapping[str, Any]) -> list[str]:
    """Return a verdict's headline, lines and notes (as a dict) for a terminal."""
    lines = [f"  {line['color']:5}  {line['name']}: {line['text']}" for line in verdict["lines"]]
    return [
        f"verdict: {verdict['color']}. {verdict['text']}",
        *([f"  {verdict['numbers']}"] if verdict["numbers"] else []),
        *lines,
        *(f"  note: {note}" for note in verdict["notes"]),
        *(f"  now: {step}" for step in verdict["next_steps"]),
    ]


def diagnostic_values(verdict: Verdict) -> dict[str, str]:
    """Return the verdict as short key-value pairs, for diagnostics."""
    lines = {f"verdict.{line.name}": f"{line.color}: {line.text}" for line in verdict.lines}
    headline = f"{verdict.color}: {verdict.text}"
    return {"verdict": headline, "verdict.numbers": verdict.numbers, **lines}


def _line(name: str, checks: Sequence[Check], doubt: str) -> Line:
    color = _worst([check.color for check in checks])
    decisive = [check.text for check in checks if check.color == color]
    text = "; ".join(decisive[:MAX_CHECKS_IN_LINE]) or "no data to judge it by"
    if len(decisive) > MAX_CHECKS_IN_LINE:
        more = len(decisive) - MAX_CHECKS_IN_LINE
        text += f"; {more} more {'check' if more == 1 else 'checks'} in the report"
    if color == GREEN and doubt:
        color = GREY
        text = f"{doubt}; so far: {text}"
    return Line(name, color, text, tuple(checks))


def _questions(names: Sequence[str]) -> str:
    """Return what lines leave open, as `a`, `a and b`, or `a, b and c`."""
    parts = [QUESTIONS[name] for name in names]
    if {"order", "size"} <= {*names}:
        parts.remove(QUESTIONS["size"])
        parts[parts.index(QUESTIONS["order"])] = "the ranking and size of sigma"
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _worst(colors: Sequence[str]) -> str:
    if RED in colors:
        return RED
    return GREEN if colors and GREY not in colors else GREY


def _level(sample: Resampled, kind: SigmaKind) -> str:
    """Return a green verdict's headline: beating a trivial baseline is not yet trust."""
    trusted = TRUSTED + (" as a depth without sigma" if kind is SigmaKind.NONE else "")
    values = {name: float(BY_NAME[name].values(sample.total)[0]) for name in USEFUL}
    metric = BY_NAME["uncertainty.ause.a1"]
    best = min(metric.values(sample.total.of(name))[0] for name in BASELINES)
    orders = kind is SigmaKind.NONE or metric.values(sample.total)[0] <= USEFUL_ORDER * best
    if not orders or any(values[name] < limit for name, limit in USEFUL.items()):
        return "Better than trivial, but not yet useful"
    if any(values[name] < limit for name, limit in ACCURATE.items()):
        return f"{trusted}: useful"
    return f"{trusted}: accurate to a tenth"


def _numbers(sample: Resampled) -> str:
    """Return the error near and far, and how much is known, as one sentence."""
    errors = _errors_by_distance(sample.total)
    known = float(BY_NAME["depth.within_10_percent"].values(sample.total)[0])
    near = f"Mean error {', '.join(errors)}; " if errors else ""
    filled = float(BY_NAME["scored_fraction"].values(sample.total)[0])
    holes = f"; {percent_text(filled)} of the ground truth has a depth"
    accurate = f"{percent_text(known, 0)} of pixels within 10 % of the truth"
    return f"{near}{accurate}{holes if filled < SCORED_ENOUGH else ''}"


def _errors_by_distance(sums: Sums) -> list[str]:
    """Return the mean error of the nearest pixels, the next obstacle's, and farther away."""
    edges = DISTANCE.edges
    pixels = sums["distance.pixels"][0]
    (occupied,) = np.nonzero(pixels >= MIN_PIXELS)
    if not len(occupied):
        return []
    places = [slice(occupied[0], occupied[0] + 1)]
    for low, high in DISTANCES_M:
        place = slice(*np.searchsorted(edges, (low, high)).tolist())
        if (pixels[place] >= MIN_PIXELS).all() and place != places[0]:
            places.append(place)
    found = []
    for place in places:
        error = sums["distance.error"][0, place].sum() / pixels[place].sum()
        low = edges[place.start]
        high = edges[place.stop]
        span = f"from {low:g} to {high:g} m" if math.isfinite(high) else f"beyond {low:g} m"
        found.append(f"{error:.2f} m {span if low else f'below {high:g} m'}")
    found[0] += " (the nearest)"
    return found


def _notes(
    evaluation: Scores,
    sample: Resampled,
    model: Mapping[str, Any],
    trained_on: Sequence[Overlap] | None,
) -> list[str]:
    blocks = sample.drawn_blocks
    views = evaluation.evaluated - evaluation.views.still - evaluation.views.repeated
    notes = []
    if not sample.has_intervals:
        notes.append(
            f"too few independent frames for a 95 % interval: {views} of {evaluation.evaluated} "
            f"show something new, expected at least {MIN_VIEWS}; differences are only rough"
        )
    elif blocks < ENOUGH_BLOCKS:
        notes.append(
            f"{evaluation.evaluated} frames, but only about {blocks} independent views: the "
            f"intervals are wide, and below {MIN_BLOCKS} views no line is green"
        )
    places = evaluation.views.places
    if places == blocks < ENOUGH_BLOCKS and places < len(evaluation.metrics.blocks):
        notes.append(
            f"all frames are of {places} {'place' if places == 1 else 'places'}, as those of a "
            "camera that stands and shakes: that many independent views count"
        )
    still = evaluation.views.still
    if still > MANY_STILL * evaluation.evaluated:
        notes.append(
            f"the camera hardly moved: {still} of {evaluation.evaluated} frames show what the "
            "frame before shows and count as one with it"
        )
    if evaluation.views.repeated:
        notes.append(
            f"{evaluation.views.repeated} of {evaluation.evaluated} frames have the scores of an "
            "earlier frame (a bag that loops, a copy, a simulation that stands still) and are no "
            "new evidence"
        )
    if "head" not in model and evaluation.sigma_kind is SigmaKind.METRES:
        notes.append(
            "sigma is judged as a Gaussian's: nothing says how the errors are distributed"
        )
    if evaluation.sigma_kind is SigmaKind.NONE:
        notes.append(NOT_JUDGED[SigmaKind.NONE])
    if trained_on is None and not is_recorded(model):
        notes.append("unknown whether the model was trained on these frames")
    return notes + calibration_notes(sample, evaluation.cameras, model)


OUTSIDE_TOLERANCE = 0.01  # fraction of the ground truth that a depth range may leave out
SAME_FACTOR = 1.02  # up to it focal length or aspect equal the training's, but for rounding
DIFFERENT_FACTOR = 1.1  # beyond it the camera is another one
CALIBRATED_DEPTH_TOLERANCE = 0.1  # the range it is compared with held 98 % of the depths fitted to
CALIBRATED_CAMERA_FACTOR = 1.05  # beyond it the camera is not one that sigma was calibrated on


def domain_checks(
    sample: Resampled,
    cameras: CameraRange,
    model: Mapping[str, Any],
    trained_on: Sequence[Overlap] | None,
) -> list[Check]:
    """Return all domain checks, grey if model or data lack the information."""
    training_camera = part_of(part_of(model, "training"), "camera")
    results = unfamiliarity_checks(sample, model)
    results.append(_depth_range_check(sample, _depth_range(model, cameras)))
    for name, label in CAMERA_NAMES.items():
        trained = strict.limits_of(training_camera.get(name))
        results.append(_camera_check(label, getattr(cameras, name), trained))
    if trained_on:
        color = RED if any(overlap.certain for overlap in trained_on) else GREY
        results.append(Check(TRAINED_ON, color, "; ".join(map(str, trained_on))))
    elif trained_on is not None:
        text = "no source with these names was trained on"
        results.append(Check(TRAINED_ON, GREEN, text))
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
        f"{', '.join(names)}: {advice(is_recorded(model))}"
    )
    notes = []
    depths = strict.limits_of(fitted.get("depth_range_m"))
    outside = float(judgement.outside(*depths)(sample.total)[0]) if depths else 0.0
    if depths and outside > CALIBRATED_DEPTH_TOLERANCE:
        notes.append(
            f"{percent_text(outside, 0)} of the ground truth lies outside {depths[0]:.3g} to "
            f"{depths[1]:.3g} m, the depths of {origin}"
        )
    camera = part_of(fitted, "camera")
    for name, label in CAMERA_NAMES.items():
        data_range = getattr(cameras, name)
        training_range = strict.limits_of(camera.get(name))
        if (
            data_range
            and training_range
            and _camera_factor(data_range, training_range) > CALIBRATED_CAMERA_FACTOR
        ):
            notes.append(
                f"{label} is {_span(data_range)}, and {_span(training_range)} in {origin}"
            )
    return notes


def unfamiliarity_checks(sample: Resampled, model: Mapping[str, Any]) -> list[Check]:
    """Return the check on the mean unfamiliarity; empty if no frame has one.

    A run may stay in one place, so its mean is compared with those of single places.
    """
    prefix = "unfamiliarity."
    values = {
        name.removeprefix(prefix): metric.values(sample.total)[0].item()
        for name, metric in BY_NAME.items()
        if name.startswith(prefix)
    }
    if not values["frames"]:
        return []
    values["frames"] = int(values["frames"])
    metric = BY_NAME[f"{prefix}mean"]
    interval = sample.interval(sample.rows(metric), values["mean"], metric.limits)
    found = f"unfamiliarity {unfamiliarity_text(values)}"
    places = strict.limits_of(model.get("familiar_places"))
    if not places:
        color = GREY
        text = f"not known which unfamiliarity is usual in the training's places; {found}"
    else:
        familiar, unfamiliar = places
        if interval.value <= familiar:
            color = GREEN
            word = "like"
        elif interval.low > unfamiliar or (
            interval.value > unfamiliar and sample.drawn_blocks >= MIN_BLOCKS
        ):
            color = RED
            word = "unlike"
        else:
            color = GREY
            word = "a little unlike"
        text = (
            f"the images are {word} the training's: {found}; familiar places: 90 % below "
            f"{familiar:.2f}, 99 % below {unfamiliar:.2f}"
        )
    return [Check(UNFAMILIARITY, color, text, interval.value, (interval.low, interval.high))]


def _depth_range(model: Mapping[str, Any], cameras: CameraRange) -> Sequence[float] | None:
    """Return the depths, metres, that the model can predict for these cameras, if known."""
    limits = strict.limits_of(model.get("depth_range"))
    canonical = model.get("canonical_focal_length")
    focal_lengths = cameras.focal_length_per_width
    aspects = cameras.aspect
    if not limits or not canonical or not focal_lengths or not aspects:
        return limits
    low = focal_lengths[0] * math.sqrt(aspects[0]) / canonical
    high = focal_lengths[1] * math.sqrt(aspects[1]) / canonical
    return (limits[0] * low, limits[1] * high)


def _depth_range_check(sample: Resampled, depth_range: Sequence[float] | None) -> Check:
    name = OUTSIDE_RANGE
    if not depth_range:
        return Check(name, GREY, "the depth range of the model is not known")
    low, high = depth_range
    rows = sample.rows(judgement.outside(low, high))
    outside = sample.interval(rows, float(rows[0]), SHARE)
    if outside.low > OUTSIDE_TOLERANCE:
        color = RED
    elif outside.high < OUTSIDE_TOLERANCE:
        color = GREEN
    else:
        color = GREY
    text = (
        f"{outside.text_in_percent()} of the ground truth lies outside the depth range of the "
        f"model, {low:.3g} to {high:.3g} m"
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
