# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the accumulator takes and refuses."""

import copy
import dataclasses
import signal
import sys
import tracemalloc

import numpy as np
import pytest
import torch

from test.metrics.conftest import drawn
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.metrics.state import MAX_BLOCKS
from uncertainty_depth.report.evaluation import Evaluation


def test_an_update_needs_the_documented_memory_for_each_pixel():
    metrics = OnlineMetrics()
    frame = drawn(20_000)
    metrics.update(*frame)
    tracemalloc.start()
    metrics.update(*frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 20_000


def test_maps_are_masked_and_frames_without_a_valid_pixel_count_as_ground_truth(pixels):
    depth, sigma, truth = pixels
    hidden = np.where(np.arange(truth.size) % 2, truth, np.nan)
    metrics = OnlineMetrics()
    found = metrics.update(depth.reshape(50, 60), sigma.reshape(50, 60), hidden.reshape(50, 60))
    expected = OnlineMetrics().update(depth[1::2], sigma[1::2], truth[1::2])
    np.testing.assert_equal(found, expected)
    assert metrics.update(np.full_like(depth, np.nan), sigma, truth) is None
    assert metrics.frames == 1
    assert metrics.compute()["scored_fraction"] == pytest.approx(1500 / 4500)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_near_the_end_of_their_type_are_scored(dtype):
    """The check for millimetres takes a mean of two medians and a ratio, which may overflow."""
    largest = float(np.finfo(dtype).max)
    depth = np.array([0.9 * largest, 0.8 * largest], dtype=dtype)
    metrics = OnlineMetrics()
    metrics.update(depth, np.ones(2), np.full(2, 2.0, dtype=dtype))
    assert metrics.pixels == 2


def masked(values, hidden):
    """A masked array that holds junk where it is masked."""
    return np.ma.array(np.where(hidden, 65.535, values), mask=hidden)


@pytest.mark.parametrize("place", range(3))
def test_masked_pixels_are_no_values(pixels, place):
    hidden = np.arange(pixels[0].size) % 3 == 0
    unknown = list(pixels)
    unknown[place] = np.where(hidden, np.nan, pixels[place])
    expected = OnlineMetrics().update(*unknown)
    maps = list(pixels)
    maps[place] = masked(maps[place], hidden)
    np.testing.assert_equal(OnlineMetrics().update(*maps), expected)
    row = Evaluation().add_arrays(*(values.reshape(50, 60) for values in maps))
    assert row["pixels"] == expected["pixels"]
    assert row["depth.rmse"] == pytest.approx(expected["depth"]["rmse"])


def test_masked_whole_numbers_are_no_values():
    truth = np.ma.array([2, 3, 65535], mask=[False, False, True])
    found = OnlineMetrics().update(np.array([2.0, 4.0, 5.0]), np.ones(3), truth)
    assert found["depth"]["mae"] == 0.5


def test_nothing_seen_is_nan_everywhere_in_the_same_mapping(pixels):
    empty = flatten(OnlineMetrics().compute())
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    assert empty.keys() == flatten(metrics.compute()).keys()
    assert not {name: value for name, value in empty.items() if value and not np.isnan(value)}


def test_tensors_are_arrays(pixels):
    metrics = OnlineMetrics()
    found = metrics.update(*map(torch.as_tensor, pixels))
    np.testing.assert_equal(found, OnlineMetrics().update(*pixels))
    depth, sigma, truth = pixels
    tracked = torch.tensor(depth, requires_grad=True)
    np.testing.assert_equal(metrics.update(tracked, sigma, truth), found)
    half = torch.tensor(depth).bfloat16()
    rounded = OnlineMetrics().update(half.double().numpy(), sigma, truth)
    np.testing.assert_equal(metrics.update(half, sigma, truth), rounded)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"min_depth": float("nan")}, "min_depth is nan; expected a finite number of metres"),
        ({"max_depth": float("inf")}, "max_depth is inf; expected a finite number of metres"),
        ({"min_depth": 9.0, "max_depth": 8.0}, "expected less than max_depth, 8.0"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits, sentence):
    with pytest.raises(ConfigError, match=sentence):
        OnlineMetrics(EvaluationConfig(**limits))


def test_states_that_score_something_else_do_not_merge():
    first = OnlineMetrics()
    with pytest.raises(ValueError, match=r"max_depth 10.0; expected 80.0"):
        first.merge(OnlineMetrics(EvaluationConfig(max_depth=10.0)))
    first.merge(OnlineMetrics(dataclasses.replace(EvaluationConfig(), example_frames=0)))


def added(metrics, strike_at):
    """Update a copy with a frame, with Ctrl-C at this call or return of a function.

    Returns:
        The copy, and the number of calls and returns.
    """
    metrics = copy.deepcopy(metrics)
    events = 0

    def count(*_):
        nonlocal events
        events += 1
        if events == strike_at:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    try:
        sys.setprofile(count)
        metrics.update(*FRAME)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return metrics, events - 1  # the last one is that of setprofile


FRAME = np.ones((3, 4, 4)) + np.eye(4)


def test_ctrl_c_in_a_loop_of_ones_own_leaves_the_sums_of_whole_frames():
    metrics = OnlineMetrics()
    for _ in range(MAX_BLOCKS):
        metrics.update(*FRAME)
    whole, events = added(metrics, strike_at=0)
    expected = [flatten(each.compute()) for each in (metrics, whole)]
    frames = []
    for event in np.linspace(1, events, 24, dtype=int):
        struck, _ = added(metrics, strike_at=event)
        frames.append(struck.frames)
        assert frames[-1] in (MAX_BLOCKS, MAX_BLOCKS + 1), f"at {event} of {events}"
        assert flatten(struck.compute()) == pytest.approx(
            expected[frames[-1] - MAX_BLOCKS], nan_ok=True
        )
    assert set(frames) == {MAX_BLOCKS, MAX_BLOCKS + 1}, "before and after"
