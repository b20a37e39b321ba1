# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calls take turns, and what is told of their times is what a clock showed."""

from __future__ import annotations

import numpy as np

from benchmarks.rounds import Spread, alternate, markdown


def test_calls_take_turns_and_the_first_rounds_do_not_count() -> None:
    order: list[str] = []
    time_s = 0.0

    def call(name: str, duration_s: float) -> None:
        nonlocal time_s
        order.append(name)
        time_s += duration_s * (100 if len(order) <= 4 else 1)

    seconds = alternate(
        {"a": lambda: call("a", 1.0), "b": lambda: call("b", 3.0)},
        rounds=3,
        clock=lambda: time_s,
        warm_up=2,
    )
    assert order == ["a", "b"] * 5
    np.testing.assert_array_equal(seconds["a"], [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(seconds["b"], [3.0, 3.0, 3.0])


def test_a_spread_is_printed_with_min_and_max() -> None:
    spread = Spread.of([3.0, 1.0, 2.0, 10.0])
    assert spread == (1.0, 2.5, 10.0)
    assert str(spread) == "2.50 (1.00 to 10.00)"


def test_a_table_is_markdown() -> None:
    lines = markdown(("a", "b", "c"), [("x", 1, Spread.of([1.0]))], text_columns=2).splitlines()
    assert lines == [
        "| a | b | c |",
        "| --- | --- | ---: |",
        "| x | 1 | 1.00 (1.00 to 1.00) |",
    ]
