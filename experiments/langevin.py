# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""SGLD and SGHMC as a torch optimizer, and chains of both on a toy problem.

A stack of networks is as many independent chains. Gustafsson et al. 2020, section 4.1 and appendix
B: 150 L epochs (L = 64 and 256; SGHMC's friction is 0.1) from a step size that falls to zero as a
polynomial of power 0.9, M samples evenly spaced over the last quarter of the epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.posterior_methods import (
    Problem,
    Schedule,
    falling,
    outputs,
    train_epochs,
)
from experiments.stacked import StackedMLP

FRICTIONS = {"sgld": 1.0, "sghmc": 0.1}


class SGHMC(torch.optim.Optimizer):
    """Stochastic gradient Hamiltonian Monte Carlo.

    Chen et al. 2014, eq. 15, with no estimate of the gradient noise:

    v <- (1 - friction) v - lr g + sqrt(2 friction lr / N) eps, theta <- theta + v, where g is the
    gradient of the negative log posterior divided by the number of examples N. A friction of 1
    loses all velocity in each step: stochastic gradient Langevin dynamics (SGLD, Welling and Teh
    2011, eq. 4).

    Args:
        params: the parameters to sample.
        lr: step size; a scheduler may lower it.
        data_size: the number of examples N.
        weight_decay: times the parameter, added to the gradient: 1 / (N v) for a prior N(0, v)
            that the loss leaves out.
        friction: fraction of the velocity lost in each step; a tensor that the parameters
            broadcast with gives each chain its own.
        scale: multiple of lr that is the step size; a tensor as for friction.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        data_size: int,
        weight_decay: float = 0.0,
        friction: float | Tensor = 0.1,
        scale: float | Tensor = 1.0,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "data_size": data_size,
                "weight_decay": weight_decay,
                "friction": friction,
                "scale": scale,
            },
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # computes no loss
        """Make one step of every parameter that has a gradient; `closure` is not called."""
        for group in self.param_groups:
            size = group["lr"] * group["scale"]
            damping = 1 - group["friction"]
            noise = (2 * group["friction"] * size / group["data_size"]) ** 0.5
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if "velocity" not in self.state[parameter]:
                    self.state[parameter]["velocity"] = torch.zeros_like(parameter)
                velocity = self.state[parameter]["velocity"].mul_(damping)
                gradient = torch.add(parameter.grad, parameter, alpha=group["weight_decay"])
                velocity.sub_(gradient.mul_(size))
                parameter.add_(velocity.add_(torch.randn_like(parameter).mul_(noise)))


def chains(
    problem: Problem, schedule: Schedule, length: int, repetitions: int
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Return type of chain to M to samples of independent chains, (repetitions, M, P, out).

    All chains of both types run stacked.
    """
    epochs = length * schedule.chain_unit
    epochs_of_counts = {count: sample_epochs(epochs, count) for count in schedule.counts}
    sampled_epochs = set().union(*epochs_of_counts.values())
    network = problem.make(len(FRICTIONS) * repetitions, None)
    optimizer = _sampler(problem, network, repetitions)
    scheduler = falling(optimizer, epochs, len(problem.inputs))
    samples = {}
    for epoch in train_epochs(
        problem, network, optimizer, scheduler, epochs, seed=length, label=f"chains-{length}"
    ):
        if epoch in sampled_epochs:
            values = outputs(network.eval(), problem.at)
            samples[epoch] = values.reshape(len(FRICTIONS), repetitions, len(problem.at), -1)
    return _by_friction(samples, epochs_of_counts)


def _sampler(problem: Problem, network: StackedMLP, repetitions: int) -> SGHMC:
    """Return the sampler of all types of chain, `repetitions` members of each."""
    size = len(problem.inputs)
    friction = torch.tensor([FRICTIONS[name] for name in FRICTIONS])
    step_size = torch.tensor([problem.step_sizes[name] for name in FRICTIONS])
    return SGHMC(
        network.parameters(),
        lr=1.0,
        data_size=size,
        weight_decay=1 / size,
        friction=network.per_member(friction.repeat_interleave(repetitions)),
        scale=network.per_member(step_size.repeat_interleave(repetitions)),
    )


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
    return np.linspace(0.75 * epochs, epochs, count).round().astype(int).tolist()
