# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import importlib.util
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats
from torch import nn

from experiments import (
    figures,
    langevin,
    posterior_methods,
    posterior_report,
    posterior_toys,
    toy_classification,
    toy_sinusoid,
)
from experiments.hmc import Budget, Posterior, posterior_predictions, split_r_hat
from experiments.langevin import sample_epochs
from experiments.posterior_methods import Schedule
from experiments.toy_sinusoid import kl_divergence
from uncertainty_depth.core.errors import UncertaintyDepthError

TINY = Schedule((2, 4), 2, 2, (1,), 20, Budget(2, 6, 5, 3))
TOYS = {"toy-sinusoid": toy_sinusoid, "toy-classification": toy_classification}


def make_posterior(toy, chains=2, samples=6):
    rng = np.random.default_rng(0)
    predictions = rng.normal(size=(chains, samples, len(toy.GRID), 2)).astype(np.float32)
    return Posterior(
        predictions,
        rng.normal(size=(chains, samples)),
        np.eye(chains, samples, dtype=bool),
        np.full((chains, samples), 7),
    )


@pytest.fixture(params=TOYS)
def toy(request):
    return TOYS[request.param]


def test_sinusoid_data_are_the_papers():
    x, y = (part[:, 0] for part in toy_sinusoid.make_data(points=20_000))
    assert np.abs(x).max() <= 3
    scaled = (y - np.sin(x)) * (1 + np.exp(-x)) / 0.15
    assert stats.kstest(scaled, "norm").pvalue > 0.01
    assert len(toy_sinusoid.make_data()[0]) == 1000


def test_classification_data_are_the_papers():
    x, y = toy_classification.make_data()
    assert np.bincount(y).tolist() == [520, 520]
    assert x[:, 0].min() >= 0
    assert np.abs(x).max() <= 3
    assert ((np.hypot(*x.T) > 2.4) == (y == 1)).all()


def test_losses_equal_torch():
    outputs = torch.randn(3, 8, 2)
    targets = torch.randn(3, 8, 1)
    expected = [
        nn.functional.gaussian_nll_loss(o[:, :1], t, o[:, 1:].exp(), eps=0)
        for o, t in zip(outputs, targets, strict=True)
    ]
    torch.testing.assert_close(
        toy_sinusoid.negative_log_likelihood(outputs, targets), torch.stack(expected)
    )
    classes = torch.randint(2, (3, 8))
    expected = [nn.functional.cross_entropy(o, c) for o, c in zip(outputs, classes, strict=True)]
    torch.testing.assert_close(
        toy_classification.cross_entropy(outputs, classes), torch.stack(expected)
    )


def test_distance_to_itself_is_zero(toy):
    samples = np.random.default_rng(0).normal(size=(5, len(toy.GRID), 2)).astype(np.float32)
    problem = toy.make_problem()
    truth = problem.predict(samples)
    other = problem.predict(samples + np.array([0.5, 0.0], dtype=np.float32))
    assert all(
        value == pytest.approx(0.0, abs=1e-6) for value in problem.distance(truth, truth).values()
    )
    assert all(value > 0 for value in problem.distance(truth, other).values())


def test_chains_that_agree_are_trusted_and_those_that_do_not_are_not(toy):
    agree = make_posterior(toy, 4, 100)
    moved = agree.predictions.copy()
    moved[2:, :, :, 0] += 3
    near, far = (
        posterior_toys.mixing(
            posterior, toy.make_problem(), posterior.predictions[..., 0], toy.INSIDE
        )
        for posterior in (agree, agree._replace(predictions=moved))
    )
    name = "KL on [-7, 7]" if toy is toy_sinusoid else "mean Bernoulli KL, [-6, 6]²"
    assert near["floor"][name] < 0.05 < far["floor"][name]
    assert near["inside"][0] < 1.05 < 1.5 < far["inside"][0]
    assert near["outside"][1] < 1.2 < 1.5 < far["outside"][1]
    assert near["energy"] == pytest.approx(1.0, abs=0.05)
    assert (near["diverged"], near["steps"]) == (4, 7.0)


