# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The offline loop: every record counts once, in parallel as in order, in bounded memory."""

import copy
import csv
import gc
import json
import pickle
import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from test.conftest import ListSource, frame_lines, scored
from test.report.conftest import NoisyPredictor, evaluation_of, moments, saved
from uncertainty_depth import OnlineMetrics
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.metrics.state import MAX_BLOCKS
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation, evaluate
from uncertainty_depth.report.scores import Examples
from uncertainty_depth.report.verdict import judge
from uncertainty_depth.stream.predicting import predict_frame
from uncertainty_depth.stream.stream import PREFETCH, predicted, read_ahead


def frame(index, shape=(24, 32), known=True):
    random = np.random.default_rng(index)
    is_known = random.random(shape) < 0.3 * known
    truth = np.where(is_known, random.uniform(1, 9, shape), np.nan).astype(np.float32)
    image = random.integers(0, 256, (*shape, 3), np.uint8)
    return Frame(index, f"{index}", image=image, ground_truth_m=truth)


def test_every_record_is_scored_exactly_or_counted_once():
    unknown = frame(3, known=False)
    skipped = [Skipped(stamp, "bad_image", "...") for stamp in (1, 4)]
    source = ListSource([frame(0), skipped[0], frame(2), unknown, skipped[1], frame(5)])
    predictor = NoisyPredictor()
    seen = []
    evaluation = evaluate(
        predicted(source, predictor),
        EvaluationConfig(),
        [lambda f: seen.append(f.name)],
        progress=False,
    )
    assert evaluation.frames() == {
        "read": 6,
        "evaluated": 3,
        "skipped": {"bad_image": 2, "no_valid_pixel": 1},
    }
    assert predictor.stamps == [0, 2, 3, 5]
    assert seen == ["0", "2", "3", "5"]
    rows = list(csv.DictReader(frame_lines(evaluation)))
    assert [row["frame"] for row in rows] == ["0", "2", "5"]
    errors = []
    for row in rows:
        truth = frame(int(row["frame"])).ground_truth_m
        depth = predictor.predict(frame(int(row["frame"])).image, 0).depth_m
        error = np.abs(depth - truth)
        assert float(row["depth.abs_rel"]) == pytest.approx(np.nanmean(error / truth), rel=1e-6)
        errors.append(error[np.isfinite(truth)].astype(np.float64))
    pooled = np.concatenate(errors)
    summary = evaluation.summary()
    assert summary["pixels"] == pooled.size
    assert summary["depth"]["mae"] == pytest.approx(pooled.mean(), rel=1e-6)
    assert summary["depth"]["rmse"] == pytest.approx(np.sqrt((pooled**2).mean()), rel=1e-6)
    assert len(frame_lines(evaluation)) == 1 + 3, "reading the table does not consume it"


def memory_after(frames, at):
    """Return the memory in use after the frames `at` in one run, bytes."""

    class Streamed(ListSource):
        def __iter__(self):
            return (frame(i) for i in range(frames))

    held = {}

    def measure(record):
        if int(record.name) in at:
            gc.collect()
            held[int(record.name)] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    evaluate(
        predicted(Streamed([None] * frames), NoisyPredictor()),
        sinks=[measure],
        progress=False,
    )
    tracemalloc.stop()
    return [held[index] for index in at]


def test_memory_does_not_grow_with_the_number_of_frames():
    """Both moments hold as many units of frames as there ever are: see `units.MAX_BLOCKS`."""
    early, late = memory_after(2 * MAX_BLOCKS, (MAX_BLOCKS - 1, 2 * MAX_BLOCKS - 1))
    assert late < early + 200_000, (
        "the arrays of these 128 frames take 1.4 MB: not even a sixth may stay"
    )


@given(
    st.lists(st.floats(0.01, 1.0), max_size=300).map(np.array),
    st.integers(0, 6),
)
def test_examples_are_the_worst_and_typical_frames(errors, wanted):
    examples = Examples(wanted)
    for index, error in enumerate(errors):
        examples.offer(error, index)
    worst = examples.worst()
    typical = examples.typical()
    assert len(worst) <= wanted // 2
    assert len(worst) + len(typical) == min(wanted, len(errors))
    assert not set(worst) & set(typical)
    assert typical == sorted(typical)
    assert list(errors[worst]) == sorted(errors[worst], reverse=True)
    if worst:
        assert errors[worst[0]] == errors.max()


