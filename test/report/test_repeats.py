# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames that show what an earlier frame showed: a still camera, a loop, a copy."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from test.conftest import scored
from test.report.conftest import MODEL, moments, saved
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.metrics.frame import ScoredPixels
from uncertainty_depth.report import repeats
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.repeats import RepeatDetector
from uncertainty_depth.report.verdict import judge

SHAPE = (96, 128)


def scene(random, index):
    """A slanted wall with boxes: ground truth, metres, and its image."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    truth = (
        2
        + 0.4 * (index % 3)
        + 3 * random.uniform(0.2, 1) * columns / SHAPE[1]
        + 0.5 * random.uniform() * rows / SHAPE[0]
    )
    image = np.repeat(
        (40 + 150 * random.uniform(0, 1, (12, 16))).repeat(8, 0).repeat(8, 1)[..., None], 3, 2
    )
    return truth, image


def frames(number, moves, kind, seed=0, change=0.05):
    """Noisy sensors' frames; predictions repeat their error in each view."""
    random = np.random.default_rng(seed)
    pose = np.eye(4)
    for index in range(number):
        if index == 0 or moves:
            truth, image = scene(random, index)
            error = random.laplace(0, 0.1, SHAPE)
            pose[0, 3] += 0.3
        measured = truth * random.normal(1, 0.003, SHAPE)
        depth = truth + error + random.normal(0, change, SHAPE)
        sigma = np.full(SHAPE, 0.15, np.float32) * (1 + index % 2 / 50)
        seen = (image + random.normal(0, 3, image.shape)).clip(0, 255).astype(np.uint8)
        yield scored(
            index,
            measured.astype(np.float32),
            depth.astype(np.float32),
            sigma,
            image=seen if kind == "image" else None,
            pose=pose.copy() if kind == "pose" else None,
        )


def evaluated(*arguments, **options):
    evaluation = Evaluation()
    for frame in frames(*arguments, **options):
        evaluation.add(frame)
    return evaluation


@pytest.mark.parametrize("kind", ["image", "truth", "pose"])
def test_one_view_is_one_block_and_never_green_and_a_camera_that_moves_gives_one_a_frame(kind):
    moving = evaluated(24, True, kind)
    assert len(moving.metrics.blocks) == 24
    assert moving.views.still == moving.views.repeated == 0
    assert not any("hardly moved" in note for note in judge(moving, {}, None).notes)
    evaluation = evaluated(24, False, kind)
    assert len(evaluation.metrics.blocks) == 1
    verdict = judge(evaluation, {}, None)
    assert verdict.color != "green"
    assert "green" not in {line.color for line in verdict.lines[:3]}
    assert any("the camera hardly moved: 23 of 24 frames" in note for note in verdict.notes)


@pytest.mark.parametrize("has_images", [True, False])
@pytest.mark.parametrize(("rate", "still"), [(2.0, 0), (1000.0, 7)])
def test_a_robot_that_drives_straight_is_not_still_and_one_at_rest_is(rate, still, has_images):
    """At 2 Hz it drives 0.3 m from frame to frame, at 1 kHz less than a millimetre.

    Of the pixels that have a LiDAR point in both of two frames, most are as far as before: floor
    and side walls. A point that comes nearer moves to another pixel.
    """
    evaluation = Evaluation()
    random = np.random.default_rng(5)
    for frame in SyntheticSource(SynthesisConfig(worlds=1, frames=8, seed=20_000, rate=rate)):
        depth = frame.ground_truth_m * random.normal(1.1, 0.02, frame.ground_truth_m.shape)
        made = DepthPrediction(depth.astype(np.float32), np.full_like(frame.ground_truth_m, 0.2))
        image = frame.image if has_images else None
        evaluation.add(replace(frame, image=image, prediction=made))
    assert evaluation.views.still == still
    assert len(evaluation.metrics.blocks) == 8 - still


def seen_through(windows, seed=0):
    """The evaluation of a right sigma where these windows, (row, column), look at a room."""
    random = np.random.default_rng(seed)
    room = np.full((200, 1400), 6.0)
    for _ in range(50):
        row, column = random.integers(0, 200), random.integers(0, 1400)
        room[row : row + 90, column : column + 70] = random.uniform(1, 6)
    evaluation = Evaluation()
    for index, (row, column) in enumerate(windows):
        truth = room[row : row + SHAPE[0], column : column + SHAPE[1]].astype(np.float32)
        sigma = 0.05 * truth * np.exp(random.normal(0, 0.7, SHAPE))
        depth = truth + random.normal(0, sigma)
        evaluation.add(scored(index, truth, depth.astype(np.float32), sigma.astype(np.float32)))
    return evaluation


def test_a_camera_that_shakes_is_of_one_place_and_one_that_looks_around_is_not():
    """By 2 % of the image: each frame shows something new, but in the same place."""
    random = np.random.default_rng(1)
    shaking = 40 + np.round(random.normal(0, 0.02 * SHAPE[1], (60, 2))).astype(int)
    verdict = judge(shaken := seen_through(shaking), {}, None)
    assert shaken.views.still < 50
    assert shaken.views.places < 5
    assert verdict.blocks <= shaken.views.places
    assert "green" not in {line.color for line in verdict.lines}
    assert any("as those of a camera that stands and shakes" in note for note in verdict.notes)
    around = seen_through([(40, 20 * (23 * index % 60)) for index in range(60)])
    assert around.views.places > 20
    assert judge(around, {}, None).color == "green"


