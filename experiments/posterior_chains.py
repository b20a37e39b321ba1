# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""SGLD and SGHMC on a toy problem, after Gustafsson et al. 2020, section 4.1 and appendix B.

150 L epochs (L = 64 and 256; SGHMC's friction is 0.1) from a step size that falls to zero as a
polynomial of power 0.9, M samples evenly spaced over the last quarter of the epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.langevin import FRICTIONS, SGHMC
from experiments.posterior_methods import (
    Problem,
    Schedule,
    falling,
    outputs,
    train_epochs,
)
from experiments.stacked import StackedMLP


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
