# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where memory runs out, fewer samples are computed at a time; the result is the same."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.ros.within_memory import within_memory

CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory")
GPU = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


@pytest.mark.parametrize("error", [CPU, GPU, MemoryError()])
@pytest.mark.parametrize(("fits", "expected"), [(8, [6]), (4, [6, 3]), (1, [6, 3, 1])])
def test_samples_at_a_time_are_halved_until_they_fit(error, fits, expected, caplog):
    predictor = SimpleNamespace(config=PredictorConfig(samples=6, chunk=100))
    tried = []

    def predict():
        tried.append(min(predictor.config.chunk, predictor.config.samples))
        if tried[-1] > fits:
            raise error
        return "maps"

    with caplog.at_level(logging.WARNING):
        assert within_memory(predictor, predict) == "maps"
        assert within_memory(predictor, predict) == "maps"  # the lower chunk is kept
    assert tried == [*expected, expected[-1]]
    assert predictor.config.samples == 6
    assert len(caplog.records) == len(expected) - 1


def test_a_sample_that_does_not_fit_is_one_reason():
    predictor = SimpleNamespace(config=PredictorConfig(samples=8, chunk=8))

    def predict():
        raise GPU

    with pytest.raises(MessageError, match=r"2\.00 GiB\.$") as e:
        within_memory(predictor, predict)
    assert e.value.reason == "out_of_memory"


def test_other_failures_are_not_tried_again():
    def predict():
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        within_memory(SimpleNamespace(config=PredictorConfig()), predict)
