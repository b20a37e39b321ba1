# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What both toy problems of Gustafsson et al. 2020 (section 4.1, appendix B) share: the methods, their schedules and the comparison.

Schedules as in the paper and its public code: Adam at 0.001 and batches of 32; ensembling 150 epochs without a prior; MC-dropout 300 epochs
with the prior N(0, I), dropout after the first hidden layer; SGLD and SGHMC (friction 0.1) 150 L epochs (L = 64 and 256) from a step size
that falls to zero as a polynomial of power 0.9, M samples evenly spaced over the last quarter of the epochs.
Reference: NUTS, 4 chains of 250 samples, each after 1,000 of warm-up from a start of its own (the paper: one of 1,000 samples), so that it
shows whether they agree.
What differs: ensemble members and chains are trained stacked, each repetition has an ensemble of its own (the paper deals 1,024 members
into groups), and the prior's gradient weighs the same against the likelihood in every method (the public code doubles it for MC-dropout
in the regression problem only together with the likelihood, which Adam does not see).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from uncertainty_depth.experiments.hmc import Budget, Posterior, split_r_hat
from uncertainty_depth.experiments.langevin import FRICTIONS, SGHMC
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.experiments.stacked import Objective, StackedMLP, train

HMC = Budget(chains=4, samples=250, warmup=1000, depth=10)


@dataclass(frozen=True)
class Schedule:
    """How long everything runs."""

    counts: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    ensemble_epochs: int = 150
    dropout_epochs: int = 300
    chain_lengths: tuple[int, ...] = (64, 256)
    chain_unit: int = 150
    hmc: Budget = HMC


