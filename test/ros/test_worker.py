# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bounded queue: what it keeps and drops, its jobs, and its end."""

from __future__ import annotations

import threading

import pytest

from uncertainty_depth.ros.worker import Worker

DEADLINE_S = 60


class Slow:
    """Processes items one at a time when told to."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.done = []

    def __call__(self, item):
        self.begun.release()
        assert self.go.acquire(timeout=DEADLINE_S)
        self.done.append(item)


def test_keeps_the_newest_and_counts_the_rest():
    slow = Slow()
    dropped = []
    worker = Worker(slow, lambda item, reason: dropped.append((item, reason)), capacity=1)
    worker.put(0)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    for item in range(1, 5):
        worker.put(item)
    slow.go.release(2)
    worker.call(lambda: None).result(DEADLINE_S)
    worker.stop()
    assert slow.done == [0, 4]
    assert dropped == [(1, "queue_full"), (2, "queue_full"), (3, "queue_full")]


def test_larger_queue_keeps_the_order():
    done = []
    worker = Worker(done.append, lambda *_: pytest.fail("nothing may be dropped"), capacity=100)
    for item in range(100):
        worker.put(item)
    worker.call(lambda: None).result(DEADLINE_S)
    worker.stop()
    assert done == list(range(100))


def test_jobs_run_after_what_was_queued_before_them_and_before_what_came_later():
    slow = Slow()
    dropped = []
    seen = []
    worker = Worker(slow, lambda item, reason: dropped.append(item), capacity=2)
    worker.put("in hand")
    assert slow.begun.acquire(timeout=DEADLINE_S)
    worker.put("waiting")
    job = worker.call(lambda: seen.extend(slow.done))
    worker.put("later")
    slow.go.release(3)
    job.result(DEADLINE_S)
    worker.call(lambda: None).result(DEADLINE_S)
    worker.stop()
    assert seen == ["in hand", "waiting"]
    assert slow.done == ["in hand", "waiting", "later"]


def test_jobs_survive_a_full_queue():
    slow = Slow()
    worker = Worker(slow, lambda *_: None, capacity=1)
    worker.put(0)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    worker.put(1)
    job = worker.call(lambda: list(slow.done))
    for item in range(2, 9):
        worker.put(item)  # pushes out what the job waited for
    slow.go.release(2)
    assert job.result(DEADLINE_S) == [0]
    worker.stop()


def test_job_errors_reach_the_caller():
    worker = Worker(lambda _: None, lambda *_: None)
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 / 0).result(DEADLINE_S)
    worker.stop()


def test_failing_item_is_counted_and_the_next_one_works(caplog):
    done = []
    dropped = []

    def process(item):
        if item == 1:
            raise ValueError("bad item")
        done.append(item)

    worker = Worker(process, lambda item, reason: dropped.append((item, reason)), capacity=10)
    for item in range(3):
        worker.put(item)
    worker.call(lambda: None).result(DEADLINE_S)
    worker.stop()
    assert done == [0, 2]
    assert dropped == [(1, "failed")]


def test_stop_may_leave_an_item_that_takes_too_long():
    slow = Slow()
    worker = Worker(slow, lambda *_: None)
    worker.put(0)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    assert not worker.stop(timeout_s=0.01)
    slow.go.release()
    assert worker.stop()


def test_stop_finishes_the_item_in_hand_and_drops_the_rest():
    slow = Slow()
    dropped = []

    def drop(item, reason):
        dropped.append((item, reason))
        slow.go.release()

    worker = Worker(slow, drop, capacity=5)
    for item in range(3):
        worker.put(item)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    worker.stop()
    assert slow.done == [0]
    assert dropped == [(1, "shutdown"), (2, "shutdown")]
    worker.put(3)
    assert dropped[2:] == [(3, "shutdown")]
    assert worker.call(lambda: None).cancelled()
