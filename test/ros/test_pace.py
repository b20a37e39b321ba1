# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""When messages are due, on a clock that the test moves."""

from __future__ import annotations

import pytest

from uncertainty_depth.ros.bag_publisher import Pace

S = 1_000_000_000


class ManualClock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return ManualClock()


@pytest.mark.parametrize("rate", [0.5, 1.0, 4.0])
def test_due_times_follow_the_recording_at_the_rate(clock, rate):
    pace = Pace(rate, clock)
    assert pace.due_in(50 * S) == 0
    assert pace.due_in(52 * S) == pytest.approx(2 / rate)
    clock.now += 3 / rate
    assert pace.due_in(52 * S) == pytest.approx(-1 / rate)
    assert pace.now_ns() == pytest.approx(53 * S)


def test_standing_still_shifts_what_is_to_come(clock):
    pace = Pace(1.0, clock)
    pace.due_in(0)
    clock.now += 7
    pace.stand_still(6)
    assert pace.due_in(2 * S) == pytest.approx(1)
    assert pace.now_ns() == pytest.approx(1 * S)


def test_a_new_round_starts_at_its_first_message(clock):
    pace = Pace(1.0, clock)
    assert pace.now_ns() == 0
    pace.due_in(90 * S)
    clock.now += 5
    pace.restart()
    assert pace.due_in(10 * S) == 0
