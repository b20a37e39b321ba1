# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The six deep methods compared with the anchor: three of dropout, three of deep ensembles.

All train the same network, 128-64-32 with leaky ReLU, by Adam on the Gaussian likelihood with the
true standard deviation of the noise. Bernoulli and concrete dropout have the prior N(0, 1) on
their weights, variational dropout its own log-uniform one, and the ensembles none. The prediction
is the mean and the uncertainty the standard deviation of members or passes: epistemic only, since
it is compared with the error of the function. Each repetition is a network of the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.experiments.stacked import Objective, StackedMLP, bootstrap_indices, train
from uncertainty_depth.network.learned_dropout import ConcreteDropout, VariationalDropout
from uncertainty_depth.training.adversarial import with_adversarial_examples

HIDDEN = (128, 64, 32)
METHODS = {
    "bernoulli": "Bernoulli dropout",
    "concrete": "concrete dropout",
    "variational": "variational dropout",
    "ensemble": "deep ensemble",
    "adversarial": "adversarial ensemble",
    "bootstrap": "bootstrapped ensemble",
}


@dataclass(frozen=True)
class Settings:
    """Training and sampling of all networks."""

    members: int = 5
    passes: int = 100
    steps: int = 2000
    batch_size: int = 32
    learning_rate: float = 0.003
    dropout: float = 0.1
    adversarial_step: float = 0.01


def make_noise(method: str, networks: int, rate: float) -> list[nn.Module]:
    """Return the noise module of each hidden layer."""
    shape = (networks, 1, 1)
    if method == "bernoulli":
        return [nn.Dropout(rate) for _ in HIDDEN]
    if method == "concrete":
        return [ConcreteDropout(units, shape, rate) for units in HIDDEN]
    if method == "variational":
        return [VariationalDropout(units, shape, rate / (1 - rate)) for units in HIDDEN]
    return [nn.Identity() for _ in HIDDEN]


def divergence(method: str, network: StackedMLP, rate: float) -> Tensor:
    """Return the KL divergence of the weights from their prior, up to a constant, (networks,).

    It is 0 for members of an ensemble.
    """
    noises: list[Any] = list(network.noise)
    if method == "variational":
        return torch.stack([noise.divergence().flatten() for noise in noises]).sum(0)
    if method == "bernoulli":
        return (1 - rate) / 2 * network.squared_weights()
    if method == "concrete":
        total = network.weights[0].square().sum((1, 2), keepdim=True) / 2
        for noise, weight in zip(noises, network.weights[1:], strict=True):
            total = total + noise.divergence(weight.square().sum((1, 2), keepdim=True), 1.0)
        return total.flatten()
    return torch.zeros(network.members)


def make_objective(method: str, settings: Settings, sigma: Tensor, size: int) -> Objective:
    """Return the negative log likelihood per example, with the divergence divided by `size`.

    For the adversarial ensemble it is averaged over the examples and their adversarial ones.
    """

    def objective(network: Any, inputs: Tensor, targets: Tensor) -> Tensor:
        misfit = (network(inputs) - targets).square().mean((1, 2)) / (2 * sigma.square())
        return misfit + divergence(method, network, settings.dropout) / size

    step = 2 * settings.adversarial_step  # the inputs' range is [-1, 1]
    return with_adversarial_examples(objective, step) if method == "adversarial" else objective


def predict(
    method: str, settings: Settings, seed: int, x: Tensor, y: Tensor, sigma: Tensor, at: Tensor
) -> tuple[Tensor, Tensor]:
    """Train one model of the method per repetition and predict.

    Args:
        method: key of `METHODS`.
        settings: of training and sampling.
        seed: of initial weights, order, dropout and bootstrap.
        x: (R, N, dimension) training inputs, scaled to [-1, 1].
        y: (R, N, 1) training targets.
        sigma: (R,) the noise's standard deviation.
        at: (R, P, dimension) where to predict.

    Returns:
        Mean and standard deviation, (R, P) each.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    repetitions, size, dimension = x.shape
    copies = 1 if method in ("bernoulli", "concrete", "variational") else settings.members
    x = x.repeat_interleave(copies, dim=0)
    y = y.repeat_interleave(copies, dim=0)
    sigma = sigma.repeat_interleave(copies, dim=0)
    at = at.repeat_interleave(copies, dim=0)
    noise = make_noise(method, len(x), settings.dropout)
    network = StackedMLP(len(x), (dimension, *HIDDEN, 1), functional.leaky_relu, noise)
    indices = bootstrap_indices(size, len(x), generator) if method == "bootstrap" else None
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
    epochs = max(1, settings.steps // -(-size // settings.batch_size))
    for _ in train(
        network,
        make_objective(method, settings, sigma, size),
        x,
        y,
        optimizer,
        epochs=epochs,
        batch_size=settings.batch_size,
        generator=generator,
        indices=indices,
        label=method,
    ):
        pass
    with torch.no_grad():
        if copies > 1:
            members = network.eval()(at)[..., 0].unflatten(0, (repetitions, copies))
            samples = members.movedim(1, 0)
        else:
            samples = torch.stack([network.train()(at)[..., 0] for _ in range(settings.passes)])
    return samples.mean(0), samples.std(0, correction=0)
