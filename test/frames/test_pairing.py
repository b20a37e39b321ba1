# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pairing by the nearest stamp, compared with a search over all stamps at once.

In every interleaving, in disorder and through jumps in time.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertainty_depth.frames.pairing import ExactPairs, NearestClouds, Unmatched

MS = 1_000_000
stamps = st.lists(st.integers(0, 2000), max_size=40).map(sorted)


def one_stream(tolerance_s: float, queue_size: int) -> NearestClouds:
    return NearestClouds(["lidar"], tolerance_s, queue_size)


def run(pairer: NearestClouds, events) -> dict:
    """Feed ("reference" | "cloud", stamp in ms) and return the outcomes in order of decision.

    An outcome is a reference stamp and its cloud stamp.
    """
    outcomes = []
    for kind, stamp in events:
        if kind == "reference":
            outcomes += pairer.add_reference(stamp * MS, stamp)
        else:
            outcomes += pairer.add_cloud("lidar", stamp * MS, stamp)
    outcomes += pairer.flush()
    return [
        (outcome.reference, None if outcome.cloud is None else outcome.cloud[0])
        for outcome in outcomes
    ]


def nearest_within(stamp, clouds, tolerance):
    near = [cloud for cloud in clouds if abs(cloud - stamp) <= tolerance]
    return min(near, key=lambda cloud: (abs(cloud - stamp), cloud), default=None)


@given(
    references=stamps, clouds=stamps, tolerance=st.sampled_from([0, 10, 50, 400]), data=st.data()
)
def test_any_interleaving_pairs_each_reference_with_the_nearest_cloud_of_all(
    references, clouds, tolerance, data
):
    order = data.draw(st.permutations(["reference"] * len(references) + ["cloud"] * len(clouds)))
    streams = {"reference": iter(references), "cloud": iter(clouds)}
    pairer = one_stream(tolerance / 1000, queue_size=100)
    outcomes = run(pairer, [(kind, next(streams[kind])) for kind in order])
    assert outcomes == [(stamp, nearest_within(stamp, clouds, tolerance)) for stamp in references]
    paired = sum(cloud is not None for _, cloud in outcomes)
    assert (pairer.counts["paired"], pairer.counts["unmatched"]) == (
        paired,
        len(references) - paired,
    )
    used = {cloud for _, cloud in outcomes if cloud is not None}
    assert (
        len(set(clouds)) - len(used)
        <= pairer.counts["clouds_unmatched"]
        <= len(clouds) - len(used)
    )


def test_a_reference_is_decided_as_soon_as_a_cloud_at_or_after_it_has_come():
    pairer = one_stream(0.05, 10)
    assert pairer.add_cloud("lidar", 0, "a") == []
    assert pairer.add_reference(20 * MS, 1) == []
    assert pairer.add_cloud("lidar", 100 * MS, "b") == [(20 * MS, 1, ("a",), -20 * MS)]
    assert pairer.add_reference(100 * MS, 2) == [(100 * MS, 2, ("b",), 0)]


@pytest.mark.parametrize("first", [80, 120])
def test_of_two_clouds_equally_near_the_earlier_one_is_taken(first):
    """Whichever came first: a LiDAR's clouds may be delayed beyond the next."""
    pairer = one_stream(0.05, 10)
    later = 200 - first
    events = [("cloud", first), ("cloud", later), ("reference", 100), ("cloud", 300)]
    assert run(pairer, events) == [(100, 80)]


def test_the_time_to_the_nearest_cloud_is_of_all_streams():
    pairer = NearestClouds(["front", "rear"], 0.05, 10)
    pairer.add_cloud("front", 300 * MS, "front")
    pairer.add_cloud("rear", 800 * MS, "rear")
    assert pairer.add_reference(0, "image") == [(0, "image", None, 300 * MS)]


def test_a_reference_is_not_decided_before_a_nearer_cloud_can_come():
    """Clouds come faster than the queue holds within the tolerance; the other LiDAR is silent."""
    pairer = NearestClouds(["front", "silent"], 0.05, 3)
    pairer.add_reference(45 * MS, "image")
    for time in (0, 10, 20, 30):
        assert pairer.add_cloud("front", time * MS, time) == []
    (outcome,) = pairer.add_cloud("front", 45 * MS, 45)
    assert outcome.cloud == (45, None)


