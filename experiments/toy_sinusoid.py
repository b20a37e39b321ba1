# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Distance of scalable methods to the true posterior in regression.

Gustafsson et al. 2020, section 4.1, appendix B. 1,000 points x uniform on [-3, 3],
y = sin x + N(0, (0.15 / (1 + e^-x))^2); two ReLU networks of two hidden layers of 10, one for the
mean, one for the log variance; prior N(0, I). The KL divergence from the Gaussian predictive of
the HMC reference to that of the method is averaged over 1,000 points of [-7, 7], and over those
inside [-3, 3]. Log variances are clipped at 2 from above, as in the public code. The training
points are drawn anew, so they are not the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments import figures
from experiments.hmc import posterior_predictions
from experiments.posterior_methods import (
    MOMENTUM,
    QUICK,
    SGD,
    Problem,
    Schedule,
    ensemble,
    fit,
    mc_dropout,
    outputs,
)
from experiments.posterior_report import report
from experiments.posterior_toys import compare, mixing
from experiments.stacked import PairedMLP
from uncertainty_depth.core.array_types import Floats

SIZES = (1, 10, 10, 1)
GRID = np.linspace(-7.0, 7.0, 1000, dtype=np.float32)
INSIDE = np.abs(GRID) <= 3.0
MAX_LOG_VARIANCE = 2.0


def noise_scale(x: NDArray) -> NDArray:
    """Return the standard deviation of y at x."""
    return 0.15 / (1 + np.exp(-x))


