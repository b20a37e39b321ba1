# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import json

import numpy as np
import pytest
import torch

from experiments import anchor
from experiments.anchor_methods import (
    DROPOUTS,
    METHOD_TITLES,
    Settings,
    adversarial_examples,
    make_network,
    penalty,
    predict,
    with_adversarial_examples,
)
from experiments.anchor_problems import PROBLEMS, bayesian_linear_regression
from experiments.stacked import StackedMLP

TINY = Settings(members=3, passes=5, epochs=2)


def named(name):
    return next(problem for problem in PROBLEMS if problem.name == name)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_anchor_is_the_normal_posterior_of_known_noise(problem):
    design = problem.basis(problem.training_inputs())
    targets = problem.targets(2)
    at = problem.basis(problem.at[::50])
    mean, sigma = bayesian_linear_regression(design, targets, at, problem.noise)
    covariance = problem.noise**2 * np.linalg.inv(design.T @ design)
    for repetition, y in zip(mean, targets, strict=True):
        coefficients, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
        assert rank == design.shape[1] == len(problem.coefficients)
        np.testing.assert_allclose(repetition, at @ coefficients, rtol=1e-7, atol=1e-8)
    variance = np.einsum("ij,jk,ik->i", at, covariance, at)
    np.testing.assert_allclose(sigma, np.sqrt(variance), rtol=1e-7)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_anchor_covers_every_input_at_its_nominal_rate(problem):
    mean, sigma = anchor.anchor_predictions(problem, 500)
    values = anchor.assess(mean, sigma, problem.function(problem.at))
    assert values["coverage"].mean() == pytest.approx(0.95, abs=0.02)
    assert values["coverage"].min() > 0.9  # 5 standard errors
    np.testing.assert_allclose(values["rmse"], values["uncertainty"], rtol=0.2)


def test_problems_are_those_of_the_paper():
    sizes = {problem.name: (problem.points, problem.noise) for problem in PROBLEMS}
    expected = {f"E.1 f_main={main}": (50, 0.75) for main in (1, 2, 3, 5)}
    expected |= {f"E.1 without 2 pi, f_main={main}": (50, 0.75) for main in (1, 3, 5)}
    expected |= {f"E.2 d={d}": (100 * 9 ** (d - 1), 3.0) for d in (1, 2, 3)}
    assert sizes == expected | {"E.3": (450, 0.5)}
    sinusoids = named("E.1 f_main=2")
    frequencies = 2 * np.array([0.9, 29 / 30, 31 / 30, 1.1])
    angles = 2 * np.pi * (frequencies * 0.3 + np.array([0, 1 / 3, 2 / 3, 1]))
    np.testing.assert_allclose(sinusoids.basis(np.array([[0.3]]))[0], np.sin(angles))
    without = named("E.1 without 2 pi, f_main=1").basis(np.array([[2 * np.pi * 0.3 * 2]]))[0]
    np.testing.assert_allclose(without, np.sin(angles))
    x = np.array([[1.0, -2.0]])
    value = 0.5 * sum(v**4 - 16 * v**2 + 5 * v for v in (1.0, -2.0))
    assert named("E.2 d=2").function(x) == pytest.approx(value)
    np.testing.assert_allclose(named("E.3").basis(x), [[1, 1, -2, -2, 1, 4]])


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("E.1 f_main=1", {"x = -2.38": -2.38, "x = 1.2": 1.2, "x = -5.11": -5.11}),
        ("E.2 d=2", {"lambda = 0.5996": 10 * 0.5996 - 5, "lambda = 0.074": 10 * 0.074 - 5}),
    ],
)
def test_the_inputs_reported_on_are_those_of_the_paper(name, inputs):
    problem = named(name)
    assert problem.inputs.keys() == inputs.keys()
    for key, index in problem.inputs.items():
        np.testing.assert_allclose(problem.at[index], inputs[key], atol=0.0061)


def test_only_the_noise_differs_between_repetitions():
    problem = named("E.1 f_main=1")
    inputs = problem.training_inputs()
    np.testing.assert_array_equal(inputs, problem.training_inputs())
    assert np.abs(inputs).max() <= 4
    noise = problem.targets(400) - problem.function(inputs)
    assert noise.std() == pytest.approx(problem.noise, rel=0.02)
    assert np.abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.5


def test_coverage_is_per_input_over_the_repetitions():
    mean = np.array([[0.0, 1.0], [0.0, 3.0]])
    values = anchor.assess(mean, np.ones((2, 2)), np.zeros(2))
    np.testing.assert_array_equal(values["coverage"], [1.0, 0.5])
    np.testing.assert_allclose(values["deviation"], [0.0, 2.0])
    np.testing.assert_allclose(values["deviation_error"], [0.0, 1.0])
    np.testing.assert_allclose(values["rmse"], [0.0, np.sqrt(5)])
    assert anchor.binomial_error(0.5, 25) == pytest.approx(0.1)


def test_only_the_last_hidden_layer_has_dropout_and_weights_start_as_xaviers():
    network = make_network("bernoulli", Settings(), 20, 1)
    kinds = [type(noise).__name__ for noise in network.noise]
    assert kinds == ["Identity", "Identity", "Dropout"]
    assert all((bias == 0).all() for bias in network.biases)
    for weight in network.weights:
        variance = 2 / sum(weight.shape[1:])
        assert weight.var().item() == pytest.approx(variance, rel=0.1)


