# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames scored again: of a bag that loops, a copy, a simulation that stands still."""

import copy
import math

import numpy as np
import pytest

from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report import repeated_frames
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.repeated_frames import RepeatedFrames
from uncertainty_depth.report.verdict import judge


def frames_of(*numbers):
    frames = RepeatedFrames()
    for number in numbers:
        frames.add({"depth.rmse": number, "n_merci": math.nan})
    return frames


def add_loops(evaluation, moments, loops):
    """Add frames as a bag does that is played again and again."""
    for loop in range(loops):
        for index, moment in enumerate(moments):
            prediction = DepthPrediction(
                moment.depth.astype(np.float32), moment.sigma.astype(np.float32)
            )
            truth_m = moment.truth.astype(np.float32)
            stamp_ns = loop * 1000 + index
            evaluation.add(
                Frame(stamp_ns, str(stamp_ns), ground_truth_m=truth_m, prediction=prediction)
            )


def test_every_repetition_counts():
    assert frames_of(1, 2, 1, 1, 3, 2).count == 3
    assert frames_of(1, 2, 3).count == 0
    assert frames_of().count == 0


def test_merged_frames_are_those_of_one_recording():
    merged = frames_of(1, 2, 2)
    merged.merge(frames_of(2, 3, 3))
    assert merged.count == 3
    assert set(merged.to_array().tolist()) == set(frames_of(1, 2, 3).to_array().tolist())


def test_a_recording_includes_its_copies_and_clips():
    assert frames_of(1, 2, 3).includes(frames_of(1, 2))
    assert not frames_of(1, 2).includes(frames_of(1, 2, 3))
    assert not frames_of(1, 2).includes(frames_of())


def test_a_saved_or_copied_state_goes_on():
    frames = frames_of(1, 2, 1)
    loaded = RepeatedFrames(frames.count, frames.to_array().tolist())
    copied = copy.deepcopy(frames)
    frames.add({"depth.rmse": 5, "n_merci": math.nan})
    for state in (loaded, copied):
        state.add({"depth.rmse": 2, "n_merci": math.nan})
        state.add({"depth.rmse": 5, "n_merci": math.nan})
        assert state.count == 2


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(repeated_frames, "MAX_FRAMES", 3)
    frames = frames_of(*range(10))
    assert len(frames.to_array()) == 3
    frames.add({"depth.rmse": 0, "n_merci": math.nan})
    assert frames.count == 1


@pytest.mark.parametrize("loops", [1, 30])
def test_a_loop_of_few_frames_earns_no_green_line(loops, moments_of, model):
    """Thirty loops of four frames have the intervals of 120 frames, and tell of four."""
    evaluation = Evaluation()
    add_loops(evaluation, list(moments_of(frames=4)), loops)
    verdict = judge(evaluation, model, [])
    colors = {line.name: line.color for line in verdict.lines}
    assert [colors[name] for name in ("depth", "order", "size")] == ["grey"] * 3
    repeats = [note for note in verdict.notes if "earlier frame" in note]
    assert len(repeats) == (loops > 1)
    assert evaluation.repeated.count == 4 * (loops - 1)
