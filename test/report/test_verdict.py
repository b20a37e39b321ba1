# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The verdict on a table of attacks: no worthless depth or sigma gets a green line."""

import json
import re
from dataclasses import asdict

import numpy as np
import pytest

from test.conftest import scored
from test.report.conftest import MODEL, evaluated, evaluation_of, evaluation_on, moments
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Overlap, Skipped, Use
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.judgement import Outcome
from uncertainty_depth.report.verdict import judge, sentences
from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION


def colors(verdict):
    return {line.name: line.color for line in verdict.lines}


def noise(moment, spread=0.25):
    return np.exp(moment.random.normal(0, spread, moment.truth.shape))


def shuffled(moment):
    return moment.random.permutation(moment.sigma.ravel()).reshape(moment.sigma.shape)


def without_hard_pixels(moment):
    error = np.abs(moment.depth - moment.truth)
    hard = error > np.quantile(error, 0.95)
    return np.where(hard, np.nan, moment.depth), moment.sigma


def without_most(moment):
    hard = moment.random.random(moment.truth.shape) < 0.3
    return np.where(hard, np.nan, moment.depth), moment.sigma


def mostly_anywhere(moment):
    wrong = moment.random.random(moment.truth.shape) < 0.4
    return np.where(wrong, moment.random.uniform(0.3, 80, wrong.shape), moment.depth), moment.sigma