def make_data(
    seed: int = 0, points: int = 1000
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw inputs and targets, (points, 1) each."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3.0, 3.0, (points, 1))
    y = np.sin(x) + rng.normal(size=x.shape) * noise_scale(x)
    return x.astype(np.float32), y.astype(np.float32)


def make_network(members: int, noise: Sequence[nn.Module] | None) -> PairedMLP:
    """Return a stack of `members` pairs of networks."""
    return PairedMLP(members, SIZES, noise)


def negative_log_likelihood(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean Gaussian negative log likelihood without its constant, (M,).

    Args:
        outputs: (M, B, 2) mean and log variance.
        targets: (M, B, 1).
    """
    mean = outputs[..., :1]
    log_variance = outputs[..., 1:]
    return ((targets - mean).square() * torch.exp(-log_variance) + log_variance).mean((1, 2)) / 2


def predictive(outputs: NDArray) -> NDArray[np.float64]:
    """Return mean and total standard deviation (2, P) of (K, P, 2) sampled outputs.

    By the law of total variance (their appendix A).
    """
    mean = outputs.astype(np.float64)[..., 0]
    log_variance = np.minimum(outputs.astype(np.float64)[..., 1], MAX_LOG_VARIANCE)
    variance = np.exp(log_variance).mean(0) + mean.var(0)
    return np.stack([mean.mean(0), np.sqrt(variance)])


def log_likelihood(targets: NDArray) -> Callable[[Any], Any]:
    """Return the log likelihood, without its constant, as a function of a jax array (N, 2).

    The array is mean and log variance.
    """

    def of(outputs: Any) -> Any:
        import jax.numpy as jnp

        mean = outputs[:, :1]
        log_variance = outputs[:, 1:]
        return -0.5 * jnp.sum((targets - mean) ** 2 * jnp.exp(-log_variance) + log_variance)

    return of


def distance(truth: NDArray, prediction: NDArray) -> dict[str, float]:
    """Return the KL divergence between predictives (2, P), on the grid and inside the data."""
    return {
        "KL on [-7, 7]": kl_divergence(*truth, *prediction),
        "KL on [-3, 3]": kl_divergence(*truth[:, INSIDE], *prediction[:, INSIDE]),
    }


def make_problem() -> Problem:
    """Return the problem with its data."""
    x, y = make_data()
    steps = {"sgld": 0.01, "sghmc": 0.001}
    return Problem(
        torch.from_numpy(x),
        torch.from_numpy(y),
        torch.from_numpy(GRID)[:, None],
        make_network,
        negative_log_likelihood,
        0.2,
        (0.05, 0.1),
        steps,
        {SGD: 0.02, MOMENTUM: 0.002},  # the code's loss is twice this one, its rates are half
        predictive,
        distance,
    )


def interpretations(problem: Problem, schedule: Schedule) -> dict[str, NDArray[np.float64]]:
    """Return mean and sigma (2, P) of one network by direct regression, and by likelihood.

    The paper's figure 2, (b) and (c): neither knows what it does not know.
    """
    direct = replace(problem, loss=squared_error)
    predictions = {}
    for name, variant in {"direct regression": direct, "maximum likelihood": problem}.items():
        torch.manual_seed(0)
        network = problem.make(1, None)
        fit(variant, network, 0.0, schedule.ensemble_epochs, 0)
        predictions[name] = predictive(outputs(network.eval(), problem.at))
    predictions["direct regression"][1] = 0.0
    return predictions


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared error of the mean, (M,); see `negative_log_likelihood`."""
    return (targets - outputs[..., :1]).square().mean((1, 2))


def draw_predictive(axis: Axes, prediction: NDArray, color: str) -> None:
    """Draw mean and two total standard deviations beside the truth."""
    mean, sigma = prediction
    axis.plot(*make_data(), ".", color="0.7", markersize=1)
    low = mean - 2 * sigma
    high = mean + 2 * sigma
    axis.fill_between(GRID, low, high, color=color, alpha=0.25, linewidth=0, label="± 2 sigma")
    axis.plot(GRID, mean, color=color, label="mean")
    axis.plot(GRID, np.sin(GRID), "k--", linewidth=1, label="sin x")
    axis.set_ylim(-5, 5)


def plot_predictive(predictions: dict[str, NDArray]) -> figures.Figure:
    """Plot one prediction of each method: the paper's figures 2 and 4."""
    figure, axes = figures.panels(1, len(predictions), sharex=True, sharey=True)
    for axis, (name, prediction), color in zip(
        axes.flat, predictions.items(), figures.COLORS, strict=False
    ):
        draw_predictive(axis, prediction, color)
        axis.set(title=name, xlabel="x", ylabel="y")
        axis.legend(fontsize=7, loc="upper left")
    return figure


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write table.md, table.csv, summary.json and the plots.

    From `seeds` ensembles, dropout networks and chains of each type.
    """
    schedule = QUICK if quick else Schedule()
    problem = make_problem()
    x, y = make_data()
    posterior = posterior_predictions(
        output, SIZES, 2, log_likelihood(y), x, GRID[:, None], schedule.hmc
    )
    samples = posterior.pooled()
    truth = predictive(samples)
    compared = compare(output, problem, schedule, seeds, truth, "toy-sinusoid")
    mixed = mixing(posterior, problem, posterior.predictions, INSIDE)
    report(output, compared, draw_predictive, schedule, seeds, quick, mixed)
    count = max(schedule.counts)
    torch.manual_seed(0)
    predictions = {
        **interpretations(problem, schedule),
        "HMC": truth,
        f"ensemble, M = {count}": predictive(ensemble(problem, schedule, 0)),
        f"MC-dropout, M = {count}": predictive(mc_dropout(problem, schedule, 0)),
    }
    figures.save(plot_predictive(predictions), output / "predictive.png")


def kl_divergence(mean_p: Floats, sigma_p: Floats, mean_q: Floats, sigma_q: Floats) -> float:
    """Return the mean Kullback-Leibler divergence KL(p || q) of Gaussians p and q, (N,), nats."""
    spread = sigma_p / sigma_q
    shift = (mean_p - mean_q) / sigma_q
    return float(((spread * spread + shift * shift - 1) / 2 - np.log(spread)).mean())
