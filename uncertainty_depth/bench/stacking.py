# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether the networks of an ensemble train faster stacked than in a loop.

One step of each of four networks, and one step of the four stacked, every layer once for all: a
convolution of stacked weights is a grouped convolution (`torch.func`). Both with one thread and in
float32: autocast does not reach into the stacked network.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from uncertainty_depth.bench.rounds import alternate
from uncertainty_depth.bench.trainee import CHANNELS_LAST, Row, make_optimizer
from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.hourglass import Hourglass

MEMBERS = 4


def run(rounds: int, network: NetworkConfig, batch: int) -> Row:
    """Time a step of `batch` frames per network, each way."""
    networks = [Hourglass(network).train() for _ in range(MEMBERS)]
    width, height = network.input_size
    images = torch.rand(MEMBERS, batch, 3, height, width)
    depth_m = 1 + 9 * torch.rand(MEMBERS, batch, 1, height, width)
    loop = Loop(networks)
    stacked = Stacked(networks)
    calls = {
        "loop": partial(loop.step, images, depth_m),
        "stacked": partial(stacked.step, images, depth_m),
    }
    return Row.of(alternate(calls, rounds, description="stacking"), "loop", "stacked")


class Loop:
    """Networks trained each by itself."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.networks = [copy.deepcopy(network).to(**CHANNELS_LAST) for network in networks]
        self.optimizers = [make_optimizer(network.parameters()) for network in self.networks]

    def step(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """Train on a batch for each network and return the losses before the step, (M,).

        Args:
            images: (M, B, 3, h, w).
            depth_m: (M, B, 1, h, w), metres.
        """
        values = []
        for network, optimizer, *batch in zip(
            self.networks, self.optimizers, images, depth_m, strict=True
        ):
            values.append(_loss(network(batch[0]).depth_m, batch[1]))
            _descend(optimizer, values[-1])
        return torch.stack(values).detach()


class Stacked:
    """The same networks as one, every weight stacked."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self.template = copy.deepcopy(networks[0]).to("meta")
        self.weights, self.buffers = stack_module_state(list(networks))
        self.optimizer = make_optimizer(self.weights.values())

    def step(self, images: Tensor, depth_m: Tensor) -> Tensor:
        """As that of `Loop`; dropout differs between the networks here too."""
        values = vmap(self._loss, randomness="different")(
            self.weights, self.buffers, images, depth_m
        )
        _descend(self.optimizer, values.sum())
        return values.detach()

    def _loss(
        self,
        weights: dict[str, Tensor],
        buffers: dict[str, Tensor],
        images: Tensor,
        depth_m: Tensor,
    ) -> Tensor:
        return _loss(
            functional_call(self.template, (weights, buffers), (images,)).depth_m, depth_m
        )


def _loss(depth_m: Tensor, truth_m: Tensor) -> Tensor:
    """Return the mean log-L1 error: the loss of training picks pixels, which vmap cannot."""
    return (depth_m.log() - truth_m.log()).abs().mean()


def _descend(optimizer: torch.optim.Optimizer, value: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    optimizer.step()