ATTACKS = {
    # name: (depth and sigma, colours of depth, order, size)
    "the right sigma": (lambda it: (it.depth, it.sigma), "green green green"),
    "sigma a little large": (lambda it: (it.depth, 1.15 * it.sigma), "green green green"),
    "sigma x 10": (lambda it: (it.depth, 10 * it.sigma), "green green red"),
    "sigma / 10": (lambda it: (it.depth, it.sigma / 10), "green green red"),
    "sigma x 2": (lambda it: (it.depth, 2 * it.sigma), "green green red"),
    "sigma 0": (lambda it: (it.depth, 0 * it.sigma), "green red red"),
    "constant sigma": (lambda it: (it.depth, np.full_like(it.sigma, 0.5)), "green red red"),
    "sigma of the depth": (lambda it: (it.depth, 0.11 * it.depth), "green grey green"),
    "a little noise on the depth": (
        lambda it: (it.depth, 0.11 * it.depth * noise(it, 0.05)),
        "green grey green",
    ),
    "noise on the depth": (lambda it: (it.depth, 0.2 * it.depth * noise(it)), "green red red"),
    "noise alone": (lambda it: (it.depth, 0.4 * noise(it, 1.0)), "green red red"),
    "shuffled sigma": (lambda it: (it.depth, shuffled(it)), "green red red"),
    "upside down": (lambda it: (it.depth, 0.1 / it.sigma), "green red red"),
    "noise on sigma": (lambda it: (it.depth, it.sigma * noise(it)), "green green green"),
    "NaN on hard pixels": (without_hard_pixels, "grey grey grey"),
    "NaN on a third": (without_most, "red grey grey"),
    # Sigma grows with the true depth here, and so does the error of a constant.
    "a constant depth": (lambda it: (0 * it.depth + 3.0, it.sigma), "red grey red"),
    "a third anywhere": (mostly_anywhere, "red red red"),
    "half the depth": (lambda it: (0.5 * it.depth, it.sigma), "red red red"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_has_its_expected_colors(name):
    attack, expected = ATTACKS[name]
    verdict = judge(evaluated(attack, frames=48), MODEL, [])
    found = colors(verdict)
    assert " ".join(found[line] for line in ("depth", "order", "size")) == expected, "\n".join(
        sentences(asdict(verdict))
    )
    assert found["domain"] == "green"
    worst = "red" if "red" in expected else "grey" if "grey" in expected else "green"
    assert verdict.color == worst


TRAINED_HERE = [Overlap("x", Use.TRAINING, True, "m")]


@pytest.mark.parametrize(
    ("attack", "change", "trained_on", "first", "cause"),
    [
        ("the right sigma", {}, [], "Act on it in places like these", ""),
        ("sigma x 2", {}, [], "Calibrate sigma on drives of your own (`calibrate`)", ""),
        ("shuffled sigma", {}, [], "Try another method (`--method`): no calibration can mend", ""),
        ("half the depth", {}, [], "Do not act on this depth here. Fine-tune the model",
         "the depth is no better than one that ignores the image"),
        ("NaN on a third", {}, [], "Find out why the model leaves pixels out",
         "too little of the ground truth has a prediction"),
        ("half the depth", {"method": "recorded"}, [],
         "Do not act on this depth. Check its unit", ""),
        ("the right sigma", {"depth_range": [0.4, 4.0]}, [], "Leave out what lies beyond",
         "outside the model's depth range"),
        ("the right sigma", {}, TRAINED_HERE, "Score frames that the model was not trained on",
         "the model was trained on these frames"),
    ],
)  # fmt: skip
def test_each_verdict_names_what_is_red_and_says_what_to_do_now(
    attack, change, trained_on, first, cause
):
    verdict = judge(evaluated(ATTACKS[attack][0], frames=48), MODEL | change, trained_on)
    assert verdict.next_steps[0].startswith(first)
    assert len(verdict.next_steps) <= 3
    if cause:
        assert verdict.color == "red"
        assert cause in verdict.text
        assert ("ignores the image" in verdict.text) == (attack == "half the depth")
        assert "unlike the training's" not in verdict.text


def test_few_places_ask_for_more_of_them():
    assert judge(evaluated(frames=9), MODEL, []).next_steps[0].startswith("Record in more places")
    assert "`uncertainty-depth info`" in judge(Evaluation(), MODEL, []).next_steps[0]


def test_an_interval_that_is_too_wide_to_decide_asks_for_more_places():
    """Many independent views, and a sigma at the edge of what is accepted: nothing was said."""
    sigma_is_near_the_limit = lambda it: (it.depth, it.sigma * 4 / 3)  # noqa: E731
    verdict = judge(evaluation_of(sigma_is_near_the_limit, frames=96), MODEL, [])
    assert colors(verdict) == dict.fromkeys(("depth", "order", "domain"), "green") | {
        "size": "grey"
    }
    assert verdict.next_steps == ("Record in more places: the intervals are too wide to decide.",)


def camera(power, seed, noise=0.02):
    """Evaluate a camera whose sigma is the true one, a power of the depth."""
    random = np.random.default_rng(seed)

    def frame():
        truth = random.uniform(0.5, 4) + random.uniform(0, 6, (24, 32))
        depth = truth + random.normal(0, noise * truth**power)
        return truth, depth, noise * np.maximum(depth, 0) ** power  # it knows its own depth

    return evaluation_on(frame() for _ in range(48))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(2))
def test_a_right_sigma_that_is_a_power_of_the_depth_is_not_red(power, seed):
    """It ranks as the depth does, by construction: no more can be asked of it."""
    recorded = {"method": "recorded", "head": "gaussian"}
    verdict = judge(camera(power, seed), recorded, None)
    assert colors(verdict) == {"depth": "green", "order": "grey", "size": "green"}
    order = verdict.lines[1]
    assert "says no more than" in order.text
    assert order.text.endswith("enough for a camera")
    assert {check.outcome for check in order.checks} <= {Outcome.EQUAL, Outcome.UNCLEAR}
    assert verdict.text == "Sigma says no more than depth does"
    assert verdict.next_steps[0].startswith("Use sigma's size")


@pytest.mark.parametrize(("power", "noise"), [(0.0, 0.15), (0.5, 0.12), (1.0, 0.1)])
def test_a_right_sigma_is_not_red_for_the_near_pixels_that_are_inaccurate(power, noise):
    """Errors beyond a factor of 1.25 are near ones here, and sigma is largest far away."""
    verdict = judge(camera(power, 0, noise), {"method": "recorded", "head": "gaussian"}, None)
    assert colors(verdict) == {"depth": "green", "order": "grey", "size": "green"}


def test_a_sigma_that_ranks_worse_than_depth_is_red():
    """Half of the right ranks are lost: certainly worse, by more than a margin."""
    random = np.random.default_rng(0)

    def frame():
        truth = random.uniform(0.5, 4) + random.uniform(0, 6, (24, 32))
        depth = truth * random.normal(1, 0.05, truth.shape)
        return truth, depth, 0.05 * depth * np.exp(random.normal(0, 1.0, truth.shape))

    evaluation = evaluation_on(frame() for _ in range(48))
    (order,) = [each for each in judge(evaluation, {}, None).lines if each.name == "order"]
    assert order.color == "red"
    assert "is worse than sigma ~ depth (" in order.text


@pytest.mark.parametrize(
    ("near", "far", "words"),
    [
        (0.3, 9.0, "0.10 m below 0.5 m (the nearest), 0.10 m from 0.75 to 1.5 m, "),
        (0.6, 9.0, "0.10 m from 0.5 to 0.75 m (the nearest), 0.10 m from 0.75 to 1.5 m, "),
        (1.2, 9.0, "0.10 m from 1 to 1.5 m (the nearest), 0.10 m from 2 to 4 m"),
        (7.0, 14.0, "0.10 m from 6 to 8 m (the nearest), 0.10 m from 8 to 12 m; "),
        (9.0, 11.0, "0.10 m from 8 to 12 m (the nearest); "),
        (130.0, 150.0, "0.10 m beyond 128 m (the nearest); "),
    ],
)
def test_the_headline_names_the_intervals_of_its_errors_the_nearest_first(near, far, words):
    """The next obstacle is what a robot's user reads of; few pixels are no interval."""
    random = np.random.default_rng(0)
    evaluation = Evaluation(max_depth=200)
    for _ in range(30):
        truth = random.uniform(near, far, (24, 32))
        truth[0, :2] = 0.51  # 60 pixels in all frames
        evaluation.add_arrays(truth + 0.1, 0.1 * truth, truth)
    assert f"Mean error {words}" in evaluation.verdict().numbers


def test_a_depth_scored_against_itself_has_no_verdict():
    verdict = judge(evaluation_of(lambda it: (it.truth, it.sigma), frames=48), MODEL, [])
    assert verdict.color == "grey"
    assert verdict.text == "every error is 0: the ground truth is the depth that is scored"


def test_a_camera_is_green_without_a_training_and_with_honest_holes_and_so_are_arrays():
    evaluation = evaluation_of(without_most, frames=48)
    verdict = judge(evaluation, {"method": "recorded", "head": "laplace"}, None)
    assert colors(verdict) == {"depth": "green", "order": "green", "size": "green"}
    assert verdict.text.startswith("Can be trusted here")
    assert re.search(r"; 70\.[0-9] % of the ground truth has a depth$", verdict.numbers)
    assert "trained" not in " ".join(verdict.notes)
    assert evaluation.verdict(distribution="laplace") == verdict, "nobody describes a model"
    assert judge(evaluation, {}, None).lines[0].color == "green", "as live"


@pytest.mark.parametrize("frames", [1, 9])
def test_few_frames_are_never_green_and_clear_failures_are_red(frames):
    good = judge(evaluated(frames=frames), MODEL, [])
    assert good.color == "grey"
    assert "nan" not in " ".join(sentences(asdict(good)))
    assert "too few independent frames for a 95 % interval" in good.notes[0]
    bad = judge(evaluation_of(lambda it: (0.15 * it.depth, it.sigma / 5), frames), MODEL, [])
    assert colors(bad)["depth"] == colors(bad)["size"] == bad.color == "red"


@pytest.mark.parametrize(
    ("change", "trained_on", "expected", "words"),
    [
        ({}, [], "green", ""),
        ({"depth_range": [0.4, 4.0]}, [], "red", "outside the depth range of the model"),
        ({"depth_range": None}, [], "grey", "depth range of the model is not known"),
        ({"training": {}}, [], "grey", "of the training is not known"),
        ({}, None, "green", ""),
        ({}, [Overlap("x", Use.TRAINING, True, "m")], "red", "m was trained on frames of x"),
        ({}, [Overlap("y", Use.TRAINING, False, "m")], "grey", "if they are one"),
    ],
)
def test_domain_depends_on_model_and_source(change, trained_on, expected, words):
    verdict = judge(evaluated(frames=48), MODEL | change, trained_on)
    line = verdict.lines[-1]
    assert (line.name, line.color) == ("domain", expected)
    assert words in line.text
    assert ("unknown whether" in " ".join(verdict.notes)) == (trained_on is None)


@pytest.mark.parametrize(
    ("fx_per_width", "height", "expected"),
    [
        (0.69, 24, "green"),
        (0.74, 24, "grey"),
        (0.58, 24, "red"),
        (1.2, 24, "red"),
        (0.69, 18, "red"),
    ],
)
def test_camera_unlike_the_training_changes_the_domain(fx_per_width, height, expected):
    evaluation = Evaluation()
    camera = Camera(32, height, np.diag([32 * fx_per_width, 32 * fx_per_width, 1.0]))
    random = np.random.default_rng(0)
    for index in range(48):
        truth = random.uniform(1, 9, (height, 32)).astype(np.float32)
        evaluation.add(scored(index, truth, truth + 0.1, truth / 10, camera=camera))
        if expected == "green" and index == 0:
            assert judge(evaluation, MODEL, []).lines[-1].color == "grey", "one frame"
    assert judge(evaluation, MODEL, []).lines[-1].color == expected


FITTED_TO = {"depth_range_m": [0.5, 20.0], "sources": ["rooms"], "camera": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"depth_range_m": [0.5, 2.0]}, ["of the ground truth lies outside 0.5 to 2 m"]),
        ({"camera": {"focal_length_per_width": [0.68, 0.7], "aspect": [1.33, 1.34]}}, []),
        (
            {"camera": {"focal_length_per_width": [1.5, 1.5], "aspect": [1.33, 1.34]}},
            ["focal length / image width is 0.69, and 1.50 in the data"],
        ),
        ({"depth_range_m": "a few", "camera": 3, "sources": 7}, []),
    ],
)
def test_data_unlike_those_of_the_calibration_are_noted(change, words):
    calibrated = {**MODEL, "calibration": "scale", "fitted_to": {**FITTED_TO, **change}}
    notes = judge(evaluated(frames=12), calibrated, []).notes
    told = [note for note in notes if "(scale) was fitted to, rooms" in note]
    assert len(told) == len(words)
    assert all(word in note for word, note in zip(words, told, strict=True))
    assert len([note for note in notes if "was fitted to" in note]) == len(words)


