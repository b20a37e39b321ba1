# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import numpy as np
import pytest

from test.conftest import ListSource
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.measurements import check_sparse_depth
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.sigma.measurement_option import MeasurementSources, parse_measurements
from uncertainty_depth.stream.held_out import (
    held_out,
    held_out_rule,
    hold_out_pixels,
    pixel_hashes,
    random_pixels,
    without_measured,
)

LIDAR = MeasurementSources(lidar=True)
CAMERA = Camera(160, 120, np.array([[100.0, 0, 79.5], [0, 100, 59.5], [0, 0, 1]]))


def sparse_map(fraction=0.3):
    rng = np.random.default_rng(1)
    depth_m = rng.uniform(2, 20, (120, 160)).astype(np.float32)
    depth_m[rng.random(depth_m.shape) > fraction] = np.nan
    return depth_m


def frame(depth_m):
    image = np.zeros((*depth_m.shape, 3), np.uint8)
    return Frame(7, "frame 7", CAMERA, image, ground_truth_m=depth_m)


def splitmix(value):
    """Steele et al. 2014, in Python's whole numbers."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def completed(record, count, **options):
    measuring = MeasurementSources(random=count) if count else LIDAR
    source = hold_out_pixels(ListSource([record]), measuring, HeldOutConfig(**options))
    return source, next(iter(source))


def near(mask):
    """The pixels of a mask and their eight neighbours."""
    padded = np.pad(mask, 1)
    height, width = mask.shape
    moved = [
        padded[row : row + height, column : column + width]
        for row in range(3)
        for column in range(3)
    ]
    return np.any(moved, axis=0)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_the_fraction_of_known_pixels_is_held_out_and_another_for_each_stamp(fraction):
    depth_m = sparse_map()
    config = HeldOutConfig(held_out_fraction=fraction)
    masks = [held_out(depth_m, stamp_ns, config) for stamp_ns in (1, 2)]
    known = np.isfinite(depth_m)
    for mask in masks:
        assert not (mask & ~known).any()
        assert mask[known].mean() == pytest.approx(fraction, abs=0.03)
    assert (masks[0] == masks[1])[known].mean() < 0.95


def test_whether_a_pixel_is_held_out_depends_on_no_other_pixel():
    """Node and evaluator decide from different clouds."""
    config = HeldOutConfig()
    dense = held_out(np.ones((120, 160), np.float32), 5, config)
    depth_m = sparse_map()
    known = np.isfinite(depth_m)
    np.testing.assert_array_equal(held_out(depth_m, 5, config)[known], dense[known])


def test_hashes_are_uniform_and_the_same_on_every_machine():
    hashes = pixel_hashes(np.ones((200, 200)), 1_700_000_000_000_000_000)
    assert np.abs(np.histogram(hashes, 10, (0, 1))[0] / hashes.size - 0.1).max() < 0.01
    key = splitmix(1_700_000_000_000_000_000)
    for index in (0, 1, 39_999):
        assert hashes[index] == (splitmix(index ^ key) >> 11) / 2**53


@pytest.mark.parametrize("count", [1, 2, 10, 200])
def test_random_pixels_are_as_many_as_asked_and_others_for_each_stamp(count):
    depth_m = sparse_map()
    given = random_pixels(depth_m, 3, count)
    assert given.sum() == count
    assert np.isfinite(depth_m[given]).all()
    np.testing.assert_array_equal(given, random_pixels(depth_m, 3, count))
    assert (given != random_pixels(depth_m, 4, count)).any()


@pytest.mark.parametrize("count", [0, 300])
def test_what_measures_is_not_scored_and_neither_is_what_lies_beside_it(count):
    depth_m = sparse_map(0.1)
    source, record = completed(frame(depth_m), count)
    given = np.isfinite(record.sparse_m)
    scored = np.isfinite(record.ground_truth_m)
    assert given.any()
    assert scored.any()
    np.testing.assert_array_equal(scored, np.isfinite(depth_m) & ~near(given))
    np.testing.assert_array_equal(record.sparse_m[given], depth_m[given])
    assert f"given {given.sum()} pixels" in source.notes[-1]
    assert f"scored on {scored.sum()} others" in source.notes[-1]


@pytest.mark.parametrize(
    ("fraction", "count", "sentence"),
    [
        (0.3, 10**6, "the model is given them all"),
        (0.0, 0, "has no known depth, to give to the model or to score"),
    ],
)
def test_a_frame_with_fewer_known_pixels_than_the_model_takes_is_skipped(
    fraction, count, sentence
):
    _, record = completed(frame(sparse_map(fraction)), count)
    assert isinstance(record, Skipped)
    assert record.reason == "no_depth_held_out"
    assert sentence in record.message


def test_scoring_on_the_input_is_refused():
    with pytest.raises(ConfigError, match="would be scored on the depth that it is given"):
        completed(frame(sparse_map()), 0, held_out_fraction=0.0)


def test_the_option_is_parsed_and_refused():
    assert parse_measurements("") == MeasurementSources()
    assert parse_measurements("lidar") == LIDAR
    assert parse_measurements("motion,random:200") == MeasurementSources(random=200, motion=True)
    for text in (
        "radar",
        "random",
        "random:0",
        "random:-3",
        "random:many",
        "random:" + "9" * 5000,
    ):
        with pytest.raises(ConfigError, match="expected lidar, random:N for N pixels"):
            parse_measurements(text)


@pytest.mark.parametrize(
    ("sparse", "sentence"),
    [
        (np.full((60, 80), 3.0), r"shape \(60, 80\); expected \(120, 160\)"),
        (np.full((120, 160), 3000, np.uint16), "uint16; expected floats in metres"),
        (np.full((120, 160), 3000.0), "median of 3000, .* expected metres"),
    ],
)
def test_unusable_sparse_depth_is_one_clear_sentence(sparse, sentence):
    with pytest.raises(MessageError, match=sentence):
        check_sparse_depth(sparse, (120, 160), (0.3, 12.0))


def test_without_known_depth_everything_is_scored_and_the_fraction_is_told_to_be_in_vain(caplog):
    source = object()
    motion = MeasurementSources(motion=True)
    assert hold_out_pixels(source, motion, HeldOutConfig()) is source
    assert not caplog.messages
    assert hold_out_pixels(source, motion, HeldOutConfig(held_out_fraction=0.25)) is source
    (message,) = caplog.messages
    assert message.startswith("held_out_fraction has no effect")


def test_dense_depth_has_nothing_left_to_score_beside_measurements():
    dense = frame(sparse_map(1.0))
    (skipped,) = hold_out_pixels(ListSource([dense]), LIDAR, HeldOutConfig(0.05))
    assert skipped.reason == "no_depth_held_out"
    assert "every other known pixel is beside one of them" in skipped.message
    assert "expected random:N" in skipped.message


def test_a_models_description_says_how_much_known_depth_is_held_out():
    assert held_out_rule({"held_out_fraction": 0.5}) is None
    assert held_out_rule({"measurements": "motion"}) is None
    assert held_out_rule({"measurements": "lidar"}) == HeldOutConfig(0.0)
    for measurements in ("lidar", "random:5", "motion,lidar"):
        described = {"measurements": measurements, "held_out_fraction": 0.2}
        assert held_out_rule(described) == HeldOutConfig(0.2)
    with pytest.raises(MessageError, match="measurements is 'moon'"):
        held_out_rule({"measurements": "moon"})
    with pytest.raises(MessageError, match="held_out_fraction is 'moon'"):
        held_out_rule({"measurements": "lidar", "held_out_fraction": "moon"})


def test_what_has_no_measurements_is_scored_as_it_is():
    records = [Skipped(1, "bad_image", "..."), frame(sparse_map())]
    assert [*without_measured(ListSource(records))] == records
