# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Counters, rates, ages and latencies on a clock that the test moves; and the diagnostics."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from test.ros.conftest import ManualClock
from uncertainty_depth.ros.diagnostics import ADVICE, MAX_DURATIONS, Health, problem, resources_of


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def health(clock):
    return Health(clock)


def test_rates_are_per_second_since_the_last_look_and_ages_since_the_last_count(health, clock):
    assert health.age("received") == math.inf
    health.count("received", 6)
    health.count("dropped.stale")
    clock.now += 2
    assert health.age("received") == 2
    assert health.rates() == {"received": 3.0, "dropped.stale": 0.5}
    clock.now += 1
    health.count("received")
    assert health.rates() == {"received": 1.0, "dropped.stale": 0.0}


def test_percentiles_of_the_last_latencies(health):
    assert health.percentiles_ms() == {}
    for value in range(5000):
        health.duration("latency", value)
    latencies = np.arange(5000 - MAX_DURATIONS, 5000)
    assert health.percentiles_ms() == {
        f"latency_p{q}_ms": np.percentile(latencies, q) for q in (50, 95, 99)
    }


def test_no_count_is_lost_between_threads(health):
    threads = [
        threading.Thread(target=lambda: [health.count("received") for _ in range(2000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert health.counts() == {"received": 8000}


def sentence(health, clock):
    clock.now += 1
    return problem(health, health.rates(), ["received"])


def test_level_and_sentence(health, clock):
    assert sentence(health, clock) == (DiagnosticStatus.WARN, "nothing received yet")
    health.count("received")
    assert sentence(health, clock) == (DiagnosticStatus.OK, "running")
    health.count("dropped.stale", 3)
    health.count("lost_in_transport", 2)
    assert sentence(health, clock) == (
        DiagnosticStatus.WARN,
        f"frames lost: lost_in_transport 2.0/s ({ADVICE['lost_in_transport']}), "
        f"stale 3.0/s ({ADVICE['stale']})",
    )
    health.count("received")
    health.count("dropped.failed")
    assert sentence(health, clock) == (
        DiagnosticStatus.ERROR,
        "frames fail; frames lost: failed 1.0/s (see the log)",
    )
    clock.now += 4
    assert sentence(health, clock) == (DiagnosticStatus.WARN, "nothing received for 6.0 s")


def test_a_node_that_receives_but_scores_nothing_says_why(health, clock):
    awaited = ["received.depth", "received.lidar", "evaluated"]
    health.count("received.depth")
    assert problem(health, health.rates(), awaited) == (
        DiagnosticStatus.WARN,
        "nothing received on lidar yet",
    )
    clock.now += 1
    health.count("received.lidar")
    health.count("skipped.no_lidar_point_in_view", 2)
    advice = ADVICE["no_lidar_point_in_view"]
    sentence = f"nothing evaluated yet; frames lost: no_lidar_point_in_view 2.0/s ({advice})"
    assert problem(health, health.rates(), awaited) == (DiagnosticStatus.WARN, sentence)
    clock.now += 1
    health.count("evaluated")
    assert problem(health, health.rates(), awaited) == (DiagnosticStatus.OK, "running")


def test_a_problem_or_a_quarter_of_unfamiliar_frames_is_a_warning(health):
    health.count("received")
    apart = problem(health, health.rates(), ["received"], ["the clocks are apart"])
    assert apart == (DiagnosticStatus.WARN, "the clocks are apart")
    few, _ = problem(health, {"processed": 10.0, "unfamiliar": 2.0}, ())
    assert few == DiagnosticStatus.OK
    many, sentence = problem(health, {"processed": 10.0, "unfamiliar": 3.0}, ())
    assert many == DiagnosticStatus.WARN
    assert "unlike those of the training" in sentence


def test_resources_of_this_process_follow_what_it_opens_and_starts(tmp_path):
    before = resources_of()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with (tmp_path / "file").open("w"):
        during = resources_of(os.getpid())
    stop.set()
    thread.join()
    assert during.threads == before.threads + 1
    assert during.descriptors == before.descriptors + 1
    assert 10 < before.memory_mib < 10_000


def test_a_process_that_has_ended_has_no_resources():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert resources_of(process.pid) is None
