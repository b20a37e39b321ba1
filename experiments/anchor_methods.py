# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The six deep methods compared with the anchor: three of dropout, three of deep ensembles.

As section 3 of Schmähling et al. 2021 has them: 128-64-32 units with leaky ReLU, Xavier's initial
weights, dropout on the last hidden layer, Adam at 0.01, 300 c epochs, the whole training set as a
batch. The noise's standard
deviation is known, so the objective is the Gaussian likelihood. The prediction is the mean and the
uncertainty the standard deviation of members or passes: epistemic only.

The bootstrap can be read in two ways, and both are rows. `bootstrap` draws two halves of the
training set anew in each epoch, so every member sees all points sooner or later. `once` draws N/2
points for each member before its training, with replacement: the usual bootstrap.

The text's "L2 regularization of 1 / N" is read against the sum of the likelihood over the N
points, the same for all methods. Against its mean, as it stands, a network does not fit its
training data; the ensemble `literal` is trained so, to show it. Learned dropout adds its
divergence, which belongs to the sum of the likelihood too. Each repetition is a network of the
stack, or several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.learned_dropout import ConcreteDropout, VariationalDropout
from experiments.stacked import Objective, StackedMLP

HIDDEN = (128, 64, 32)
SLOPE = 0.01
METHOD_TITLES = {
    "bernoulli": "Bernoulli dropout (BD)",
    "concrete": "concrete dropout (CD)",
    "variational": "variational dropout (VD)",
    "ensemble": "deep ensemble (Ens)",
    "adversarial": "adversarial ensemble (EnsAdvA)",
    "bootstrap": "EnsBS, drawn anew in each epoch",
    "once": "EnsBS, drawn once per member",
    "literal": "deep ensemble, L2 as it stands",
}
DROPOUTS = ("bernoulli", "concrete", "variational")
FEWER = ("adversarial", "literal")
"""Ensembles with a third of the members: three times the cost, and one that does not fit."""


@dataclass(frozen=True)
class Settings:
    """Training and sampling of all networks.

    Attributes:
        members: of an ensemble; the paper has 120. `FEWER` get a third, but at least three.
        passes: of a network with dropout; the paper names no number.
        epochs: per unit of a problem's level c.
        learning_rate: of Adam.
        dropout: its rate, at the start if it is learned; the paper names none.
        adversarial_step: as a fraction of the width of the training box, after Lakshminarayanan et
            al. 2017; the paper names none.
    """

    members: int = 30
    passes: int = 100
    epochs: int = 300
    learning_rate: float = 0.01
    dropout: float = 0.1
    adversarial_step: float = 0.01


def make_noise(method: str, networks: int, rate: float) -> list[nn.Module]:
    """Return the noise module of each hidden layer; only the last one has any."""
    shape = (networks, 1, 1)
    last: nn.Module = nn.Identity()
    if method == "bernoulli":
        last = nn.Dropout(rate)
    if method == "concrete":
        last = ConcreteDropout(HIDDEN[-1], shape, rate)
    if method == "variational":
        last = VariationalDropout(HIDDEN[-1], shape, rate / (1 - rate))
    return [nn.Identity(), nn.Identity(), last]


def make_network(method: str, settings: Settings, networks: int, dimension: int) -> StackedMLP:
    """Return the stack with Xavier's initial weights (Glorot and Bengio 2010) and zero biases."""
    noise = make_noise(method, networks, settings.dropout)
    network = StackedMLP(networks, (dimension, *HIDDEN, 1), _activation, noise)
    with torch.no_grad():
        for weight in network.weights:
            bound = math.sqrt(6 / sum(weight.shape[1:]))
            weight.uniform_(-bound, bound)
        for bias in network.biases:
            bias.zero_()
    return network


def _activation(values: Tensor) -> Tensor:
    return functional.leaky_relu(values, SLOPE)


def penalty(method: str, network: StackedMLP, size: int) -> Tensor:
    """Return what is added to the mean negative log likelihood of N = `size` points, (M,).

    Half the squared weights, times 1 / N against the sum of the likelihood (`literal`: against
    its mean), and the divergence of a learned rate, which holds the weights behind it.
    """
    squares = [weight.square().sum((1, 2)) for weight in network.weights]
    weight = 1 / size if method == "literal" else 1 / size**2
    last: Any = network.noise[-1]
    if method == "concrete":
        divergence = last.divergence(squares.pop()[:, None, None], 1.0).flatten()
    elif method == "variational":
        divergence = last.divergence().flatten()
    else:
        divergence = torch.zeros(len(squares[0]))
    return weight * sum(squares) / 2 + divergence / size