def test_r_hat_of_chains_with_known_means():
    """Half chains of variance 1 with means 0, 0, d, d: between / within is d^2 / 3."""
    draws = np.random.default_rng(0).normal(size=(2, 20_000))
    draws[1] += 2.0
    assert split_r_hat(draws) == pytest.approx(np.sqrt(1 + 4 / 3), rel=0.02)
    drift = np.random.default_rng(0).normal(size=(1, 20_000)) + np.repeat([0.0, 2.0], 10_000)
    assert split_r_hat(drift) == pytest.approx(np.sqrt(1 + 4 / 2), rel=0.02)
    assert split_r_hat(draws[:1]) == pytest.approx(1.0, abs=0.001)


def test_r_hat_of_chains_that_stand_still():
    """A probability may be saturated in every sample."""
    same = np.ones((2, 8))
    apart = np.repeat([[0.0], [1.0]], 8, axis=1)
    assert split_r_hat(np.stack([same, apart], axis=-1)).tolist() == [1.0, np.inf]


def test_predictive_is_the_law_of_total_variance():
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(4, 3, 2))
    mean, sigma = toy_sinusoid.predictive(outputs)
    drawn = rng.normal(outputs[..., 0], np.exp(outputs[..., 1] / 2), (100_000, 4, 3)).reshape(
        -1, 3
    )
    np.testing.assert_allclose(mean, drawn.mean(0), atol=0.02)
    np.testing.assert_allclose(sigma, drawn.std(0), rtol=0.02)


def test_bernoulli_divergence_equals_scipy():
    p = np.array([0.2, 0.9])
    q = np.array([0.5, 0.8])
    expected = np.mean([stats.entropy([a, 1 - a], [b, 1 - b]) for a, b in zip(p, q, strict=True)])
    assert toy_classification.bernoulli_divergence(p, q) == pytest.approx(expected)
    assert toy_classification.map_divergence(p, 0.5 * p) == pytest.approx(0.0, abs=1e-12)
    assert toy_classification.map_divergence(p, q) == pytest.approx(
        stats.entropy(p / p.sum(), q / q.sum())
    )


def test_samples_come_from_the_last_quarter():
    assert sample_epochs(100, 3) == [75, 88, 100]
    assert sample_epochs(100, 26) == list(range(75, 101))


@pytest.mark.parametrize("method", [posterior_methods.ensemble, posterior_methods.mc_dropout])
def test_samples_differ(toy, method):
    drawn = method(toy.make_problem(), TINY, 0)
    assert drawn.shape == (4, len(toy.GRID), 2)
    assert np.ptp(drawn, axis=0).max() > 0.01


def test_chains_give_as_many_samples_as_asked_and_leave_out_what_they_are_too_short_for(toy):
    schedule = replace(TINY, counts=(2, 4, 16))
    for drawn in langevin.chains(toy.make_problem(), schedule, 1, 3).values():
        assert {count: part.shape[:2] for count, part in drawn.items()} == {2: (3, 2), 4: (3, 4)}
        assert np.ptp(drawn[4], axis=1).max() > 0
        assert np.ptp(drawn[4], axis=0).max() > 0


def test_chains_of_both_kinds_sample_the_prior_where_there_is_no_likelihood():
    """Without a loss only the prior N(0, 1) is left: outputs are those of random networks."""
    problem = replace(
        toy_sinusoid.make_problem(),
        loss=lambda outputs, targets: 0 * outputs.mean((1, 2)),
        at=torch.tensor([[1.0]]),
    )
    problem = replace(
        problem,
        inputs=problem.inputs[:40],
        targets=problem.targets[:40],
        step_sizes={"sgld": 0.5, "sghmc": 0.05},
    )
    drawn = langevin.chains(problem, replace(TINY, counts=(2,), chain_unit=150), 1, 200)
    layers = [
        torch.randn(20_000, *shape)
        for shape in ((1, 10), (1, 10), (10, 10), (1, 10), (10, 1), (1, 1))
    ]
    hidden = torch.relu(torch.relu(layers[0] + layers[1]) @ layers[2] + layers[3])
    expected = (hidden @ layers[4] + layers[5]).std().item()
    for kind in ("sgld", "sghmc"):
        assert drawn[kind][2].std() == pytest.approx(expected, rel=0.15)