def test_the_penalty_is_half_the_squared_weights():
    network = make_network("ensemble", Settings(), 2, 1)
    expected = sum(weight[1].square().sum() for weight in network.weights) / 2
    assert penalty("ensemble", network, 10)[1].item() == pytest.approx(expected.item() / 100)
    assert penalty("literal", network, 10)[1].item() == pytest.approx(expected.item() / 10)


@pytest.mark.parametrize("method", ["concrete", "variational"])
def test_weights_before_a_learned_dropout_have_the_l2_of_all_methods(method):
    network = make_network(method, Settings(), 2, 1)
    before = penalty(method, network, 10)
    with torch.no_grad():
        network.weights[0].add_(1.0)
    added = (network.weights[0].square() - (network.weights[0] - 1).square()).sum((1, 2))
    torch.testing.assert_close(penalty(method, network, 10) - before, added / 2 / 100)


def arrays():
    problem = named("E.2 d=1")
    x = torch.from_numpy(problem.training_inputs()).float()
    y = torch.from_numpy(problem.targets(2)).float()
    return x, y, problem.noise, torch.linspace(-3, 3, 20)[:, None]


@pytest.mark.parametrize("method", METHOD_TITLES)
def test_every_method_predicts_with_a_spread(method):
    predictions = predict(method, TINY, *arrays(), epochs=2, width=8.0)
    assert predictions.shape == (2, 5 if method in DROPOUTS else 3, 20)
    assert torch.isfinite(predictions).all()
    assert (predictions.std(1) > 0).all()


def test_a_bootstrap_drawn_once_leaves_points_out_for_good():
    """Two points, one of them drawn: each member knows one of the two targets alone."""
    x = torch.tensor([[-1.0], [1.0]])
    y = torch.tensor([[-3.0, 3.0]])
    settings = Settings(members=12)
    spread = {}
    for method in ("bootstrap", "once"):
        predictions = predict(method, settings, x, y, 1.0, x, epochs=150, width=8.0)
        spread[method] = predictions.std(1).mean()
    assert spread["once"] > 2 * spread["bootstrap"]


def squared_error(network, inputs, targets):
    return (network(inputs) - targets).square().mean((1, 2))


def examples(members=1):
    return (
        StackedMLP(members, (2, 16, 1)),
        torch.randn(members, 32, 2),
        torch.randn(members, 32, 1),
    )


def test_each_coordinate_moves_by_its_step_up_its_own_members_loss():
    """Goodfellow's fast gradient sign method, with the gradient of one member at a time."""
    network, x, y = examples(3)
    step = torch.tensor([0.1, 0.2])
    moved = adversarial_examples(network, squared_error, x, y, step)
    for member in range(3):
        inputs = x.clone().requires_grad_()
        squared_error(network, inputs, y)[member].backward()
        expected = x + step * inputs.grad.sign()
        torch.testing.assert_close(moved[member], expected[member].detach())


def test_the_networks_gradients_stay_untouched():
    network, x, y = examples()
    adversarial_examples(network, squared_error, x, y, 0.1)
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not x.requires_grad


def test_the_joint_objective_is_the_mean_of_both():
    network, x, y = examples(2)
    moved = adversarial_examples(network, squared_error, x, y, 0.1)
    expected = (squared_error(network, x, y) + squared_error(network, moved, y)) / 2
    torch.testing.assert_close(
        with_adversarial_examples(squared_error, 0.1)(network, x, y), expected
    )


@pytest.mark.parametrize("method", ["bernoulli", "adversarial", "bootstrap", "once"])
def test_a_method_learns(method):
    problem = named("E.2 d=1")
    x, y, noise, _ = arrays()
    settings = Settings(members=2, passes=10)
    mean = predict(method, settings, x, y, noise, x, epochs=300, width=8.0).mean(1)
    truth = torch.from_numpy(problem.function(problem.training_inputs())).float()
    assert ((mean - truth).square().mean(1) < truth.var() / 5).all()


def test_smallest_run_writes_its_files_and_resumes(tmp_path, monkeypatch, refuse_again):
    monkeypatch.setattr(anchor, "Settings", lambda **_: TINY)
    monkeypatch.setattr(anchor, "ANCHOR_REPETITIONS", 20)
    problems = [named(name) for name in ("E.1 f_main=1", "E.2 d=1", "E.3")]
    monkeypatch.setattr(anchor, "QUICK_PROBLEMS", problems)
    anchor.run(tmp_path, 2, True)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    predictions = {f"predictions_{name}.png" for name in ("e1_1", "e2_1")}
    plots = {"e1.png", "e2.png", "maps.png", "members.png"} | predictions
    assert (
        set(written)
        == {"table.md", "table.csv", "inputs.csv", "members.csv", "summary.json"} | plots
    )
    members = written["members.csv"].decode().splitlines()
    assert len(members) == 1 + 3 * (len(METHOD_TITLES) - len(DROPOUTS))
    assert members[1].startswith("E.1 f_main=1,deep ensemble (Ens),2,")
    summary = json.loads(written["summary.json"])["results"]
    assert len(summary["E.3"]) == len(METHOD_TITLES) + 1
    assert len(summary["E.3"]["adversarial"]["coverage"]) == 41 * 41
    refuse_again((anchor, "compute"))
    anchor.run(tmp_path, 2, True)
    assert (tmp_path / "table.csv").read_bytes() == written["table.csv"]
