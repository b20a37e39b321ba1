# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth completion: sets of members, interpolation, and the experiment from end to end."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from experiments import completion, completion_models
from experiments.completion_data import interpolated, nyu
from experiments.completion_models import QUICK, shifted_trainings
from experiments.completion_sets import Pixels, combined, drawn_sets, scores
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.depth.training import run as training_run
from uncertainty_depth.metrics import auce

TINY = replace(
    QUICK,
    shifted=replace(QUICK.shifted, input_size=(32, 32)),
    shifted_training=replace(
        QUICK.shifted_training, members=2, epochs=1, batch_size=4, validation_fraction=0.4
    ),
    dropout_networks=1,
    worlds=4,
    test_worlds=1,
    shifted_test=2,
    draws=2,
    pixels=200,
)


@pytest.fixture(scope="module")
def finished(nyu_like, tmp_path_factory):
    """Output folder of a whole run, on data without KITTI."""
    folder = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completion, "QUICK", TINY)
        completion.run(folder / "output", 1, True, nyu_like.parent)
    return folder


def test_a_run_writes_tables_claims_and_plots(finished):
    output = finished / "output"
    plots = ("metrics", "sparsification", "sparsification_error", "calibration", "examples")
    assert all((output / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in plots)
    text = (output / "table.md").read_text()
    assert text.startswith("**Quick run")
    assert "NYU: the ensemble's mean AUSE is below MC-dropout's at" in text
    assert json.loads((output / "summary.json").read_text())["quick"] is True
    with (output / "shifted.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    sizes = [(row["method"], row["M"]) for row in rows if row["scored on"] == "NYU"]
    assert sizes[:4] == [
        ("ensemble", "1"),
        ("ensemble", "2"),
        ("MC-dropout", "1"),
        ("MC-dropout", "2"),
    ]
    assert not any(row["scored on"] == "KITTI" for row in rows)


def test_a_second_run_trains_and_scores_nothing(finished, nyu_like, monkeypatch, refuse_again):
    monkeypatch.setattr(completion, "QUICK", TINY)
    refuse_again(
        (training_run, "read_frames"),
        (completion, "predicted_pixels"),
        (completion, "interpolation_errors"),
    )
    before = (finished / "output" / "table.md").read_text()
    completion.run(finished / "output", 1, True, nyu_like.parent)
    assert (finished / "output" / "table.md").read_text() == before


def test_dropout_networks_differ_from_members_by_their_dropout_alone():
    trainings = shifted_trainings(completion_models.FULL)
    ensemble, _ = trainings.pop("ensemble")
    networks = [network for network, _ in trainings.values()]
    assert len(networks) == completion_models.FULL.dropout_networks
    with_dropout = replace(ensemble, dropout=0.5, backbone="tiny+encoder_dropout+random:614")
    assert networks == [with_dropout] * len(networks)
    assert len({training.seed for _, training in trainings.values()}) == len(networks)


def test_no_set_is_drawn_twice_and_few_sets_are_all_taken():
    sets = drawn_sets(17, 4, 16)
    assert len(set(sets)) == len(sets) == 16
    assert all(len(set(members)) == 4 for members in sets)
    assert sets == drawn_sets(17, 4, 16)
    assert sorted(drawn_sets(3, 2, 16)) == [(0, 1), (0, 2), (1, 2)]


def test_members_are_mixed_as_gaussians_of_equal_weight():
    depth = np.array([[1.0, 2.0], [3.0, 2.0], [9.0, 9.0]], np.float32)
    sigma = np.array([[1.0, 1.0], [2.0, 1.0], [9.0, 9.0]], np.float32)
    mean, deviation = combined(Pixels(depth, sigma, depth[0]), (0, 1))
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(1, 1, 400_000), rng.normal(3, 2, 400_000)])
    np.testing.assert_allclose(mean, [2, 2])
    np.testing.assert_allclose(deviation, [samples.std(), 1], rtol=5e-3)


def test_scores_are_those_of_the_metrics():
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 5, 2000)
    sigma = rng.uniform(0.1, 1, 2000)
    depth = truth + rng.normal(0, sigma)
    scored = scores(depth, sigma, truth)
    assert scored["auce"] == pytest.approx(auce(np.abs(depth - truth), sigma))
    assert scored["auce"] < 0.02
    assert scored["ause"] < scored["constant"]
    assert scored["rmse"] == pytest.approx(np.sqrt(np.mean((depth - truth) ** 2)))


def test_interpolation_gives_a_plane_back_and_the_nearest_beyond():
    rows, columns = np.mgrid[:20, :30]
    plane = 2 + 0.1 * rows + 0.05 * columns
    sparse = np.full(plane.shape, np.nan)
    corners = (slice(5, 16, 10), slice(5, 26, 20))
    sparse[corners] = plane[corners]
    asked = np.ones(plane.shape, bool)
    depth = interpolated(sparse, asked).reshape(plane.shape)
    np.testing.assert_allclose(depth[5:16, 5:26], plane[5:16, 5:26])
    assert depth[0, 0] == plane[5, 5]
    sparse[corners] = np.nan
    sparse[5, 5] = 2.5
    assert (interpolated(sparse, asked) == 2.5).all()


def test_images_are_evenly_spread_over_a_split(nyu_like):
    assert [record.name for record in nyu(nyu_like.parent, "test", 2)] == ["0012", "0014"]
    assert len(nyu(nyu_like.parent, "test", 0)) == 4


def test_missing_data_are_one_clear_sentence(tmp_path):
    with pytest.raises(SourceError, match=r"no NYU Depth v2: .*nyuv2 is missing"):
        completion.run(tmp_path, 1, True, tmp_path)