def test_the_distance_of_a_diverged_chain_is_nan(toy):
    problem = toy.make_problem()
    truth = problem.predict(make_posterior(toy).predictions[0])
    distances: dict[str, list[float]] = {}
    posterior_toys._add_distances(distances, problem, truth, [np.full_like(truth, np.nan)])
    assert distances.keys() == problem.distance(truth, truth).keys()
    assert all(np.isnan(values).all() for values in distances.values())


def test_one_chain_that_ran_off_hides_no_other_in_the_figure():
    found = {
        "sghmc-64": {8: {"KL": [0.5, np.nan, 1.5]}, 16: {"KL": [np.nan] * 3}, 32: {"KL": [2.0]}}
    }
    (axis,) = posterior_report.plot_distances(found, ["KL"], {"KL": 0.1}).axes
    assert_allclose(axis.lines[0].get_xydata(), [[8, 1.0], [32, 2.0]], rtol=0.05)


def test_gaussian_divergence_equals_torch():
    rng = np.random.default_rng(0)
    means, sigmas = rng.normal(size=(2, 9)), rng.uniform(0.1, 2, (2, 9))
    true, other = (
        torch.distributions.Normal(*map(torch.from_numpy, pair))
        for pair in zip(means, sigmas, strict=True)
    )
    expected = torch.distributions.kl_divergence(true, other).mean().item()
    assert kl_divergence(means[0], sigmas[0], means[1], sigmas[1]) == pytest.approx(expected)


def test_the_plots_show_what_the_papers_figures_show(toy):
    problem = toy.make_problem()
    chains = ["sgld-64", "sghmc-64", "sgld-256", "sghmc-256"]
    methods = [*posterior_toys.methods(problem, Schedule()), *chains]
    shown = dict(posterior_report.distance_plots(methods))
    assert shown["kl"] == ["ensemble", "mc_dropout", *chains]
    assert shown["kl_sgd"] == ["ensemble-sgd", "mc_dropout-sgd", *chains]
    assert shown["kl_sgdm"] == ["ensemble-sgdm", "mc_dropout-sgdm", *chains]
    rates = [f"mc_dropout-{rate}" for rate in problem.other_dropouts]
    assert shown["kl_dropout"] == ["mc_dropout", *rates]


@pytest.mark.parametrize("optimizer", ["sgd", "sgdm"])
def test_sgd_steps_are_those_of_the_public_code(optimizer):
    """Its loss is twice ours, and so is our learning rate: the first step must be the same."""
    problem = toy_sinusoid.make_problem()
    torch.manual_seed(0)
    network = problem.make(1, None)
    before = [one.detach().clone() for one in network.parameters()]
    outputs = network(problem.inputs)
    mean = outputs[..., :1]
    log_variance = outputs[..., 1:]
    loss = (torch.exp(-log_variance) * (problem.targets - mean) ** 2 + log_variance).mean()
    loss = loss + sum(one.square().sum() for one in network.parameters()) / len(problem.inputs)
    loss.backward()
    rate = {"sgd": 0.01, "sgdm": 0.001}[optimizer]
    expected = [
        old - rate * one.grad for old, one in zip(before, network.parameters(), strict=True)
    ]
    torch.manual_seed(0)
    again = problem.make(1, None)
    whole = replace(problem, loss=lambda *of: problem.loss(*of))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior_methods, "BATCH", len(problem.inputs))
        posterior_methods.fit(whole, again, 1 / len(problem.inputs), 1, 0, optimizer)
    for one, wanted in zip(again.parameters(), expected, strict=True):
        torch.testing.assert_close(one.detach(), wanted, rtol=1e-4, atol=1e-6)


def test_one_network_has_no_idea_of_what_it_has_not_seen():
    """The paper's figure 2: direct regression has no sigma, likelihood too small a one outside."""
    problem = toy_sinusoid.make_problem()
    schedule = replace(Schedule(), ensemble_epochs=60)
    direct, likelihood = toy_sinusoid.interpretations(problem, schedule).values()
    inside = toy_sinusoid.INSIDE
    truth = np.sin(toy_sinusoid.GRID)
    assert np.abs(direct[0] - truth)[inside].mean() < 0.2
    assert not direct[1].any()
    noise = toy_sinusoid.noise_scale(toy_sinusoid.GRID)
    ratio = likelihood[1][inside] / noise[inside]
    assert 0.5 < np.median(ratio) < 2
    error = np.abs(likelihood[0] - truth)
    assert (error > 3 * likelihood[1])[~inside].mean() > 0.3


