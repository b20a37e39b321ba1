# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Learned dropout: its noise, its rate and its divergence to the prior."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from experiments.learned_dropout import ConcreteDropout, VariationalDropout


def test_concrete_dropout_drops_at_its_rate_and_keeps_the_mean():
    layer = ConcreteDropout(1, rate=0.3)
    x = torch.ones(200_000)
    dropped = layer(x)
    assert (dropped < 0.5).float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("layer", [ConcreteDropout(4), VariationalDropout(4)])
def test_no_noise_in_evaluation(layer):
    x = torch.randn(5, 4)
    assert torch.equal(layer.eval()(x), x)
    assert not torch.equal(layer.train()(x), x)


@pytest.mark.parametrize(("size", "sigma", "moves"), [(20, 1.0, 1), (5000, 0.1, -1)])
def test_concrete_dropout_moves_its_rate(size, sigma, moves):
    """With few noisy examples the entropy raises the rate; many exact ones lower it."""
    torch.manual_seed(0)
    dropout = ConcreteDropout(32, rate=0.2)
    first = nn.Linear(1, 32)
    last = nn.Linear(32, 1)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters(), dropout.logit], lr=0.01)
    x = torch.linspace(-1, 1, 64)[:, None]
    for _ in range(200):
        optimizer.zero_grad()
        misfit = (last(dropout(torch.relu(first(x)))) - torch.sin(3 * x)).square().mean() / (
            2 * sigma**2
        )
        (misfit + dropout.divergence(last.weight.square().sum(), 1.0) / size).backward()
        optimizer.step()
    assert moves * (dropout.rate.item() - 0.2) > 0.03


def test_concrete_divergence_is_the_prior_minus_the_entropy():
    rate = 0.3
    squares = torch.tensor(2.0)
    entropy = stats.bernoulli(rate).entropy()
    expected = 4.0 / 2 * 2.0 / (1 - rate) - 10 * entropy
    assert ConcreteDropout(10, rate=rate).divergence(squares, 4.0).item() == pytest.approx(
        expected, rel=1e-5
    )


def test_variational_noise_has_variance_alpha():
    noisy = VariationalDropout(1, alpha=0.25)(torch.ones(200_000))
    assert noisy.mean().item() == pytest.approx(1.0, abs=0.01)
    assert noisy.var().item() == pytest.approx(0.25, rel=0.02)


def true_divergence(alpha: float) -> float:
    """E log|z| - entropy of z ~ N(1, alpha), by quadrature.

    The divergence from the log-uniform prior up to a constant.
    """
    density = stats.norm(1.0, np.sqrt(alpha))
    reach = 12 * np.sqrt(alpha)
    mean, _ = integrate.quad(
        lambda z: density.pdf(z) * np.log(abs(z)),
        1 - reach,
        1 + reach,
        points=[0.0, 1.0],
        limit=500,
    )
    return mean - density.entropy()


def test_variational_divergence_agrees_with_quadrature():
    """Up to a constant, Molchanov's fit is within 0.05 nat over four decades of alpha."""
    alphas = [0.01, 0.1, 0.5, 1.0, 5.0, 100.0]
    gap = [
        VariationalDropout(1, alpha=alpha).divergence().item() - true_divergence(alpha)
        for alpha in alphas
    ]
    assert np.ptp(gap) < 0.05


def test_one_rate_per_stacked_network():
    layer = ConcreteDropout(8, (3, 1, 1))
    x = torch.ones(3, 1000, 8)
    with torch.no_grad():
        layer.logit[:, 0, 0] = torch.tensor([-4.0, 0.0, 4.0])
    dropped = (layer(x) < 0.5).float().mean((1, 2))
    assert dropped.tolist() == pytest.approx(
        torch.sigmoid(torch.tensor([-4.0, 0.0, 4.0])).tolist(), abs=0.05
    )
