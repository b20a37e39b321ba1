# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A toy problem, and ensembling and MC-dropout on it.

As in Gustafsson et al. 2020, section 4.1 and appendix B, and their public code: Adam at 0.001,
batches of 32, and the prior N(0, I) in the objective (MAP); ensembling 150 epochs; MC-dropout 300,
with dropout after the first hidden layer and the prior times 1 - p, as in the code. Both also by
SGD and by SGD with momentum 0.9 (figures 10 and 11), at a rate that falls to zero as a polynomial
of power 0.9 and with a dropout of 0.2, as in the code, and MC-dropout at other rates (figure 13).

Ensemble members are trained stacked, and each repetition has its own ensemble; the paper divides
1,024 members into groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.hmc import Budget
from experiments.stacked import StackedMLP, train

SGD = "sgd"
MOMENTUM = "sgdm"
"""SGD with momentum."""
SGD_DROPOUT = 0.2
"""Rate of MC-dropout that either trains, in the public code."""
BATCH = 32
HMC = Budget(chains=4, samples=250, warmup=1000, depth=10)

PolynomialLR = torch.optim.lr_scheduler.PolynomialLR


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
    for _ in train_epochs(problem, network, optimizer, scheduler, epochs, seed, label="epochs"):
        pass


def falling(optimizer: torch.optim.Optimizer, epochs: int, size: int) -> PolynomialLR:
    """Return the schedule of a rate that falls to zero as a polynomial of power 0.9."""
    steps = epochs * -(-size // BATCH)
    return PolynomialLR(optimizer, total_iters=steps + 1, power=0.9)


def train_epochs(
    problem: Problem,
    network: StackedMLP,
    optimizer: torch.optim.Optimizer,
    scheduler: PolynomialLR | None,
    epochs: int,
    seed: int,
    label: str,
) -> Iterator[int]:
    """Train, and yield each epoch after it; the prior N(0, I) is the optimizer's weight decay."""

    def objective(network: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return problem.loss(network(inputs), targets)

    return train(
        network,
        objective,
        problem.inputs,
        problem.targets,
        optimizer,
        scheduler=scheduler,
        epochs=epochs,
        batch_size=BATCH,
        generator=torch.Generator().manual_seed(seed),
        label=label,
    )


@torch.no_grad()
def outputs(network: StackedMLP, at: Tensor) -> NDArray[np.float32]:
    """Return the outputs in the network's present mode, (M, P, out)."""
    return network(at).numpy()
