# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Comparison of scalable methods with the true posterior on two toy problems.

Gustafsson et al. 2020, section 4.1 and appendix B. The distance is D(HMC || method), as the public
code computes it, where the paper writes D(method || HMC). The reference is four NUTS chains of 250
samples (the paper: one of 1,000), so that their agreement can be tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.hmc import Posterior, split_r_hat
from experiments.langevin import chains
from experiments.posterior_methods import Problem, Schedule, ensemble, mc_dropout
from experiments.runner import resume

Distances = dict[str, dict[int, dict[str, list[float]]]]
"""Method to M to distance to one value per repetition."""
ENSEMBLE = "ensemble"
MC_DROPOUT = "mc_dropout"
EXAMPLES = 5
"""Predictions of each method that are drawn (figures 14 to 21)."""
EXAMPLE_SAMPLES = 64


def methods(problem: Problem, schedule: Schedule) -> list[str]:
    """Return the names of ensembling and MC-dropout in all their variants."""
    names = []
    for optimizer in schedule.optimizers:
        suffix = f"-{optimizer}" if optimizer else ""
        names += [f"{ENSEMBLE}{suffix}", f"{MC_DROPOUT}{suffix}"]
    return names + [f"{MC_DROPOUT}-{rate:g}" for rate in problem.other_dropouts]


def pieces(problem: Problem, schedule: Schedule, seeds: int) -> list[str]:
    """Return the names of all pieces of work.

    `method_seed` for each repetition of `methods`, and `chains-length_repetitions` for all chains
    of a length.
    """
    names = []
    for method in methods(problem, schedule):
        names += [f"{method}_{seed:03d}" for seed in range(seeds)]
    return names + [f"chains-{length}_{seeds:03d}" for length in schedule.chain_lengths]


def sampled(problem: Problem, schedule: Schedule, method: str, seed: int) -> NDArray[np.float32]:
    """Return the outputs of one of `methods`, (max M, P, out)."""
    family, _, variant = method.partition("-")
    if family == ENSEMBLE:
        return ensemble(problem, schedule, seed, variant)
    if variant in problem.learning_rates or not variant:
        return mc_dropout(problem, schedule, seed, variant)
    return mc_dropout(problem, schedule, seed, rate=float(variant))


def compute(
    name: str, problem: Problem, schedule: Schedule
) -> dict[str, dict[int, list[NDArray]]]:
    """Return the predictions of one piece: method to M to one prediction per repetition."""
    method, _, number = name.rpartition("_")
    torch.manual_seed(int(number))
    if not method.startswith("chains"):
        samples = sampled(problem, schedule, method, int(number))
        return {method: {count: [problem.predict(samples[:count])] for count in schedule.counts}}
    length = method.removeprefix("chains-")
    predictions: dict[str, dict[int, list[NDArray]]] = {}
    for chain_type, by_count in chains(problem, schedule, int(length), int(number)).items():
        of_type = predictions.setdefault(f"{chain_type}-{length}", {})
        for count, repetitions in by_count.items():
            of_type[count] = [problem.predict(repetition) for repetition in repetitions]
    return predictions


class Comparison(NamedTuple):
    """Results of all pieces.

    Attributes:
        distances: from the reference.
        examples: method to the predictions of its repetitions, of `EXAMPLE_SAMPLES` samples.
    """

    distances: Distances
    examples: dict[str, list[NDArray[np.float64]]]


def compare(
    output: Path, problem: Problem, schedule: Schedule, seeds: int, truth: NDArray, label: str
) -> Comparison:
    """Run or resume all pieces; compare them with the reference's prediction `truth`."""
    settings = {
        **asdict(schedule),
        "objective": "MAP",
        "dropout": problem.dropout,
        "learning_rates": problem.learning_rates,
    }
    for name in ("chain_lengths", "optimizers", "hmc"):  # in the names of the pieces
        del settings[name]
    results = resume(
        output / "results",
        pieces(problem, schedule, seeds),
        settings,
        lambda name: compute(name, problem, schedule),
        label,
    )
    compared = Comparison({}, {})
    example_count = min(EXAMPLE_SAMPLES, max(schedule.counts))
    for result in results:
        for method, by_count in result.items():
            of_method = compared.distances.setdefault(method, {})
            for count, predictions in by_count.items():
                cell = of_method.setdefault(int(count), {})
                _add_distances(cell, problem, truth, predictions)
                if int(count) == example_count:
                    arrays = [np.array(prediction, dtype=float) for prediction in predictions]
                    compared.examples.setdefault(method, []).extend(arrays)
    return compared


def _add_distances(
    cell: dict[str, list[float]], problem: Problem, truth: NDArray, predictions: Sequence[Any]
) -> None:
    """Add the distances of each prediction; NaN for a chain that diverged."""
    for prediction in predictions:
        values = np.array(prediction, dtype=float)
        if np.isfinite(values).all():
            distances = problem.distance(truth, values)
        else:
            distances = dict.fromkeys(problem.distance(truth, truth), np.nan)
        for name, value in distances.items():
            cell.setdefault(name, []).append(value)


def mixing(
    posterior: Posterior, problem: Problem, values: NDArray, inside: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return diagnostics of the HMC reference.

    Args:
        posterior: of two chains or more.
        problem: has the distances.
        values: (chains, samples, P, ...) that the predictions are computed from.
        inside: (P,) which points are among the training points.

    Returns:
        floor: distances of the second half of the chains from the first, below which differences
        say nothing. R-hat of the energy, and of `values` as median and max over the points inside
        and outside. Number of diverged samples, and gradients per sample.
    """
    samples = posterior.pooled()
    r_hat = split_r_hat(values)
    half = len(posterior.predictions) // 2 * posterior.predictions.shape[1]
    return {
        "floor": problem.distance(
            problem.predict(samples[:half]), problem.predict(samples[half:])
        ),
        "energy": float(split_r_hat(posterior.energy)),
        "inside": [float(np.median(r_hat[inside])), float(r_hat[inside].max())],
        "outside": [float(np.median(r_hat[~inside])), float(r_hat[~inside].max())],
        "diverged": int(posterior.diverging.sum()),
        "steps": float(posterior.steps.mean()),
    }