def test_mc_dropout_masks_change_from_point_to_point_and_pass_to_pass():
    problem = toy_sinusoid.make_problem()
    same = replace(problem, at=torch.ones(50, 1))
    drawn = posterior_methods.mc_dropout(same, TINY, 0)[..., 0]
    assert np.ptp(drawn, axis=0).min() > 0
    assert np.ptp(drawn, axis=1).min() > 0


@pytest.mark.parametrize("quick", [True, False])
def test_run_writes_its_files_and_resumes(toy, tmp_path, monkeypatch, refuse_again, quick):
    monkeypatch.setattr(toy, "QUICK", TINY)
    monkeypatch.setattr(toy, "Schedule", lambda: TINY)
    # So small a run spends most of its time on plots.
    monkeypatch.setattr(figures, "save", lambda _, path: path.touch())
    posterior = make_posterior(toy)
    for chain in range(2):
        np.savez(
            tmp_path / f"hmc_6_5_3_{chain}.npz",
            **{name: part[chain] for name, part in posterior._asdict().items()},
        )
    toy.run(tmp_path, 2, quick)
    written = {path.name for path in tmp_path.iterdir()}
    plots = ("kl", "kl_sgd", "kl_sgdm", "kl_dropout", "examples", "predictive")
    assert written == {
        *("hmc_6_5_3_0.npz", "hmc_6_5_3_1.npz", "results"),
        *("table.md", "table.csv", "summary.json"),
        *(f"{name}.png" for name in plots),
    }
    found = json.loads((tmp_path / "summary.json").read_text())["distances"]
    chains = {"sgld-1", "sghmc-1"}
    assert set(found) == {*posterior_toys.methods(toy.make_problem(), TINY), *chains}
    assert all(
        len(values) == 2
        for method in found.values()
        for cell in method.values()
        for values in cell.values()
    )
    refuse_again((posterior_toys, "compute"))
    toy.run(tmp_path, 2, quick)


def test_without_numpyro_there_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    monkeypatch.setitem(sys.modules, "numpyro.infer", None)
    command = f"run: {re.escape(sys.executable)} -m pip install numpyro"
    with pytest.raises(UncertaintyDepthError, match=f"needs numpyro.*{command}"):
        toy_sinusoid.run(tmp_path, 1, True)


@pytest.mark.skipif(
    importlib.util.find_spec("numpyro") is None,
    reason="numpyro, the optional HMC sampler, is not installed",
)
def test_hmc_samples_a_known_posterior(tmp_path):
    """A linear layer with unit prior and noise has the posterior of Bayesian regression."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 1)).astype(np.float32)
    y = x + 0.5
    at = np.array([[-1.0], [2.0]], dtype=np.float32)
    budget = Budget(chains=2, samples=400, warmup=200, depth=5)
    posterior = posterior_predictions(
        tmp_path, (1, 1), 1, lambda outputs: -((y - outputs) ** 2).sum() / 2, x, at, budget
    )
    assert split_r_hat(posterior.predictions).max() < 1.05
    drawn = posterior.pooled()
    design = np.column_stack([x, np.ones(30)])
    wanted = np.column_stack([at, np.ones(2)])
    covariance = np.linalg.inv(design.T @ design + np.eye(2))
    np.testing.assert_allclose(
        drawn[..., 0].mean(0), (wanted @ covariance @ design.T @ y)[:, 0], atol=0.05
    )
    np.testing.assert_allclose(
        drawn[..., 0].var(0), np.diag(wanted @ covariance @ wanted.T), rtol=0.25
    )
    again = posterior_predictions(
        tmp_path, (1, 1), 1, lambda _: pytest.fail("sampled again"), x, at, budget
    )
    assert np.array_equal(posterior.predictions, again.predictions)
