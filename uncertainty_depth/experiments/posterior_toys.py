# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Methods, schedules and comparison of both toy problems of Gustafsson et al. 2020.

Section 4.1 and appendix B. Schedules as in the paper and its public code: Adam at 0.001, batches
of 32, and the prior N(0, I) in the objective (MAP); ensembling 150 epochs; MC-dropout 300, with
dropout after the first hidden layer and the prior times 1 - p, as in the code. Both also by SGD
and by SGD with momentum 0.9 (figures 10 and 11), at a rate that falls to zero as a polynomial of
power 0.9 and with a dropout of 0.2, as in the code, and MC-dropout at other rates (figure 13).
SGLD and SGHMC (friction 0.1) 150 L epochs (L = 64 and 256) from a step size that falls in the same
way, M samples evenly spaced over the last quarter of the epochs.

Reference: NUTS, 4 chains of 250 samples, each after 1,000 of warm-up from its own start (the
paper: one of 1,000 samples), so that their agreement can be tested.

What differs: ensemble members and chains are trained stacked, each repetition has its own ensemble
(the paper divides 1,024 members into groups), and the distance is D(HMC || method), as the public
code computes it, where the paper writes D(method || HMC).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.experiments.hmc import Budget, Posterior, split_r_hat
from uncertainty_depth.experiments.langevin import FRICTIONS, SGHMC
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.experiments.stacked import Objective, StackedMLP, train

Distances = dict[str, dict[int, dict[str, list[float]]]]
"""Method to M to distance to one value per repetition."""
ENSEMBLE = "ensemble"
MC_DROPOUT = "mc_dropout"
SGD = "sgd"
MOMENTUM = "sgdm"
"""SGD with momentum."""
SGD_DROPOUT = 0.2
"""Rate of MC-dropout that either trains, in the public code."""
BATCH = 32
EXAMPLES = 5
"""Predictions of each method that are drawn (figures 14 to 21)."""
EXAMPLE_SAMPLES = 64
HMC = Budget(chains=4, samples=250, warmup=1000, depth=10)


@dataclass(frozen=True)
class Schedule:
    """Length of trainings, chains and reference; optimizers, of which "" is Adam."""

    counts: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    ensemble_epochs: int = 150
    dropout_epochs: int = 300
    chain_lengths: tuple[int, ...] = (64, 256)
    chain_unit: int = 150
    hmc: Budget = HMC
    optimizers: tuple[str, ...] = ("", SGD, MOMENTUM)


QUICK = Schedule(
    (8, 16, 32, 64),
    60,
    120,
    chain_lengths=(1,),
    hmc=Budget(chains=2, samples=50, warmup=150, depth=8),
)


@dataclass(frozen=True)
class Problem:
    """One toy problem.

    Attributes:
        inputs: (N, in) training inputs.
        targets: (N, ...) training targets.
        at: (P, in) where predictions are compared.
        make: (members, noise modules or None) to a stack of networks.
        loss: (outputs (M, B, out), targets (M, B, ...)) to the mean negative log likelihood (M,).
        dropout: the rate of MC-dropout.
        other_dropouts: further rates, trained by Adam.
        step_sizes: initial step size of each type of chain.
        learning_rates: initial rate of `SGD` and of `MOMENTUM`, for this `loss`.
        predict: (K, P, out) sampled outputs to their joint prediction, (P, ...).
        distance: of a prediction from the reference's, by name; the first is the paper's.
    """

    inputs: Tensor
    targets: Tensor
    at: Tensor
    make: Callable[[int, Sequence[nn.Module] | None], StackedMLP]
    loss: Callable[[Tensor, Tensor], Tensor]
    dropout: float
    other_dropouts: tuple[float, ...]
    step_sizes: dict[str, float]
    learning_rates: dict[str, float]
    predict: Callable[[NDArray], NDArray]
    distance: Callable[[NDArray, NDArray], dict[str, float]]


def objective(problem: Problem) -> Objective:
    """Return the objective: the mean negative log likelihood of each member.

    The prior N(0, I) is a weight decay of 1 / N.
    """
    return lambda network, inputs, targets: problem.loss(network(inputs), targets)


@torch.no_grad()
def outputs(network: StackedMLP, at: Tensor) -> NDArray[np.float32]:
    """Return the outputs in the network's present mode, (M, P, out)."""
    return network(at).numpy()


def ensemble(
    problem: Problem, schedule: Schedule, seed: int, optimizer: str = ""
) -> NDArray[np.float32]:
    """Return outputs of independent members of maximum posterior, (max M, P, out)."""
    network = problem.make(max(schedule.counts), None)
    weight_decay = 1 / len(problem.inputs)
    fit(problem, network, weight_decay, schedule.ensemble_epochs, seed, optimizer)
    return outputs(network.eval(), problem.at)


