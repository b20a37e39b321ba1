# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Joining two streams by equal stamps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.frames.pairing import ExactPairs, Unmatched


def test_oldest_is_given_up_when_full_and_repeated_stamps_replace():
    pairs = ExactPairs(2)
    assert pairs.add(0, 1, "a") == (None, [])
    assert pairs.add(0, 1, "again") == (None, [Unmatched(1, 0, "a")])
    assert pairs.add(1, 2, "b") == (None, [])
    assert pairs.add(0, 3, "c") == (None, [Unmatched(1, 0, "again")])
    assert pairs.flush() == [Unmatched(2, 1, "b"), Unmatched(3, 0, "c")]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6))), st.integers(1, 4))
def test_every_message_is_paired_or_given_up_once(arrivals, queue_size):
    pairs = ExactPairs(queue_size)
    paired = 0
    lost = []
    for index, (side, stamp) in enumerate(arrivals):
        pair, given_up = pairs.add(side, stamp, (side, stamp, index))
        if pair is not None:
            assert (pair[0][0], pair[1][0]) == (0, 1)
            assert pair[0][1] == pair[1][1]
            paired += 2
        lost += given_up
    assert paired + len(lost) + len(pairs.flush()) == len(arrivals)
