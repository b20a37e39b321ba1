# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a metric that ranks sigmas must do: noise never improves a sigma, shuffling ruins it."""

import numpy as np
import pytest

from uncertainty_depth.metrics import n_merci, sparsification

SEEDS = range(20)
PIXELS = 4000


def ause(statistic):
    return lambda depth, sigma, truth: sparsification(depth, sigma, truth, statistic).ause


def reading(**options):
    return lambda depth, sigma, truth: n_merci(np.abs(depth - truth), sigma, **options)


RANKING = {
    "AUSE abs_rel": ause("abs_rel"),
    "AUSE rmse": ause("rmse"),
    "AUSE a1": ause("a1"),
    "n-MeRCI": reading(),
    "n-MeRCI withdrawn": reading(withdrawn=True),
}


def pixels(seed):
    """Laplace errors whose deviation is the true sigma, at depths that sigma grows with."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(1, 10, PIXELS)
    sigma = 0.08 * truth * rng.lognormal(0, 0.6, PIXELS)
    depth = np.maximum(truth + rng.laplace(0, sigma / np.sqrt(2)), 0.05)
    return depth, sigma, truth


def mean_of(metric, changed_sigma):
    """Mean of a metric over the seeds, of `changed_sigma(rng, depth, sigma)`."""
    values = []
    for seed in SEEDS:
        depth, sigma, truth = pixels(seed)
        changed = changed_sigma(np.random.default_rng([seed, 1]), depth, sigma)
        values.append(metric(depth, changed, truth))
    return np.mean(values)


def noise(rng, strength):
    return rng.lognormal(0, strength, PIXELS)


BASES = {
    "true sigma": lambda depth, sigma: sigma,
    "depth": lambda depth, sigma: depth,
    "constant": lambda depth, sigma: np.ones_like(sigma),
}


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("strength", [0.1, 0.25, 0.6])
def test_noise_on_a_sigma_never_improves_it(name, base, strength):
    """Nor takes it below a constant, where its order was worse than none.

    1 % of tolerance: the root of a mean over the few pixels left last is biased downwards.
    """
    metric = RANKING[name]
    sigma_of = BASES[base]
    constant = mean_of(metric, lambda rng, depth, sigma: np.ones_like(sigma))
    clean = mean_of(metric, lambda rng, depth, sigma: sigma_of(depth, sigma))
    noisy = mean_of(
        metric, lambda rng, depth, sigma: sigma_of(depth, sigma) * noise(rng, strength)
    )
    assert noisy >= min(clean, constant) * (1 - 0.01)
    if base == "true sigma":
        assert noisy > clean


@pytest.mark.parametrize("name", RANKING)
def test_a_shuffled_sigma_is_no_better_than_a_constant(name):
    metric = RANKING[name]
    shuffled = mean_of(metric, lambda rng, depth, sigma: rng.permutation(sigma))
    constant = mean_of(metric, lambda rng, depth, sigma: np.ones_like(sigma))
    assert shuffled >= constant * (1 - 0.02)


def test_the_trimmed_reading_rewards_noise_so_nothing_is_ranked_by_it():
    """Pure noise scores far better than a constant: why it stands in no headline."""
    metric = reading(trimmed=True)
    constant = mean_of(metric, lambda rng, depth, sigma: np.ones_like(sigma))
    pure_noise = mean_of(metric, lambda rng, depth, sigma: noise(rng, 0.25))
    shuffled = mean_of(metric, lambda rng, depth, sigma: rng.permutation(sigma))
    depth_alone = mean_of(metric, lambda rng, depth, sigma: depth)
    noisy_depth = mean_of(metric, lambda rng, depth, sigma: depth * noise(rng, 0.25))
    assert constant == pytest.approx(1)
    assert pure_noise < 0.8
    assert shuffled < 0.8
    assert noisy_depth < depth_alone
