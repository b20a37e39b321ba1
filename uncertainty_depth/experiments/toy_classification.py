# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Distance of scalable methods to the true posterior in classification (Gustafsson et al. 2020, section 4.1, appendix B).

520 points per class; x uniform on [0, 3] x [-3, 3], class 1 outside the circle of radius 2.4 around 0; one ReLU network of two hidden
layers of 10, two logits; prior N(0, I). The radius and the half plane are measured from the published training points (the half of a
square is a quarter of neither the square nor the area compared), which are drawn anew here. Compared on a 60 x 60 grid over [-6, 6]^2. The paper's
distance divides each method's map of the class-0 probability by its sum over the grid and takes the KL divergence between the two maps, which
forgets a factor common to a whole map; the mean over the grid of the Bernoulli KL divergence, which does not, stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import rel_entr, softmax
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.experiments import figures
from uncertainty_depth.experiments.hmc import posterior_predictions
from uncertainty_depth.experiments.posterior_report import report
from uncertainty_depth.experiments.posterior_toys import (
    QUICK,
    Problem,
    Schedule,
    compare,
    ensemble,
    mc_dropout,
    mixing,
    pooled,
)
from uncertainty_depth.experiments.stacked import StackedMLP

SIZES = (2, 10, 10, 2)
RADIUS = 2.4
AXIS = np.linspace(-6.0, 6.0, 60, dtype=np.float32)
GRID = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
INSIDE = (GRID[:, 0] > 0) & (GRID[:, 0] < 3) & (np.abs(GRID[:, 1]) < 3)


def make_data(
    seed: int = 0, per_class: int = 520
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inputs (2 per_class, 2) and classes (2 per_class,)."""
    rng = np.random.default_rng(seed)
    drawn = rng.uniform((0.0, -3.0), (3.0, 3.0), (20 * per_class, 2)).astype(np.float32)
    outside = np.hypot(*drawn.T) > RADIUS
    x = np.concatenate([drawn[~outside][:per_class], drawn[outside][:per_class]])
    return x, np.repeat([0, 1], per_class)


def make_network(members: int, noise: Sequence[nn.Module] | None) -> StackedMLP:
    """A stack of `members` networks."""
    return StackedMLP(members, SIZES, noise=noise)


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """(M,) mean cross entropy of (M, B, 2) logits with (M, B) classes."""
    return functional.cross_entropy(outputs.movedim(-1, 1), targets, reduction="none").mean(1)


def log_likelihood(targets: NDArray) -> Callable[[Any], Any]:
    """Of jax arrays (N, 2): logits."""

    def of(outputs: Any) -> Any:
        import jax

        return jax.nn.log_softmax(outputs)[np.arange(len(targets)), targets].sum()

    return of


def class_probability(outputs: NDArray) -> NDArray[np.float64]:
    """(P,) probability of class 0, averaged over the K sampled outputs (K, P, 2)."""
    return softmax(outputs.astype(np.float64), axis=-1).mean(0)[:, 0]


def map_divergence(p: NDArray, q: NDArray) -> float:
    """KL divergence between two maps of probabilities, each divided by its sum (their appendix B)."""
    return float(rel_entr(p / p.sum(), q / q.sum()).sum())


def bernoulli_divergence(p: NDArray, q: NDArray) -> float:
    """Mean over the points of the KL divergence between two Bernoulli distributions."""
    return float((rel_entr(p, q) + rel_entr(1 - p, 1 - q)).mean())


def distance(truth: NDArray, found: NDArray) -> dict[str, float]:
    """Distances of one map of the class-0 probability from another, (P,) both."""
    return {
        "KL of maps, [-6, 6]²": map_divergence(truth, found),
        "KL of maps, training region": map_divergence(truth[INSIDE], found[INSIDE]),
        "mean Bernoulli KL, [-6, 6]²": bernoulli_divergence(truth, found),
    }


def make_problem() -> Problem:
    """The problem with its data."""
    x, y = (torch.from_numpy(part) for part in make_data())
    steps = {"sgld": 0.05, "sghmc": 0.01}
    return Problem(
        x,
        y,
        torch.from_numpy(GRID),
        make_network,
        cross_entropy,
        0.2,
        steps,
        class_probability,
        distance,
    )


def probability_figure(drawn: dict[str, NDArray]) -> figures.Figure:
    """Maps of the class-0 probability with the training points, as the paper's second figure."""
    figure, axes = figures.panels(1, len(drawn), height=3.6, sharex=True, sharey=True)
    x, y = make_data()
    for axis, (name, outputs) in zip(axes.flat, drawn.items(), strict=True):
        probability = class_probability(outputs).reshape(len(AXIS), len(AXIS))
        shown = axis.imshow(
            probability, origin="lower", extent=(-6, 6, -6, 6), vmin=0, vmax=1, cmap="cividis"
        )
        axis.plot(*x[y == 0].T, ".", color="#0072B2", markersize=1)
        axis.plot(*x[y == 1].T, ".", color="#D55E00", markersize=1)
        axis.set(title=name, xlabel="x1", ylabel="x2")
    figure.colorbar(shown, ax=axes, label="probability of class 0")
    return figure


def run(output: Path, seeds: int, quick: bool) -> None:
    """Write table.md, table.csv, summary.json, kl.png, predictive.png; `seeds` ensembles, dropout networks and chains of each kind."""
    schedule = QUICK if quick else Schedule()
    problem = make_problem()
    x, y = make_data()
    posterior = posterior_predictions(output, SIZES, 1, log_likelihood(y), x, GRID, schedule.hmc)
    samples = pooled(posterior)
    found = compare(
        output, problem, schedule, seeds, class_probability(samples), "toy-classification"
    )
    report(
        output,
        found,
        schedule,
        seeds,
        quick,
        mixing(posterior, problem, softmax(posterior.predictions, axis=-1)[..., 0], INSIDE),
    )
    count = max(schedule.counts)
    torch.manual_seed(0)
    drawn = {
        f"ensemble, M = {count}": ensemble(problem, schedule, 0),
        f"MC-dropout, M = {count}": mc_dropout(problem, schedule, 0),
    }
    figures.save(probability_figure({"HMC": samples, **drawn}), output / "predictive.png")
