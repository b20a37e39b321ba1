# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The samples fit into the time for a frame, whatever else runs, and each has its turn."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.sample_budget import LEARNING_FRAMES, MIN_SAMPLES, SampleBudget

FIXED_MS = 20.0
SAMPLE_MS = 10.0


class Computer:
    """Takes a fixed time and one for each sample, multiplied by its load, with some noise."""

    def __init__(self, load: Callable[[int], float], noise: float = 0.03, seed: int = 0) -> None:
        self._load = load
        self._noise = noise
        self._random = np.random.default_rng(seed)
        self.counts: list[int] = []
        self.times_ms: list[float] = []

    def run(self, budget: SampleBudget, frames: int, budget_ms: float, passes: int = 16) -> None:
        for frame in range(frames):
            count = budget.choose(budget_ms, passes).count
            noise = np.exp(self._noise * self._random.normal())
            self.counts.append(count)
            self.times_ms.append((FIXED_MS + SAMPLE_MS * count) * self._load(frame) * noise)
            budget.add(count, self.times_ms[-1])


@pytest.mark.parametrize(("budget_ms", "expected"), [(65.0, 4), (125.0, 10)])
def test_as_many_samples_as_fit_are_used(budget_ms, expected):
    computer = Computer(lambda _: 1.0)
    computer.run(SampleBudget(), 200, budget_ms)
    assert np.median(computer.counts[50:]) == pytest.approx(expected, abs=1)
    assert np.mean(np.array(computer.times_ms[50:]) > budget_ms) < 0.1


def test_one_slow_frame_changes_nothing():
    without = Computer(lambda _: 1.0, noise=0.0)
    without.run(SampleBudget(), 80, 65.0)
    once = Computer(lambda frame: 10.0 if frame == 40 else 1.0, noise=0.0)
    once.run(SampleBudget(), 80, 65.0)
    assert once.counts == without.counts


def test_a_busy_process_costs_samples_and_they_return_after_it():
    computer = Computer(lambda frame: 2.0 if 100 <= frame < 200 else 1.0)
    computer.run(SampleBudget(), 300, 125.0)
    busy = computer.counts[110:200]
    assert max(busy) <= 5  # (125 / 2 - 20) / 10 are 4
    assert np.mean(np.array(computer.times_ms[110:200]) > 125.0) < 0.1
    assert np.median(computer.counts[250:]) >= 9


def test_never_fewer_than_two_nor_more_than_there_are():
    poor = Computer(lambda _: 1.0)
    poor.run(SampleBudget(), 50, 1.0)
    assert set(poor.counts[LEARNING_FRAMES:]) == {MIN_SAMPLES}
    rich = Computer(lambda _: 1.0)
    rich.run(SampleBudget(), 50, 10_000.0)
    assert set(rich.counts[LEARNING_FRAMES:]) == {16}


@given(passes=st.integers(3, 12), budget_ms=st.floats(25, 120))
def test_every_member_has_its_turn(passes, budget_ms):
    budget = SampleBudget()
    computer = Computer(lambda _: 1.0)
    computer.run(budget, LEARNING_FRAMES, budget_ms, passes)
    heard: set[int] = set()
    for _ in range(-(-passes // MIN_SAMPLES)):
        used = budget.choose(budget_ms, passes)
        heard |= set(used.numbers(passes))
    assert heard == set(range(passes))


def test_without_a_budget_all_are_used_in_their_order():
    budget = SampleBudget()
    for passes in (1, 2, 8):
        assert budget.choose(0.0, passes) == SampleRange(0, passes)
    assert budget.choose(1.0, 1) == SampleRange(0, 1)
    assert budget.choose(1.0, 2) == SampleRange(0, 2)
