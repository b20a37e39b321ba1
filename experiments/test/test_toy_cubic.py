# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import json

import numpy as np
import pytest
import torch

from experiments import toy_cubic, toy_cubic_report
from experiments.toy_cubic import METHOD_TITLES, Settings, make_data

TINY = Settings(members=4, hidden=8, epochs=6)


def test_training_data_are_those_of_the_paper():
    x, plain = make_data(3, 0.0)
    same_x, biased = make_data(3, 20.0)
    inside = (x >= -2.3) & (x <= -1.3)
    assert len(x) == 20
    assert [toy_cubic.is_biased(make_data(seed, 0.0)[0]).sum() for seed in range(20)] == [3] * 20
    assert np.array_equal(x, same_x)
    assert np.abs(x).max() <= 4
    np.testing.assert_allclose(biased - plain, np.where(inside, 20.0, 0.0))
    noise = np.concatenate(
        [make_data(seed, 0.0)[1] - make_data(seed, 0.0)[0] ** 3 for seed in range(200)]
    )
    assert noise.std() == pytest.approx(3.0, rel=0.05)


def fitted(settings=TINY):
    x, y = make_data(0, 20.0)
    tensors = [
        torch.tensor(part, dtype=torch.float32).reshape(1, -1, 1)
        for part in (x / 4, y / 20, np.linspace(-1, 1, 9))
    ]
    return toy_cubic.fit(*tensors, settings, 0)


@pytest.mark.parametrize("method", METHOD_TITLES)
def test_members_differ(method):
    members = fitted()[method][0]
    assert members.shape == (4, 9)
    assert torch.pdist(members).min() > 1e-5


def test_dropout_and_snapshots_come_from_one_network():
    """The last snapshot is the first member of Multi Inits, at the end of its training."""
    outputs = fitted()
    torch.testing.assert_close(outputs["multi_epochs"][0, -1], outputs["multi_inits"][0, 0])


def test_an_ensemble_fits_the_cubic():
    x, y = make_data(0, 0.0)
    tensors = [
        torch.tensor(part, dtype=torch.float32).reshape(1, -1, 1)
        for part in (x / 4, y / 20, x / 4)
    ]
    outputs = toy_cubic.fit(*tensors, Settings(members=5, epochs=200), 0)
    mean = outputs["multi_inits"][0].mean(0).numpy() * 20
    assert np.abs(mean - x**3).mean() < np.abs(x**3).mean() / 3


def test_a_published_value_is_compared_with_the_range_of_the_seeds():
    limits = np.array([0.1, 0.2, 0.5, 0.6])
    values = (0.05, 0.15, 0.3, 0.55, 0.7)
    assert [toy_cubic_report._range_around(value, limits) for value in values] == [
        "neither",
        "min to max only",
        "5 % to 95 %",
        "min to max only",
        "neither",
    ]


def test_a_rise_around_60_percent_is_counted_over_training_sets():
    case = toy_cubic_report.Case("20", "wide", "bagging", "plain")
    flat = np.ones((3, len(toy_cubic.ALPHAS)))
    rising = flat.copy()
    rising[:2, toy_cubic.ALPHAS >= 0.6] = 2.0
    curves = {case._replace(reading=reading): flat for reading in toy_cubic.READINGS}
    curves[case] = rising
    _, rows = toy_cubic_report.jumps(curves, dict.fromkeys(curves, np.array([0.4, 0.1, 0.5])))
    assert rows == [["wide", "Bagging", "2 of 3", "0 of 3", "0 of 3", "40 %"]]


def test_smallest_run_writes_its_files_and_resumes(tmp_path, monkeypatch, refuse_again):
    monkeypatch.setattr(toy_cubic, "Settings", lambda **_: TINY)
    toy_cubic.run(tmp_path, 2, True)
    tables = {"table.md", "table.csv", "variations.csv", "jumps.csv", "summary.json"}
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"results", "fit.png", "n_merci.png", *tables}
    values = json.loads((tmp_path / "summary.json").read_text())["n_merci"]
    readings = len(toy_cubic.READINGS)
    assert len(values) == len(toy_cubic.BIASES) * 3 * len(METHOD_TITLES) * readings
    assert np.shape(values["20/wide/bagging/plain"]) == (2, len(toy_cubic.ALPHAS))
    refuse_again((toy_cubic, "score"))
    toy_cubic.run(tmp_path, 2, True)
