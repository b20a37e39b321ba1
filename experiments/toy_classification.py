# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Distance of scalable methods to the true posterior in classification.

Gustafsson et al. 2020, section 4.1, appendix B. 520 points per class; x uniform on
[0, 3] x [-3, 3], class 1 outside the circle of radius 2.4 around 0; one ReLU network of two hidden
layers of 10, two logits; prior N(0, I). The radius and the half plane are measured from the
published training points, which are drawn anew here. Compared on a 60 x 60 grid over [-6, 6]^2.
The paper's distance divides each method's map of the class-0 probability by its sum over the grid
and takes the KL divergence between the two maps, which ignores a factor common to a whole map. The
mean over the grid of the Bernoulli KL divergence, which does not, is reported too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from scipy.special import rel_entr, softmax
from torch import Tensor, nn
from torch.nn import functional

from experiments import figures
from experiments.hmc import posterior_predictions
from experiments.posterior_methods import (
    MOMENTUM,
    QUICK,
    SGD,
    Problem,
    Schedule,
    ensemble,
    mc_dropout,
)
from experiments.posterior_report import report
from experiments.posterior_toys import compare, mixing
from experiments.stacked import StackedMLP

SIZES = (2, 10, 10, 2)
RADIUS = 2.4
AXIS = np.linspace(-6.0, 6.0, 60, dtype=np.float32)
GRID = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
INSIDE = (GRID[:, 0] > 0) & (GRID[:, 0] < 3) & (np.abs(GRID[:, 1]) < 3)


def make_data(
    seed: int = 0, per_class: int = 520
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw inputs (2 per_class, 2) and classes (2 per_class,)."""
    rng = np.random.default_rng(seed)
    points = rng.uniform((0.0, -3.0), (3.0, 3.0), (20 * per_class, 2)).astype(np.float32)
    outside = np.hypot(*points.T) > RADIUS
    x = np.concatenate([points[~outside][:per_class], points[outside][:per_class]])
    return x, np.repeat([0, 1], per_class)


def make_network(members: int, noise: Sequence[nn.Module] | None) -> StackedMLP:
    """Return a stack of `members` networks."""
    return StackedMLP(members, SIZES, noise=noise)


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy of (M, B, 2) logits with (M, B) classes, (M,)."""
    return functional.cross_entropy(outputs.movedim(-1, 1), targets, reduction="none").mean(1)


def log_likelihood(targets: NDArray) -> Callable[[Any], Any]:
    """Return the log likelihood as a function of logits, a jax array (N, 2)."""

    def of(outputs: Any) -> Any:
        import jax

        return jax.nn.log_softmax(outputs)[np.arange(len(targets)), targets].sum()

    return of


def class_probability(outputs: NDArray) -> NDArray[np.float64]:
    """Return the probability of class 0, mean over the K sampled outputs (K, P, 2), (P,)."""
    return softmax(outputs.astype(np.float64), axis=-1).mean(0)[:, 0]


def map_divergence(p: NDArray, q: NDArray) -> float:
    """Return the KL divergence of two maps, each divided by its sum (their appendix B)."""
    return float(rel_entr(p / p.sum(), q / q.sum()).sum())


def bernoulli_divergence(p: NDArray, q: NDArray) -> float:
    """Return the mean over the points of the KL divergence of Bernoulli distributions."""
    return float((rel_entr(p, q) + rel_entr(1 - p, 1 - q)).mean())


def distance(truth: NDArray, prediction: NDArray) -> dict[str, float]:
    """Return the distances between two maps of the class-0 probability, (P,) both."""
    return {
        "KL of maps, [-6, 6]²": map_divergence(truth, prediction),
        "KL of maps, training region": map_divergence(truth[INSIDE], prediction[INSIDE]),
        "mean Bernoulli KL, [-6, 6]²": bernoulli_divergence(truth, prediction),
    }


def make_problem() -> Problem:
    """Return the problem with its data."""
    x, y = make_data()
    steps = {"sgld": 0.05, "sghmc": 0.01}
    return Problem(
        torch.from_numpy(x),
        torch.from_numpy(y),
        torch.from_numpy(GRID),
        make_network,
        cross_entropy,
        0.1,
        (0.05, 0.2, 0.5),
        steps,
        {SGD: 0.05, MOMENTUM: 0.01},
        class_probability,
        distance,
    )


def draw_probability(axis: Axes, probability: NDArray, _: str = "") -> AxesImage:
    """Draw a map of the class-0 probability with the training points."""
    x, y = make_data()
    image = axis.imshow(
        probability.reshape(len(AXIS), len(AXIS)),
        origin="lower",
        extent=(-6, 6, -6, 6),
        vmin=0,
        vmax=1,
        cmap="cividis",
    )
    axis.plot(*x[y == 0].T, ".", color="#0072B2", markersize=1)
    axis.plot(*x[y == 1].T, ".", color="#D55E00", markersize=1)
    return image


def plot_probability(predictions: dict[str, NDArray]) -> figures.Figure:
    """Plot one map of each method: the paper's figures 3 and 4."""
    figure, axes = figures.panels(1, len(predictions), height=3.6, sharex=True, sharey=True)
    for axis, (name, probability) in zip(axes.flat, predictions.items(), strict=True):
        image = draw_probability(axis, probability)
        axis.set(title=name, xlabel="x1", ylabel="x2")
    figure.colorbar(image, ax=axes, label="probability of class 0")
    return figure


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write table.md, table.csv, summary.json and the plots.

    From `seeds` ensembles, dropout networks and chains of each type.
    """
    schedule = QUICK if quick else Schedule()
    problem = make_problem()
    x, y = make_data()
    posterior = posterior_predictions(output, SIZES, 1, log_likelihood(y), x, GRID, schedule.hmc)
    samples = posterior.pooled()
    truth = class_probability(samples)
    compared = compare(output, problem, schedule, seeds, truth, "toy-classification")
    probabilities = softmax(posterior.predictions, axis=-1)[..., 0]
    mixed = mixing(posterior, problem, probabilities, INSIDE)
    report(output, compared, draw_probability, schedule, seeds, quick, mixed)
    count = max(schedule.counts)
    torch.manual_seed(0)
    predictions = {
        "HMC": truth,
        f"ensemble, M = {count}": class_probability(ensemble(problem, schedule, 0)),
        f"MC-dropout, M = {count}": class_probability(mc_dropout(problem, schedule, 0)),
    }
    figures.save(plot_probability(predictions), output / "predictive.png")