QUICK = Schedule(
    (8, 16, 32, 64), 60, 120, (1,), 150, Budget(chains=2, samples=50, warmup=150, depth=8)
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
        step_sizes: where each kind of chain starts.
        predict: (K, P, out) sampled outputs to the prediction they make together, (P, ...).
        distance: the reference's prediction and another to named distances; the first is the paper's.
    """

    inputs: Tensor
    targets: Tensor
    at: Tensor
    make: Callable[[int, Sequence[nn.Module] | None], StackedMLP]
    loss: Callable[[Tensor, Tensor], Tensor]
    dropout: float
    step_sizes: dict[str, float]
    predict: Callable[[NDArray], NDArray]
    distance: Callable[[NDArray, NDArray], dict[str, float]]


def objective(problem: Problem) -> Objective:
    """The mean negative log likelihood of each member; the prior N(0, I) enters as weight decay 1 / N."""
    return lambda network, inputs, targets: problem.loss(network(inputs), targets)


@torch.no_grad()
def outputs(network: StackedMLP, at: Tensor) -> NDArray[np.float32]:
    """(M, P, out) outputs in the network's present mode, a few members' grid at a time."""
    return network(at).numpy()


def ensemble(problem: Problem, schedule: Schedule, seed: int) -> NDArray[np.float32]:
    """(greatest M, P, out): independently started members, maximum likelihood."""
    network = problem.make(max(schedule.counts), None)
    _train_adam(problem, network, 0.0, schedule.ensemble_epochs, seed)
    return outputs(network.eval(), problem.at)


def mc_dropout(problem: Problem, schedule: Schedule, seed: int) -> NDArray[np.float32]:
    """(greatest M, P, out): passes through one network with its dropout on."""
    network = problem.make(1, [nn.Dropout(problem.dropout), nn.Identity()])
    _train_adam(
        problem,
        network,
        (1 - problem.dropout) / len(problem.inputs),
        schedule.dropout_epochs,
        seed,
    )
    return outputs(network.train(), problem.at.repeat(max(schedule.counts), 1)).reshape(
        max(schedule.counts), len(problem.at), -1
    )


def _train_adam(
    problem: Problem, network: StackedMLP, weight_decay: float, epochs: int, seed: int
) -> None:
    optimizer = torch.optim.Adam(
        network.parameters(), lr=0.001, weight_decay=weight_decay, fused=True
    )
    options = {
        "epochs": epochs,
        "batch_size": 32,
        "generator": torch.Generator().manual_seed(seed),
        "label": "epochs",
    }
    for _ in train(
        network, objective(problem), problem.inputs, problem.targets, optimizer, **options
    ):
        pass


def chains(
    problem: Problem, schedule: Schedule, length: int, repetitions: int
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Kind to M to (repetitions, M, P, out): samples of independent chains; all of both kinds run stacked."""
    epochs = length * schedule.chain_unit
    size = len(problem.inputs)
    wanted = {count: sample_epochs(epochs, count) for count in schedule.counts}
    network = problem.make(len(FRICTIONS) * repetitions, None)
    friction, scale = (
        network.per_member(
            torch.tensor([values[kind] for kind in FRICTIONS]).repeat_interleave(repetitions)
        )
        for values in (FRICTIONS, problem.step_sizes)
    )
    optimizer = SGHMC(
        network.parameters(),
        lr=1.0,
        data_size=size,
        weight_decay=1 / size,
        friction=friction,
        scale=scale,
    )
    scheduler = torch.optim.lr_scheduler.PolynomialLR(
        optimizer, total_iters=epochs * -(-size // 32) + 1, power=0.9
    )
    options = {
        "epochs": epochs,
        "batch_size": 32,
        "generator": torch.Generator().manual_seed(length),
        "label": f"chains-{length}",
    }
    keep = set().union(*wanted.values())
    kept = {
        epoch: outputs(network.eval(), problem.at).reshape(
            len(FRICTIONS), repetitions, len(problem.at), -1
        )
        for epoch in train(
            network,
            objective(problem),
            problem.inputs,
            problem.targets,
            optimizer,
            scheduler=scheduler,
            **options,
        )
        if epoch in keep
    }
    long_enough = {count: chosen for count, chosen in wanted.items() if len(set(chosen)) == count}
    return {
        kind: {
            count: np.stack([kept[epoch][number] for epoch in chosen], axis=1)
            for count, chosen in long_enough.items()
        }
        for number, kind in enumerate(FRICTIONS)
    }


def sample_epochs(epochs: int, count: int) -> list[int]:
    """`count` epochs spaced evenly from three quarters of the way to the end."""
    return [round(epoch) for epoch in np.linspace(0.75 * epochs, epochs, count)]


def pieces(schedule: Schedule, seeds: int) -> list[str]:
    """`method_seed` for each repetition of ensembling and MC-dropout, `chains-length_repetitions` for all chains of a length."""
    repeated = [
        f"{method}_{seed:03d}" for method in ("ensemble", "mc_dropout") for seed in range(seeds)
    ]
    return repeated + [f"chains-{length}_{seeds:03d}" for length in schedule.chain_lengths]


def compute(
    name: str, problem: Problem, schedule: Schedule
) -> dict[str, dict[int, list[NDArray]]]:
    """The predictions of one piece: method to M to one prediction per repetition."""
    kind, _, number = name.rpartition("_")
    torch.manual_seed(int(number))
    if kind in ("ensemble", "mc_dropout"):
        drawn = {"ensemble": ensemble, "mc_dropout": mc_dropout}[kind](
            problem, schedule, int(number)
        )
        return {kind: {count: [problem.predict(drawn[:count])] for count in schedule.counts}}
    length = kind.removeprefix("chains-")
    found = chains(problem, schedule, int(length), int(number))
    return {
        f"{method}-{length}": {
            count: [problem.predict(part) for part in parts] for count, parts in sampled.items()
        }
        for method, sampled in found.items()
    }


def compare(
    output: Path, problem: Problem, schedule: Schedule, seeds: int, truth: NDArray, label: str
) -> dict[str, dict[int, dict[str, list[float]]]]:
    """Run or resume every piece; method to M to distance from the reference's prediction `truth` to one value per repetition."""
    settings = {
        key: value
        for key, value in asdict(schedule).items()
        if key not in ("chain_lengths", "hmc")
    }  # the names tell the lengths apart
    results = resume(
        output / "results",
        pieces(schedule, seeds),
        settings,
        lambda name: compute(name, problem, schedule),
        label,
    )
    table: dict[str, dict[int, dict[str, list[float]]]] = {}
    for method, counts in (item for result in results for item in result.items()):
        for count, repetitions in counts.items():
            cell = table.setdefault(method, {}).setdefault(int(count), {})
            for prediction in repetitions:
                for name, value in _distances(
                    problem, truth, np.array(prediction, dtype=float)
                ).items():
                    cell.setdefault(name, []).append(value)
    return table


def _distances(problem: Problem, truth: NDArray, found: NDArray) -> dict[str, float]:
    """NaN for a chain that ran off."""
    return (
        problem.distance(truth, found)
        if np.isfinite(found).all()
        else dict.fromkeys(problem.distance(truth, truth), np.nan)
    )


def pooled(posterior: Posterior) -> NDArray[np.float32]:
    """(chains * samples, P, out)."""
    return posterior.predictions.reshape(-1, *posterior.predictions.shape[2:])


def mixing(
    posterior: Posterior, problem: Problem, values: NDArray, inside: NDArray[np.bool_]
) -> dict[str, Any]:
    """Whether the HMC reference can be trusted.

    Args:
        posterior: of two chains or more.
        problem: tells the distances.
        values: (chains, samples, P, ...) what the predictions are made of.
        inside: (P,) which points lie among the training points.

    Returns:
        floor: distances of the second half of the chains from the first; what lies below says nothing. R-hat of the energy and, as median and
        greatest over the points inside and outside, of `values`; how many samples diverged; gradients per sample.
    """
    drawn = pooled(posterior)
    r_hat = split_r_hat(values)
    half = len(posterior.predictions) // 2 * posterior.predictions.shape[1]
    return {
        "floor": problem.distance(problem.predict(drawn[:half]), problem.predict(drawn[half:])),
        "energy": float(split_r_hat(posterior.energy)),
        "inside": [float(np.median(r_hat[inside])), float(r_hat[inside].max())],
        "outside": [float(np.median(r_hat[~inside])), float(r_hat[~inside].max())],
        "diverged": int(posterior.diverging.sum()),
        "steps": float(posterior.steps.mean()),
    }