def make_objective(
    method: str, settings: Settings, noise: float, size: int, width: float
) -> Objective:
    """Return the negative log likelihood per example, with the penalty.

    For the adversarial ensemble it is averaged over the examples and their adversarial ones.

    Args:
        method: key of `METHOD_TITLES`.
        settings: has the adversarial step.
        noise: standard deviation of the targets.
        size: training points N.
        width: of the training box.
    """

    def objective(network: Any, inputs: Tensor, targets: Tensor) -> Tensor:
        misfit = (network(inputs) - targets).square().mean((1, 2)) / (2 * noise**2)
        return misfit + penalty(method, network, size)

    step = settings.adversarial_step * width
    return with_adversarial_examples(objective, step) if method == "adversarial" else objective


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Compute without denormal numbers: weights near zero would cost three times the time."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)  # NumPy would round them to zero too


@flushed_denormals()
def predict(
    method: str,
    settings: Settings,
    x: Tensor,
    y: Tensor,
    noise: float,
    at: Tensor,
    epochs: int,
    width: float,
) -> Tensor:
    """Train one model of the method per repetition and predict with each member or pass.

    Args:
        method: key of `METHOD_TITLES`.
        settings: of training and sampling.
        x: (N, dimension) training inputs.
        y: (R, N) training targets of each repetition.
        noise: the standard deviation of the targets' noise.
        at: (P, dimension) where to predict.
        epochs: passes over the training data.
        width: of the training box.

    Returns:
        Predictions (R, M, P) of the M members or passes.
    """
    torch.manual_seed(0)
    copies = members(method, settings)
    targets = y.repeat_interleave(copies, dim=0)[..., None]
    network = make_network(method, settings, len(targets), x.shape[1])
    objective = make_objective(method, settings, noise, len(x), width)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, fused=True)
    inputs = x.expand(len(targets), *x.shape)
    if method == "once":
        inputs, targets = _resampled(inputs, targets, len(x) // 2)
    for _ in range(epochs):
        for batch_inputs, batch_targets in _batches(method, inputs, targets):
            optimizer.zero_grad(set_to_none=True)
            objective(network, batch_inputs, batch_targets).sum().backward()
            optimizer.step()
    with torch.no_grad():
        if method not in DROPOUTS:
            outputs: Tensor = network.eval()(at)
            return outputs[..., 0].unflatten(0, (len(y), copies))
        passes = [network.train()(at)[..., 0] for _ in range(settings.passes)]
        return torch.stack(passes, 1)


def members(method: str, settings: Settings) -> int:
    """Return the number of networks that are trained for one repetition."""
    if method in DROPOUTS:
        return 1
    return max(settings.members // 3, 3) if method in FEWER else settings.members


def _resampled(inputs: Tensor, targets: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return `size` points of each network, drawn with replacement."""
    rows = torch.arange(len(targets))[:, None]
    drawn = torch.randint(targets.shape[1], (len(targets), size))
    return inputs[rows, drawn], targets[rows, drawn]


def _batches(method: str, inputs: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the batches of an epoch: all points, or for the bootstrap two halves drawn anew."""
    if method != "bootstrap":
        return [(inputs, targets)]
    drawn_inputs, drawn_targets = _resampled(inputs, targets, targets.shape[1])
    half = -(-targets.shape[1] // 2)
    return list(zip(drawn_inputs.split(half, 1), drawn_targets.split(half, 1), strict=True))


def adversarial_examples(
    network: nn.Module, objective: Objective, inputs: Tensor, targets: Tensor, step: Tensor | float
) -> Tensor:
    """Return the inputs after one step up the gradient's sign (Goodfellow et al. 2015).

    The step raises the loss most for its maximum norm.

    Args:
        network: what is attacked; its own gradients stay untouched.
        objective: (network, inputs, targets) to losses.
        inputs: (..., features).
        targets: as the objective takes them.
        step: size of the step, one for all features or (features,).

    Returns:
        Inputs of the same shape, without a gradient.
    """
    moved = inputs.detach().clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(objective(network, moved, targets).sum(), moved)
    return inputs.detach() + step * gradient.sign()


def with_adversarial_examples(objective: Objective, step: Tensor | float) -> Objective:
    """Return the mean of the objective on inputs and on adversarial examples (algorithm 1)."""

    def mean_objective(network: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        moved = adversarial_examples(network, objective, inputs, targets, step)
        return (objective(network, inputs, targets) + objective(network, moved, targets)) / 2

    return mean_objective
