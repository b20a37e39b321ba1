# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import json

import numpy as np
import pytest
import torch
from scipy import stats

from uncertainty_depth.experiments import anchor
from uncertainty_depth.experiments.anchor_methods import METHODS, Settings, predict
from uncertainty_depth.experiments.anchor_problems import PROBLEMS, bayesian_linear_regression

TINY = Settings(members=3, passes=5, steps=8)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_closed_form_equals_lstsq(problem):
    rng = np.random.default_rng(1)
    x, y = problem.draw(rng)
    design = problem.basis(x)
    at = problem.basis(problem.test_points(rng, 50)["out"])
    mean, sigma = bayesian_linear_regression(design, y, at)
    coefficients, residual, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    assert rank == design.shape[1] == len(problem.coefficients)
    freedom = len(y) - rank
    covariance = residual[0] / freedom * np.linalg.inv(design.T @ design)
    posterior = stats.t(
        freedom, loc=at @ coefficients, scale=np.sqrt(np.einsum("ij,jk,ik->i", at, covariance, at))
    )
    np.testing.assert_allclose(mean, posterior.mean(), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(sigma, posterior.std(), rtol=1e-7)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_anchor_covers_at_its_nominal_rate(problem):
    data = anchor.draw(problem, 150)
    for region, (mean, sigma) in anchor.anchor_predictions(problem, data).items():
        truth = np.stack([problem.function(points[region]) for _, _, points in data])
        coverage = anchor.assess(mean, sigma, truth, problem.noise)["coverage"]
        assert coverage.mean() == pytest.approx(0.95, abs=0.02)


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match=r"4 rows for 2 columns; expected at least 5"):
        bayesian_linear_regression(np.ones((4, 2)), np.ones(4), np.ones((1, 2)))


def test_problems_are_those_named():
    assert [problem.name for problem in PROBLEMS] == [f"E.1 f_main={i}" for i in range(1, 6)] + [
        f"E.2 d={i}" for i in range(1, 5)
    ] + ["E.3"]
    x = np.array([[1.0, -2.0]])
    assert PROBLEMS[6].function(x) == pytest.approx(
        0.5 * sum(v**4 - 16 * v**2 + 5 * v for v in (1.0, -2.0))
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_points_lie_where_they_should(problem):
    rng = np.random.default_rng(0)
    x, y = problem.draw(rng)
    points = problem.test_points(rng, 100)
    assert x.shape == (problem.points, problem.dimension)
    assert y.shape == (problem.points,)
    assert np.abs(x).max() <= problem.limit
    assert points["in"].shape == points["out"].shape == (100, problem.dimension)
    assert np.abs(points["in"]).max() <= problem.limit
    assert (np.abs(points["out"]).max(1) > problem.limit).all()
    assert np.std(y - problem.function(x)) == pytest.approx(problem.noise, rel=0.25)


def arrays(repetitions=2):
    data = anchor.draw(PROBLEMS[-1], repetitions)
    x = torch.tensor(np.stack([x for x, *_ in data]), dtype=torch.float32) / 2
    y = torch.tensor(np.stack([y for _, y, _ in data]), dtype=torch.float32)[..., None]
    return x, y, torch.full((repetitions,), 0.5), x[:, :20]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_predicts_with_a_spread(method):
    mean, sigma = predict(method, TINY, 0, *arrays())
    assert mean.shape == sigma.shape == (2, 20)
    assert torch.isfinite(mean).all()
    assert (sigma > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method):
    x, y, sigma, at = arrays()
    mean, _ = predict(method, Settings(members=2, passes=10, steps=400), 0, x, y, sigma, at)
    assert ((mean - y[:, :20, 0]).square().mean(1) < y.var((1, 2)) / 2).all()


def test_the_same_seed_gives_the_same_answer():
    first, second, other = (predict("bootstrap", TINY, seed, *arrays())[0] for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_smallest_run_writes_its_files_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(anchor, "Settings", lambda **_: TINY)
    monkeypatch.setattr(anchor, "ANCHOR_REPETITIONS", 20)
    anchor.run(tmp_path, 2, True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert set(written) == {"table.md", "table.csv", "summary.json", "e1.png", "e2.png", "e3.png"}
    summary = json.loads(written["summary.json"])["results"]
    assert len(summary["E.3"]) == len(METHODS) + 1
    assert len(summary["E.3"]["adversarial"]["out"]["coverage"]) == 2
    monkeypatch.setattr(anchor, "compute", lambda *_: pytest.fail("computed again"))
    anchor.run(tmp_path, 2, True)
    assert (tmp_path / "table.csv").read_bytes() == written["table.csv"]
