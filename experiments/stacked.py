# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Many small networks trained at once.

Their weights are stacked, and every layer is one batched matrix product. Inside the stack the
examples are the last axis, (M, units, N), which makes batched products of small matrices about
twice as fast.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

Objective = Callable[[Any, Tensor, Tensor], Tensor]
"""(network, inputs, targets) to the loss of each member."""


class StackedMLP(nn.Module):
    """`members` independent fully connected networks of the same shape.

    Args:
        members: number of networks M.
        sizes: units per layer, input and output included.
        activation: applied after each hidden layer.
        noise: one module per hidden layer, applied after its activation (dropout of any type);
            None applies nothing.
    """

    def __init__(
        self,
        members: int,
        sizes: Sequence[int],
        activation: Callable[[Tensor], Tensor] = torch.relu,
        noise: Sequence[nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.members = members
        self.activation = activation
        self.weights = nn.ParameterList(
            _uniform(members, fan_in, fan_out, fan_in)
            for fan_in, fan_out in itertools.pairwise(sizes)
        )
        self.biases = nn.ParameterList(
            _uniform(members, fan_in, fan_out, 1) for fan_in, fan_out in itertools.pairwise(sizes)
        )
        self.noise = nn.ModuleList(
            noise if noise is not None else [nn.Identity() for _ in sizes[1:-1]]
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (M, N, out) for (N, in) shared by all members, or (M, N, in)."""
        hidden = inputs.expand(len(self.weights[0]), *inputs.shape[-2:]).mT
        for noise, weight, bias in zip(self.noise, self.weights, self.biases, strict=False):
            hidden = noise(self.activation(_affine(bias, weight, hidden)))
        return _affine(self.biases[-1], self.weights[-1], hidden).mT

    def per_member(self, values: Tensor) -> Tensor:
        """Return (M,) values in the shape that the parameters broadcast with."""
        return values[:, None, None]


class PairedMLP(StackedMLP):
    """Pairs of networks, one for the mean, one for the log variance.

    Gustafsson et al. 2020, appendix B.
    """

    def __init__(
        self, members: int, sizes: Sequence[int], noise: Sequence[nn.Module] | None = None
    ) -> None:
        super().__init__(2 * members, sizes, noise=noise)
        self.members = members

    def forward(self, inputs: Tensor) -> Tensor:
        """Return mean and log variance (M, N, 2) for (N, in) or (M, N, in)."""
        pair_inputs = inputs if inputs.dim() == 2 else inputs.repeat(2, 1, 1)
        return super().forward(pair_inputs).view(2, self.members, -1).movedim(0, -1)

    def per_member(self, values: Tensor) -> Tensor:
        """Return (M,) values in the shape that the parameters broadcast with."""
        return super().per_member(values.repeat(2))


def _affine(bias: Tensor, weight: Tensor, hidden: Tensor) -> Tensor:
    """Return bias + weight @ hidden; vectors are multiplied elementwise, which is faster."""
    rows, columns = weight.shape[1:]
    if columns == 1:
        return torch.addcmul(bias, weight, hidden)
    if rows == 1:
        return bias + (weight.mT * hidden).sum(1, keepdim=True)
    return torch.baddbmm(bias, weight, hidden)


def _uniform(members: int, fan_in: int, rows: int, columns: int) -> nn.Parameter:
    """Draw initial values as `torch.nn.Linear` does."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(members, rows, columns).uniform_(-bound, bound))


def bootstrap_indices(size: int, members: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw one resample with replacement of `size` examples per member, (members, size).

    Breiman 1996.
    """
    return torch.randint(size, (members, size), generator=generator)


def train(
    network: StackedMLP,
    objective: Objective,
    inputs: Tensor,
    targets: Tensor,
    optimizer: torch.optim.Optimizer,
    *,
    epochs: int,
    batch_size: int,
    generator: torch.Generator,
    indices: Tensor | None = None,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
    label: str = "",
) -> Iterator[int]:
    """Train all members in parallel; yield the number of each finished epoch, from 1.

    Each member has its own shuffling. The members' losses are summed: no gradient crosses from one
    member to another.

    Args:
        network: the stack of M members.
        objective: (network, inputs (M, B, in), targets (M, B, ...)) to the losses (M,).
        inputs: (S, in) shared by all members, or (M, S, in).
        targets: (S, ...) or (M, S, ...), as the inputs.
        optimizer: over the network's parameters.
        epochs: passes over the data.
        batch_size: examples per step and member.
        generator: of the shuffling.
        indices: (M, S) examples each member trains on, e.g. bootstrap samples; None takes all.
        scheduler: stepped after each batch.
        label: name on the progress bar; empty shows none.
    """
    size = inputs.shape[-2]
    rows = torch.arange(network.members)[:, None]
    for epoch in tqdm(
        range(1, epochs + 1), desc=label, leave=False, disable=not label, mininterval=1.0
    ):
        network.train()
        # NumPy's argsort is four times as fast as torch's
        keys = torch.rand(network.members, size, generator=generator).numpy()
        order = torch.from_numpy(keys.argsort(1))
        order = order if indices is None else indices.gather(1, order)
        order_index = (order,) if inputs.dim() == 2 else (rows, order)
        input_batches = inputs[order_index].split(batch_size, 1)
        target_batches = targets[order_index].split(batch_size, 1)
        for x, y in zip(input_batches, target_batches, strict=True):
            optimizer.zero_grad(set_to_none=True)
            objective(network, x, y).sum().backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
        yield epoch
