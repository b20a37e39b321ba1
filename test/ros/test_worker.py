# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest items: what is kept and dropped, waiting for the rest, and the end."""

import threading

import pytest

from test.ros.conftest import DEADLINE_S
from uncertainty_depth.ros.worker import Worker


class Slow:
    """Processes items when told to; with the first that a stop drops, the one in hand ends."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.done = []
        self.dropped = []
        self.worker = Worker(self._process, self._dropped)

    def _process(self, item):
        self.begun.release()
        assert self.go.acquire(timeout=DEADLINE_S)
        if item == "bad":
            raise ValueError("bad item")
        self.done.append(item)

    def _dropped(self, item, reason):
        self.dropped.append((item, reason))
        if reason == "shutdown":
            self.go.release()

    def begin(self, item):
        self.worker.put(item)
        assert self.begun.acquire(timeout=DEADLINE_S)


@pytest.fixture
def slow():
    slow = Slow()
    yield slow
    slow.go.release(10)
    slow.worker.stop()


def test_keeps_the_newest_and_counts_the_rest(slow):
    slow.begin(0)
    for item in range(1, 5):
        slow.worker.put(item)
    assert not slow.worker.wait(0.01), "one is in hand, one waits"
    slow.go.release(2)
    assert slow.worker.wait(DEADLINE_S)
    assert slow.done == [0, 4]
    assert slow.dropped == [(1, "queue_full"), (2, "queue_full"), (3, "queue_full")]


def test_failing_item_is_counted_and_the_next_one_works(slow):
    slow.go.release(3)
    for item in (0, "bad", 2):
        slow.worker.put(item)
        assert slow.worker.wait(DEADLINE_S)
    assert slow.done == [0, 2]
    assert slow.dropped == [("bad", "failed")]


def test_stop_may_leave_an_item_that_takes_too_long(slow):
    slow.begin(0)
    assert not slow.worker.stop(timeout_s=0.01)
    slow.go.release()
    assert slow.worker.stop()


def test_stop_finishes_the_item_in_hand_and_drops_the_rest(slow):
    slow.begin(0)
    slow.worker.put(1)
    slow.worker.stop()
    assert slow.done == [0]
    slow.worker.put(2)
    assert slow.dropped == [(1, "shutdown"), (2, "shutdown")]
