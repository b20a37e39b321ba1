# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest items: what is kept and dropped, waiting for the rest, and the end."""

from __future__ import annotations

import threading

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
    worker = Worker(slow, lambda item, reason: dropped.append((item, reason)))
    worker.put(0)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    for item in range(1, 5):
        worker.put(item)
    slow.go.release(2)
    assert worker.wait(DEADLINE_S)
    worker.stop()
    assert slow.done == [0, 4]
    assert dropped == [(1, "queue_full"), (2, "queue_full"), (3, "queue_full")]


def test_every_source_has_its_newest_item_processed_with_those_of_the_others():
    begun = threading.Semaphore(0)
    go = threading.Semaphore(0)
    done = []

    def process(*items):
        begun.release()
        assert go.acquire(timeout=DEADLINE_S)
        done.append(sorted(items))

    worker = Worker(process, lambda *_: None)
    worker.put(0)
    assert begun.acquire(timeout=DEADLINE_S)
    for item, source in ((1, 0), (2, 1), (3, 1)):
        worker.put(item, source)
    assert not worker.wait(0.01), "items are waiting"
    go.release()
    assert begun.acquire(timeout=DEADLINE_S)
    assert not worker.wait(0.01), "items are in hand"
    go.release()
    assert worker.wait(DEADLINE_S)
    worker.stop()
    assert done == [[0], [1, 3]]


def test_failing_item_is_counted_and_the_next_one_works(caplog):
    done = []
    dropped = []

    def process(item):
        if item == 1:
            raise ValueError("bad item")
        done.append(item)

    worker = Worker(process, lambda item, reason: dropped.append((item, reason)))
    for item in range(3):
        worker.put(item)
        assert worker.wait(DEADLINE_S)
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

    worker = Worker(slow, drop)
    worker.put(0)
    assert slow.begun.acquire(timeout=DEADLINE_S)
    worker.put(1)
    worker.stop()
    assert slow.done == [0]
    assert dropped == [(1, "shutdown")]
    worker.put(2)
    assert dropped[1:] == [(2, "shutdown")]