def test_a_full_queue_pushes_the_oldest_reference_out_counted():
    pairer = one_stream(0.05, 3)
    outcomes = run(pairer, [("reference", stamp) for stamp in range(0, 1000, 100)])
    assert [reference for reference, _ in outcomes] == list(range(0, 1000, 100))
    assert pairer.counts["pushed_out"] == 7
    assert pairer.counts["unmatched"] == 10


def test_a_looped_bag_loses_nothing_whichever_stream_jumps_first():
    loop = [(kind, stamp) for stamp in range(0, 500, 100) for kind in ("cloud", "reference")]
    expected = [(stamp, stamp) for stamp in range(0, 500, 100)]
    swapped = [(kind, stamp) for stamp in range(0, 500, 100) for kind in ("reference", "cloud")]
    for events in (loop * 3, swapped * 3, loop + swapped + loop):
        pairer = one_stream(0.05, 10)
        assert run(pairer, events) == expected * 3
        assert pairer.counts["unmatched"] == 0
        assert pairer.counts["reference_time_jumps"] == 2


def test_references_that_come_after_the_clouds_have_jumped_still_find_theirs():
    """Predictions lag: one loop's last come when the next loop's clouds have begun."""
    pairer = one_stream(0.05, 10)
    events = [
        ("cloud", 0),
        ("cloud", 100),
        ("reference", 0),
        ("cloud", 0),
        ("reference", 100),
        ("cloud", 100),
        ("reference", 0),
        ("reference", 100),
    ]
    assert run(pairer, events) == [(0, 0), (100, 100), (0, 0), (100, 100)]
    assert pairer.counts["reference_time_jumps"] == pairer.counts["cloud_time_jumps"] == 1


@given(
    events=st.lists(
        st.tuples(st.sampled_from(["reference", "cloud"]), st.integers(0, 300)), max_size=80
    ),
    tolerance=st.sampled_from([0, 10, 50]),
    queue_size=st.integers(1, 5),
)
def test_in_whatever_disorder_each_reference_is_decided_once_and_never_beyond_the_tolerance(
    events, tolerance, queue_size
):
    pairer = one_stream(tolerance / 1000, queue_size)
    outcomes = run(pairer, events)
    assert [reference for reference, _ in outcomes] == [
        stamp for kind, stamp in events if kind == "reference"
    ]
    assert all(
        cloud is None or abs(cloud - reference) <= tolerance for reference, cloud in outcomes
    )
    assert pairer.counts["paired"] + pairer.counts["unmatched"] == len(outcomes)
    clouds = sum(kind == "cloud" for kind, _ in events)
    assert pairer.counts["clouds_unmatched"] <= clouds


def message(megabytes: int) -> SimpleNamespace:
    return SimpleNamespace(data=np.zeros(megabytes * 2**20, np.uint8))


def test_what_waits_is_bounded_by_its_bytes_too():
    """An attacker, or a 100-megapixel camera, fills no memory with 30 messages."""
    pairs = ExactPairs(30)
    pairer = NearestClouds(["lidar"], 0.05, 30)
    given_up = [lost for stamp in range(5) for lost in pairs.add(0, stamp, message(100))[1]]
    assert [lost.stamp_ns for lost in given_up] == [0, 1, 2]
    pushed_out = [
        outcome.stamp_ns
        for stamp in range(5)
        for outcome in pairer.add_reference(stamp, (message(50), message(50)))
    ]
    assert (pushed_out, pairer.counts["pushed_out"]) == ([0, 1, 2], 3)
    clouds = NearestClouds(["lidar"], 0.05, 30)
    for stamp in range(5):
        clouds.add_cloud("lidar", stamp, message(100))
    assert clouds.counts["clouds_unmatched"] == 3


def test_oldest_is_given_up_when_full_and_repeated_stamps_replace():
    pairs = ExactPairs(2)
    assert pairs.add(0, 1, "a") == (None, [])
    assert pairs.add(0, 1, "again") == (None, [Unmatched(1, 0, "a")])
    assert pairs.add(1, 2, "b") == (None, [])
    assert pairs.add(0, 3, "c") == (None, [Unmatched(1, 0, "again")])
    assert pairs.flush() == [Unmatched(2, 1, "b"), Unmatched(3, 0, "c")]


@pytest.mark.parametrize("first", [0, 1])
def test_either_may_come_first(first):
    pairs = ExactPairs(2)
    names = ("depth", "confidence")
    assert pairs.add(first, 1, names[first]) == (None, [])
    assert pairs.add(1 - first, 1, names[1 - first]) == (names, [])


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