def test_worst_frames_are_apart_in_time():
    examples = Examples(4)
    for index in range(200):
        near = 60 <= index < 66
        error = 0.9 + index / 1000 if near else 0.5 if index == 150 else 0.1
        examples.offer(error, index)
    assert examples.worst() == [65, 150]


TRUTH = np.linspace(1.0, 8.0, 24 * 32).reshape(24, 32)


def test_arrays_score_as_the_frames_that_hold_them():
    noise = np.random.default_rng(0).normal(size=TRUTH.shape)
    depth, sigma = TRUTH + TRUTH / 10 * noise, TRUTH / 10
    expected = Evaluation()
    expected.add(scored(0, *(values.astype(np.float32) for values in (TRUTH, depth, sigma))))
    found = Evaluation()
    found.add_arrays(torch.tensor(depth, requires_grad=True), torch.tensor(sigma), TRUTH)
    assert repr(found.summary()) == repr(expected.summary())  # NaN does not equal itself
    assert str(found.verdict()).startswith("verdict: grey")
    with pytest.raises(ValueError, match="ground_truth"):
        found.add_arrays(depth, sigma, "truth")


@pytest.mark.parametrize(
    "image", [np.zeros((48, 64, 3), np.uint8), np.zeros((24, 32), np.uint8), np.ones((24, 32, 3))]
)
def test_an_image_that_does_not_fit_the_maps_is_refused_at_once(image):
    evaluation = Evaluation()
    with pytest.raises(ValueError, match=r"image is .*; expected uint8 RGB .*\(24, 32, 3\)"):
        evaluation.add_arrays(TRUTH, TRUTH / 10, TRUTH, image=image)
    assert evaluation.evaluated == 0


def test_options_are_keywords():
    assert Evaluation(max_depth=5).config.max_depth == 5.0
    with pytest.raises(ConfigError, match="unknown option 'maximum'"):
        Evaluation(maximum=5)


@pytest.mark.parametrize(("of_maps", "of_truth"), [(1, 1000), (1, 0.001), (1000, 1000)])
def test_millimetres_are_warned_of(of_maps, of_truth, caplog):
    for scoring in (Evaluation().add_arrays, OnlineMetrics().update):
        caplog.clear()
        scoring(TRUTH * of_maps, TRUTH * of_maps / 10, TRUTH * of_truth)
        assert "as millimetres are; expected metres" in caplog.text


CONTEXT = report.Context("drive", {"method": "mc_dropout"}, options={"rate": 2.0})


@pytest.mark.parametrize("frames", [0, 1, 150])
def test_a_report_is_read_back_in_every_digit(tmp_path, frames):
    evaluation = evaluation_of(frames=frames)
    summary = json.loads(json.dumps(evaluation.summary()))
    moment = pickle.loads(pickle.dumps(copy.deepcopy(evaluation)))
    for late in moments(1, seed=9):  # not of the copy
        evaluation.add_arrays(late.depth, late.sigma, late.truth)
    found = saved(moment, tmp_path / "report", CONTEXT)
    again = found.evaluation
    assert found.context.options == {"rate": 2.0}
    np.testing.assert_equal(json.loads(json.dumps(again.summary())), summary)
    assert judge(again, {}, None) == judge(moment, {}, None)
    assert again.cameras == moment.cameras
    for name in ("cell.error", "cell.covered_laplace"):  # for the plot of positions alone
        np.testing.assert_array_equal(again.metrics.total()[name], moment.metrics.total()[name])
    assert [name.frame for name, _ in again.table] == [str(index) for index in range(frames)]
    rows = (tmp_path / "report" / "frames.csv").read_text().splitlines()
    assert len(rows) == (frames + 1 if frames else 0)


WAIT_S = 30


class Source(ListSource):
    """Twelve frames; some are skipped and one cannot be scored."""

    def __init__(self):
        super().__init__(map(record, range(12)))


def record(number):
    if number % 5 == 3:
        return Skipped(number, f"reason_{number}", "why")
    return frame(number, known=number != 6)


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
