# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the accumulator takes and refuses, and the state that it saves."""

import dataclasses
import inspect
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten


def filled(make_pixels, frames=3):
    metrics = OnlineMetrics()
    for seed in range(frames):
        metrics.update(*make_pixels(500, seed))
    return metrics


def same(first, second):
    np.testing.assert_equal(first.compute(), second.compute())


def test_an_update_needs_the_documented_memory_for_each_pixel(make_pixels):
    metrics = OnlineMetrics()
    frame = make_pixels(20_000, 0)
    metrics.update(*frame)
    tracemalloc.start()
    metrics.update(*frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 20_000


def test_maps_are_masked_and_frames_without_a_valid_pixel_count_as_ground_truth(pixels):
    depth, sigma, truth = pixels
    hidden = np.where(np.arange(truth.size) % 2, truth, np.nan)
    metrics = OnlineMetrics()
    found = metrics.update(depth.reshape(50, 60), sigma.reshape(50, 60), hidden.reshape(50, 60))
    expected = OnlineMetrics().update(depth[1::2], sigma[1::2], truth[1::2])
    np.testing.assert_equal(found, expected)
    assert metrics.update(np.full_like(depth, np.nan), sigma, truth) is None
    assert metrics.frames == 1
    assert metrics.compute()["scored_fraction"] == pytest.approx(1500 / 4500)


def test_nothing_seen_is_nan_everywhere_in_the_same_mapping(pixels):
    empty = flatten(OnlineMetrics().compute())
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    assert empty.keys() == flatten(metrics.compute()).keys()
    assert not {name: value for name, value in empty.items() if value and not np.isnan(value)}
    assert OnlineMetrics().curves()["pixels"] == 0


def test_tensors_are_arrays_and_a_reset_forgets(pixels):
    metrics = OnlineMetrics()
    found = metrics.update(*map(torch.as_tensor, pixels))
    np.testing.assert_equal(found, OnlineMetrics().update(*pixels))
    depth, sigma, truth = pixels
    tracked = torch.tensor(depth, requires_grad=True)
    np.testing.assert_equal(metrics.update(tracked, sigma, truth), found)
    half = torch.tensor(depth).bfloat16()
    rounded = OnlineMetrics().update(half.double().numpy(), sigma, truth)
    np.testing.assert_equal(metrics.update(half, sigma, truth), rounded)
    metrics.reset()
    same(metrics, OnlineMetrics())


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"min_depth": float("nan")}, "min_depth is nan; expected a finite number of metres"),
        ({"max_depth": float("inf")}, "max_depth is inf; expected a finite number of metres"),
        ({"min_depth": 9.0, "max_depth": 8.0}, "expected less than max_depth, 8.0"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits, sentence):
    with pytest.raises(ConfigError, match=sentence):
        OnlineMetrics(EvaluationConfig(**limits))


def test_options_are_keywords_of_the_same_config():
    assert OnlineMetrics(max_depth=10).config == EvaluationConfig(max_depth=10.0)
    assert OnlineMetrics(EvaluationConfig(alpha=0.9), min_depth=1).config.alpha == 0.9
    assert "max_depth" in inspect.signature(OnlineMetrics).parameters
    with pytest.raises(ConfigError, match="unknown option 'max_dept'"):
        OnlineMetrics(max_dept=10)
    with pytest.raises(ConfigError, match=r"max_depth is -1\.0"):
        OnlineMetrics(max_depth=-1)


def test_alpha_is_checked_when_the_accumulator_is_made():
    with pytest.raises(ValueError, match="alpha is 0"):
        OnlineMetrics(EvaluationConfig(alpha=0))


def test_a_saved_state_goes_on(make_pixels, tmp_path):
    metrics = filled(make_pixels)
    metrics.save(tmp_path / "state.npz")
    loaded = OnlineMetrics.load(tmp_path / "state.npz")
    same(loaded, metrics)
    frame = make_pixels(700, 9)
    np.testing.assert_equal(loaded.update(*frame), metrics.update(*frame))
    same(loaded, metrics)


def test_states_that_score_something_else_do_not_merge(make_pixels):
    first = filled(make_pixels)
    with pytest.raises(ValueError, match=r"max_depth 10.0; expected 80.0"):
        first.merge(OnlineMetrics(EvaluationConfig(max_depth=10.0)))
    first.merge(OnlineMetrics(dataclasses.replace(EvaluationConfig(), example_frames=0)))


def test_a_flipped_byte_anywhere_is_a_source_error_or_changes_nothing(make_pixels, tmp_path):
    metrics = filled(make_pixels, 1)
    path = tmp_path / "state.npz"
    metrics.save(path)
    data = path.read_bytes()
    sentences = []
    for place in np.linspace(0, len(data) - 1, 150).astype(int):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        try:
            same(OnlineMetrics.load(path), metrics)
        except SourceError as error:
            sentences.append(str(error))
    assert len(sentences) > 50
    assert all("\n" not in sentence for sentence in sentences)
    for part in (b"", data[: len(data) // 2], b"PK\x03\x04"):
        path.write_bytes(part)
        with pytest.raises(SourceError, match="not a complete metrics state"):
            OnlineMetrics.load(path)
    with pytest.raises(SourceError, match="does not exist"):
        OnlineMetrics.load(tmp_path / "none.npz")


def rewritten(path, change):
    """Change the files within a saved state: `change(name, data)` returns the new data."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, change(name, data))


def test_a_small_file_that_claims_gigabytes_is_refused_before_it_takes_them(make_pixels, tmp_path):
    path = tmp_path / "state.npz"
    filled(make_pixels, 1).save(path)

    shape = str(np.load(path)["blocks/counts"].shape).encode()

    def claims(name, data):
        if "counts" not in name:
            return data
        claimed = b"(" + b"9" * (len(shape) - 3) + b",)"
        return data.replace(shape, claimed) + bytes(200_000_000)

    rewritten(path, claims)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(SourceError, match="blocks/counts"):
        OnlineMetrics.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 4),
        ("format", "new"),
        ("config", {"min_depth": "far"}),
        ("config", []),
        ("frames_per_block", 3),
        ("frames_in_last_block", -1),
        ("last_log_scale", "x"),
    ],
)
def test_a_header_of_something_else_is_one_sentence(make_pixels, tmp_path, key, value):
    path = tmp_path / "state.npz"
    filled(make_pixels, 1).save(path)
    header = json.loads(np.load(path)["header"].tobytes())
    text = json.dumps({**header, key: value}).encode()

    def change(name, data):
        if name != "header.npy":
            return data
        file = io.BytesIO()
        np.save(file, np.frombuffer(text, np.uint8))
        return file.getvalue()

    rewritten(path, change)
    with pytest.raises(SourceError) as error:
        OnlineMetrics.load(path)
    assert "\n" not in str(error.value)