def test_sigma_that_was_calibrated_on_these_frames_has_no_green_size():
    overlap = Overlap("drive", Use.CALIBRATION, True, "sigma")
    verdict = judge(evaluated(frames=48), MODEL, [], None, [overlap])
    assert colors(verdict) == {
        "depth": "green",
        "order": "green",
        "size": "grey",
        "domain": "green",
    }
    assert str(overlap) in sentences(asdict(verdict))[4]


@pytest.mark.parametrize(("part", "color"), [(0.008, "grey"), (0.02, "green")])
def test_a_gain_below_a_hundredth_is_not_green_however_certain(part, color):
    """Log depth goes a small part of the way from the best constant to the truth."""
    truths = np.exp(np.random.default_rng(0).normal(1.2, 0.5, (48, 24, 32))).clip(0.5, 15)
    depths = np.exp(1.2 * (1 - part)) * truths**part
    evaluation = evaluation_on(zip(truths, depths, depths / 10, strict=True))
    depth_line, *_ = judge(evaluation, {"method": "recorded"}, None).lines
    (check,) = (it for it in depth_line.checks if it.name.startswith("rmse_log"))
    assert check.color == color


def test_depth_must_beat_the_median_depth_of_the_training():
    """A depth equal to the median map is no better than it, though better than a constant."""
    truths = np.stack([moment.truth for moment in moments(64)])
    slope = np.linspace(0.3, 3.0, 24)[:, None]
    rows = np.arange(16) // 2 * 3 + 1  # the verdict merges four cells
    median_m = np.repeat(np.median(truths) * slope[rows], 20, axis=1)
    nearest_m = median_m[np.arange(24) * 16 // 24][:, np.arange(32) * 20 // 32]
    evaluation = evaluation_on((truth, nearest_m, nearest_m / 10) for truth in truths * slope)
    known = MODEL["training"] | {"median_depth_m": median_m.tolist()}
    lines = judge(evaluation, MODEL | {"training": known}, []).lines
    assert lines[0].color == "red"
    assert "the median depth of training" in lines[0].text
    unknown = {key: value for key, value in known.items() if key != "median_depth_m"}
    assert judge(evaluation, MODEL | {"training": unknown}, []).lines[0].color == "green"


def test_noise_of_few_samples_never_turns_green_to_red():
    """The noise of a sigma from few samples changes with the seed, its quality does not."""
    for strength in (0.0, 0.4):
        seen = []
        for seed in range(3):
            random = np.random.default_rng(100 + seed)

            def sampled(moment, random=random, strength=strength):
                weak = moment.sigma**strength * np.median(moment.sigma) ** (1 - strength)
                return moment.depth, weak * np.sqrt(random.chisquare(3, weak.shape) / 3)

            seen.append(colors(judge(evaluation_of(sampled, frames=40), MODEL, [])))
        for line in ("depth", "order", "size"):
            assert not {"green", "red"} <= {found[line] for found in seen}, (strength, line)


def gaussian(moment):
    return moment.truth + moment.random.normal(0, moment.sigma), moment.sigma


def test_gaussian_head_is_judged_by_gaussian_metrics():
    evaluation = evaluation_of(gaussian, frames=48)
    assert colors(judge(evaluation, MODEL | {"head": "gaussian"}, []))["size"] == "green"
    checks = judge(evaluation, MODEL | {"head": "gaussian"}, []).lines[2].checks
    assert {check.name.split("(")[-1].split(")")[0].lower() for check in checks} == {"gaussian"}


def test_measured_intervals_are_judged_in_place_of_the_distributions():
    """Gaussian errors of a model with a Laplace head, whose calibration measured the widths."""

    def auce(half_widths):
        described = MODEL | {"head": "laplace", "half_widths": half_widths}
        lines = judge(evaluation, described, []).lines
        (check,) = [check for check in lines[2].checks if check.name.startswith("AUCE")]
        return check.value

    evaluation = evaluation_of(gaussian, frames=24)
    by_law = auce(None)
    assert by_law > 0.05
    assert auce(BY_DISTRIBUTION["gaussian"].at_levels) < 0.01
    assert auce([1.0, "damaged"]) == by_law


def test_measured_intervals_are_held_against_measured_ones():
    """Baselines have intervals by a distribution, which are further off: by .04 here."""
    evaluation = evaluation_of(lambda it: (it.depth, it.sigma), frames=48)
    wide = [1.35 * width for width in BY_DISTRIBUTION["laplace"].at_levels]
    lines = judge(evaluation, MODEL | {"half_widths": wide}, []).lines
    (check,) = [check for check in lines[2].checks if check.name.startswith("AUCE")]
    assert check.value > 0.05
    assert check.color == "red"
    assert "measured intervals fitted to these data (0.000)" in check.text


def test_verdict_of_nothing_scored_says_why():
    evaluation = Evaluation()
    evaluation.skip(Skipped(None, "no_lidar", "..."))
    verdict = judge(evaluation, {}, [])
    assert verdict.color == "grey"
    assert verdict.text == "no frame could be scored: 1 no_lidar"
    assert judge(Evaluation(), {}, []).text == "no frame could be scored: none was read"


def test_frames_without_prediction_lower_the_scored_fraction():
    evaluation = evaluation_of(frames=40)
    truth = np.full((24, 32), 3, np.float32)
    nothing = np.full_like(truth, np.nan)
    for index in range(10):
        evaluation.add(scored(index, truth, nothing, nothing))
    assert evaluation.skipped == {"no_valid_pixel": 10}
    line = judge(evaluation, MODEL, []).lines[0]
    assert line.color == "red"
    assert "only 80.0 % of the ground truth has a prediction" in line.text


def test_verdict_is_json_with_one_sentence_per_line():
    verdict = asdict(judge(evaluated(frames=48), MODEL, None))
    again = json.loads(json.dumps(verdict))
    assert [line["name"] for line in again["lines"]] == ["depth", "order", "size", "domain"]
    told = sentences(again)
    assert told[0] == f"verdict: {again['color']}. {again['text']}"
    assert told[1].strip() == again["numbers"]
    assert len(told) == 6 + len(again["notes"]) + len(again["next_steps"])
    assert asdict(judge(Evaluation(), {}, None))["lines"] == ()


MISMATCHES = {
    "farther": lambda it: 3 * it.depth + 2,
    "ten times as far": lambda it: 10 * it.depth,
    "ten times as near": lambda it: it.depth / 10,
    "anywhere": lambda it: it.random.uniform(0.3, 80, it.depth.shape),
}


@pytest.mark.parametrize(
    ("mismatch", "is_shuffled"), [*((name, False) for name in MISMATCHES), ("anywhere", True)]
)
def test_mismatches_in_one_pixel_of_a_hundred_do_not_decide(mismatch, is_shuffled):
    """As every stereo camera has them; likelihood and AUSE rmse alone condemn a right sigma."""

    def mismatched(moment):
        wrong = moment.random.random(moment.depth.shape) < 0.01
        depth = np.where(wrong, MISMATCHES[mismatch](moment), moment.depth)
        return depth, shuffled(moment) if is_shuffled else moment.sigma

    lines = {line.name: line for line in judge(evaluation_of(mismatched, 96), MODEL, []).lines}
    assert lines["depth"].color == "green"
    assert re.search(
        r"[12]\.[0-9] % of the depths are off by about 2x or more", lines["depth"].text
    )
    if is_shuffled:
        assert lines["order"].color == "red"
        return
    assert lines["order"].color == lines["size"].color == "green"
    assert re.search(r"[01]\.[0-9] % of the errors lie beyond 6 sigma", lines["size"].text)
    has_gross_errors = mismatch != "ten times as near"
    assert ("a few gross errors" in lines["order"].text) == has_gross_errors


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.25, "Can be trusted here: accurate to a tenth"),
        (1.0, "Can be trusted here: useful"),
        (3.0, "not yet useful"),
    ],
)
def test_green_says_how_good_the_depth_is(factor, words):
    def scaled(moment):
        depth = moment.truth + factor * (moment.depth - moment.truth)
        depth[0, 0] = 0.0  # one pixel without a depth does not make it red
        return np.maximum(depth, 0.0), factor * moment.sigma

    verdict = judge(evaluation_of(scaled, frames=64), MODEL, [])
    assert verdict.color == "green"
    assert words in verdict.text
    assert ("Can be trusted" in verdict.text) == ("not yet" not in words)
    number = "[0-9.]+ m"
    assert re.search(
        f"Mean error {number} from 0.5 to 0.75 m .the nearest., {number} from 0.75 to 1.5 m, "
        f"{number} from 2 to 4 m, {number} from 8 to 12 m; ",
        verdict.numbers,
    )
    assert re.search(r"[0-9]+ % of pixels within 10 % of the truth$", verdict.numbers)