def test_places_are_counted_over_merged_recordings_and_kept(tmp_path):
    random = np.random.default_rng(1)
    shaking = 40 + np.round(random.normal(0, 0.02 * SHAPE[1], (30, 2))).astype(int)
    one, other = seen_through(shaking, 1), seen_through(shaking, 2)
    number = one.views.places + other.views.places
    both = Evaluation()
    for name, each in (("one", one), ("other", other)):
        both.merge(each, name)
    assert both.views.places == copy.deepcopy(both).views.places == number
    again = saved(both, tmp_path / "report").evaluation
    assert again.views.places == number
    assert again.resampled().drawn_blocks == both.resampled().drawn_blocks <= number


def test_images_decide_nothing_as_a_live_run_has_none():
    """Also where they change and nothing moves: a lamp is switched on and off."""
    for moves in (True, False):
        with_images, without = evaluated(20, moves, "image"), evaluated(20, moves, "truth")
        assert repr(with_images.summary()) == repr(without.summary())
    lit = Evaluation()
    for index, frame in enumerate(frames(20, False, "image")):
        lit.add(replace(frame, image=frame.image // (1 + index % 2)))
    assert lit.views.still == 19


def test_frames_without_a_scored_pixel_are_no_evidence():
    """They start no view and no block: 15 scored frames have no interval, whatever is between."""
    evaluation = Evaluation()
    for place, frame in enumerate(frames(30, True, "pose")):
        made = frame.prediction
        if place % 2:
            made = DepthPrediction(np.full_like(made.depth_m, np.nan), made.sigma_m)
        evaluation.add(replace(frame, prediction=made))
    assert evaluation.evaluated == len(evaluation.metrics.blocks) == 15
    assert not evaluation.resampled().has_intervals
    assert evaluation.summary()["scored_fraction"] == pytest.approx(0.5)


def test_a_view_that_starts_without_a_scored_pixel_is_a_view_of_its_own():
    evaluation = Evaluation()
    first, second = frames(2, True, "pose")
    unknown = np.full_like(second.ground_truth_m, np.nan)
    for frame in (first, replace(second, ground_truth_m=unknown), second):
        evaluation.add(frame)
    assert len(evaluation.metrics.blocks) == 2
    assert [name.continues for name, _ in evaluation.table.saved()] == [False, False]
    assert evaluation.views.still == 0


def test_repeatability_is_the_deviation_of_a_pixel_over_the_frames():
    found = evaluated(60, False, "image", change=0.07).summary()["by_distance"]
    assert found["repeatability"]["2_3m"] == pytest.approx(0.07, rel=0.05)
    assert np.isnan(found["repeatability"]["32_48m"])
    moving = evaluated(10, True, "image").summary()["by_distance"]
    assert np.isnan(moving["repeatability"]["2_3m"])


def views_of(*numbers):
    seen = RepeatDetector()
    for number in numbers:
        seen.add({"depth.rmse": number, "n_merci": math.nan})
    return seen


def test_every_repetition_counts_and_recordings_are_compared_to_the_bit():
    assert views_of(1, 2, 1, 1, 3, 2).repeated == 3
    assert views_of(1, 2, 3).repeated == views_of().repeated == 0
    merged = views_of(1, 2, 2)
    merged.merge(views_of(2, 3, 3))
    assert merged.repeated == 3
    assert merged.includes(views_of(1, 2, 3))
    assert merged.common(views_of(3, 4)) == 1
    assert not merged.includes(views_of(1, 2, 3, 4))
    assert not merged.includes(views_of())
    copied = copy.deepcopy(merged)
    merged.add({"depth.rmse": 5, "n_merci": math.nan})
    copied.add({"depth.rmse": 5, "n_merci": math.nan})
    assert merged.repeated == copied.repeated == 3


def copies(moments, times, damage):
    """Yield frames as a bag does that is played again and again, damaged each time."""
    random = np.random.default_rng(7)
    for index, it in enumerate(times * moments):
        is_copy = index >= len(moments)
        scale = random.uniform(0.7, 1.4) if is_copy and damage == "scale" else 1.0
        spread = 0.001 if is_copy and damage == "noise" else 0.0
        noise = random.normal(0, spread, (2, *it.truth.shape))
        maps = it.truth * (1 + noise[0]), it.depth * (1 + noise[1]), it.sigma
        yield scored(index, *((scale * values).astype(np.float32) for values in maps))


@pytest.mark.parametrize("damage", ["none", "scale", "noise"])
def test_copies_of_a_few_frames_earn_no_green_line(damage):
    """Sixteen times six frames have intervals as 96 frames do, and tell as much as six."""
    evaluation = Evaluation()
    for frame in copies(list(moments(frames=6)), 16, damage):
        evaluation.add(frame)
    assert evaluation.views.repeated == 90
    verdict = judge(evaluation, MODEL, [])
    assert {line.color for line in verdict.lines[:3]} == {"grey"}
    assert verdict.blocks <= 6
    assert any("90 of 96 frames have the scores of an earlier frame" in n for n in verdict.notes)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(repeats, "MAX_PATTERNS", 20)
    seen = RepeatDetector()
    first = next(iter(moments(1))).truth
    for index in range(30):
        truth = first * (1 + index / 10)
        depth = truth * np.random.default_rng(index).uniform(1, 2, truth.shape)
        pixels = ScoredPixels(depth, depth, truth, 0.1, 100)
        seen.look(scored(index, truth, depth, depth), pixels)
        seen.add({"depth.rmse": index})
    assert seen.repeated == 0
    assert len(seen.arrays()["frame_patterns"]) == 20