def mc_dropout(
    problem: Problem, schedule: Schedule, seed: int, optimizer: str = "", rate: float | None = None
) -> NDArray[np.float32]:
    """Return outputs of passes through one network with its dropout on, (max M, P, out)."""
    if rate is None:
        rate = SGD_DROPOUT if optimizer else problem.dropout
    network = problem.make(1, [nn.Dropout(rate), nn.Identity()])
    weight_decay = (1 - rate) / len(problem.inputs)
    fit(problem, network, weight_decay, schedule.dropout_epochs, seed, optimizer)
    passes = max(schedule.counts)
    samples = outputs(network.train(), problem.at.repeat(passes, 1))
    return samples.reshape(passes, len(problem.at), -1)


def fit(
    problem: Problem,
    network: StackedMLP,
    weight_decay: float,
    epochs: int,
    seed: int,
    optimizer_name: str = "",
) -> None:
    """Train a stack of networks by Adam, `SGD` or `MOMENTUM`."""
    scheduler = None
    optimizer: torch.optim.Optimizer
    if optimizer_name:
        optimizer = torch.optim.SGD(
            network.parameters(),
            lr=problem.learning_rates[optimizer_name],
            momentum=0.9 if optimizer_name == MOMENTUM else 0.0,
            weight_decay=weight_decay,
        )
        scheduler = falling(optimizer, epochs, len(problem.inputs))
    else:
        optimizer = torch.optim.Adam(
            network.parameters(), lr=0.001, weight_decay=weight_decay, fused=True
        )
    for _ in train(
        network,
        objective(problem),
        problem.inputs,
        problem.targets,
        optimizer,
        scheduler=scheduler,
        epochs=epochs,
        batch_size=BATCH,
        generator=torch.Generator().manual_seed(seed),
        label="epochs",
    ):
        pass


def falling(
    optimizer: torch.optim.Optimizer, epochs: int, size: int
) -> torch.optim.lr_scheduler.PolynomialLR:
    """Return the schedule of a rate that falls to zero as a polynomial of power 0.9."""
    steps = epochs * -(-size // BATCH)
    return torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps + 1, power=0.9)


def chains(
    problem: Problem, schedule: Schedule, length: int, repetitions: int
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Return type of chain to M to samples of independent chains, (repetitions, M, P, out).

    All chains of both types run stacked.
    """
    epochs = length * schedule.chain_unit
    size = len(problem.inputs)
    epochs_of_counts = {count: sample_epochs(epochs, count) for count in schedule.counts}
    network = problem.make(len(FRICTIONS) * repetitions, None)
    friction = torch.tensor([FRICTIONS[name] for name in FRICTIONS])
    step_size = torch.tensor([problem.step_sizes[name] for name in FRICTIONS])
    optimizer = SGHMC(
        network.parameters(),
        lr=1.0,
        data_size=size,
        weight_decay=1 / size,
        friction=network.per_member(friction.repeat_interleave(repetitions)),
        scale=network.per_member(step_size.repeat_interleave(repetitions)),
    )
    scheduler = falling(optimizer, epochs, size)
    sampled_epochs = set().union(*epochs_of_counts.values())
    samples = {}
    for epoch in train(
        network,
        objective(problem),
        problem.inputs,
        problem.targets,
        optimizer,
        scheduler=scheduler,
        epochs=epochs,
        batch_size=BATCH,
        generator=torch.Generator().manual_seed(length),
        label=f"chains-{length}",
    ):
        if epoch in sampled_epochs:
            values = outputs(network.eval(), problem.at)
            samples[epoch] = values.reshape(len(FRICTIONS), repetitions, len(problem.at), -1)
    return _by_friction(samples, epochs_of_counts)


def _by_friction(
    samples: Mapping[int, NDArray[np.float32]], epochs_of_counts: Mapping[int, Sequence[int]]
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Return type of chain to M to samples; M of which the chain is too short are left out."""
    by_type: dict[str, dict[int, NDArray[np.float32]]] = {name: {} for name in FRICTIONS}
    for count, count_epochs in epochs_of_counts.items():
        is_long_enough = len(set(count_epochs)) == count
        if is_long_enough:
            stacked = np.stack([samples[epoch] for epoch in count_epochs], axis=2)
            for number, name in enumerate(FRICTIONS):
                by_type[name][count] = stacked[number]
    return by_type


def sample_epochs(epochs: int, count: int) -> list[int]:
    """Return `count` epochs spaced evenly over the last quarter."""
    return [round(epoch) for epoch in np.linspace(0.75 * epochs, epochs, count)]


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
    kind, _, variant = method.partition("-")
    if kind == ENSEMBLE:
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
    """What all pieces gave.

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
    drawn = min(EXAMPLE_SAMPLES, max(schedule.counts))
    for result in results:
        for method, by_count in result.items():
            of_method = compared.distances.setdefault(method, {})
            for count, predictions in by_count.items():
                cell = of_method.setdefault(int(count), {})
                _add_distances(cell, problem, truth, predictions)
                if int(count) == drawn:
                    arrays = [np.array(one, dtype=float) for one in predictions]
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


def pooled(posterior: Posterior) -> NDArray[np.float32]:
    """Return the predictions of all chains, (chains * samples, P, out)."""
    return posterior.predictions.reshape(-1, *posterior.predictions.shape[2:])


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
    samples = pooled(posterior)
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
