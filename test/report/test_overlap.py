# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reading ahead and scoring behind: the order, the exceptions and the results of a plain loop."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from test.conftest import ListSource, frame_lines
from test.report.conftest import NoisyPredictor
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.predicted import PREFETCH, predict_frame, read_ahead
from uncertainty_depth.report.evaluation import Evaluation, evaluate
from uncertainty_depth.stream.stream import predicted

WAIT_S = 30


class Source(ListSource):
    """Twelve frames, of which some are skipped and one cannot be scored."""

    def __init__(self):
        super().__init__(map(record, range(12)))


def record(number):
    random = np.random.default_rng(number)
    if number % 5 == 3:
        return Skipped(number, f"reason_{number}", "why")
    truth = random.uniform(1, 9, (30, 40)).astype(np.float32)
    image = random.integers(0, 256, (30, 40, 3), np.uint8)
    truth = truth if number != 6 else truth * np.nan
    return Frame(number, f"{number}", image=image, ground_truth_m=truth)


def test_results_are_those_of_a_loop_in_every_bit():
    alone = Evaluation()
    names = []
    for record in Source():
        if isinstance(record, Skipped):
            alone.skip(record)
        else:
            frame = replace(record, prediction=predict_frame(NoisyPredictor(), record))
            alone.add(frame)
            names.append(frame.name)
    handed = []
    sinks = [lambda frame: handed.append(frame.name)]
    both = evaluate(predicted(Source(), NoisyPredictor()), sinks=sinks, progress=False)
    assert handed == names
    assert both.frames() == alone.frames()
    assert list(both.first_skips) == list(alone.first_skips)
    assert frame_lines(both) == frame_lines(alone)
    tables = both.metrics.arrays()
    for name, table in alone.metrics.arrays().items():
        np.testing.assert_array_equal(tables[name], table, err_msg=name)


def test_the_three_parts_run_at_the_same_time():
    everywhere = threading.Barrier(3)

    class Met(NoisyPredictor):
        def predict(self, image, stamp_ns, camera=None):
            if stamp_ns == 1:
                everywhere.wait(WAIT_S)
            return super().predict(image, stamp_ns, camera)

    class Waiting(Source):
        def __iter__(self):
            for record in super().__iter__():
                if record.stamp_ns == 2:
                    everywhere.wait(WAIT_S)
                yield record

    def meet(frame):
        if frame.stamp_ns == 0:
            everywhere.wait(WAIT_S)

    evaluation = evaluate(predicted(Waiting(), Met()), sinks=[meet], progress=False)
    assert evaluation.frames()["read"] == 12


@pytest.mark.parametrize("part", ["reading", "predicting", "scoring"])
def test_an_exception_in_any_stage_propagates(part):
    class Reading(Source):
        def __iter__(self):
            for record in super().__iter__():
                fail(part == "reading" and record.stamp_ns == 4)
                yield record

    class Predicting(NoisyPredictor):
        def predict(self, image, stamp_ns, camera=None):
            fail(part == "predicting" and stamp_ns == 4)
            return super().predict(image, stamp_ns, camera)

    def fail(now):
        if now:
            raise OSError(part)

    sinks = [lambda frame: fail(part == "scoring" and frame.stamp_ns == 4)]
    with pytest.raises(OSError, match=part):
        evaluate(predicted(Reading(), Predicting()), sinks=sinks, progress=False)
    assert not {thread.name.split("_")[0] for thread in threading.enumerate()} & {part}


def test_no_more_is_read_than_is_in_flight():
    read = []
    closed = []

    def items():
        try:
            for number in range(100):
                read.append(number)
                yield number
        finally:
            closed.append(threading.current_thread().name)

    ahead = read_ahead(items())
    assert next(ahead) == 0
    assert next(ahead) == 1
    ahead.close()
    assert 2 <= len(read) <= 2 + PREFETCH
    assert closed
    assert closed[0].startswith("reading"), "where a database connection was opened"


def test_reading_and_scoring_use_one_thread_of_blas():
    """On a busy machine more of them spin and wait for each other."""
    numbers = []

    def look(*_):
        pools = threadpool_info()
        numbers.append([pool["num_threads"] for pool in pools if pool["user_api"] == "blas"])

    class Looking(Source):
        def __iter__(self):
            look()
            return super().__iter__()

    with threadpool_limits(2, "blas"):
        look()
        evaluate(predicted(Looking(), NoisyPredictor()), sinks=[look], progress=False)
    (before, *during) = numbers
    assert 2 in before
    assert len(during) > 2
    assert all(set(each) == {1} for each in during)
