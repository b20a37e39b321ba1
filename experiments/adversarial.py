# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Training on adversarial examples (Lakshminarayanan et al. 2017, section 2.3)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Objective = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""(network, inputs, targets) to losses."""


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
