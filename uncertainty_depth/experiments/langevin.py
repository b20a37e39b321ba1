"""Stochastic-gradient Markov chains as torch optimizers; a stack of networks is as many independent chains."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


class SGLD(torch.optim.Optimizer):
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011, eq. 4).

    theta <- theta - lr g + sqrt(2 lr / N) eps, where g is the gradient of the negative log posterior divided by the number of examples N.

    Args:
        params: the parameters to sample.
        lr: step size; a scheduler may lower it.
        data_size: the number of examples N.
        weight_decay: added to the gradient times the parameter: 1 / (N v) for a prior N(0, v) that the loss leaves out.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, data_size: int, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "data_size": data_size, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient."""
        for group in self.param_groups:
            noise = math.sqrt(2 * group["lr"] / group["data_size"])
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(parameter.grad, alpha=-group["lr"]).add_(torch.randn_like(parameter), alpha=noise)


class SGHMC(torch.optim.Optimizer):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen et al. 2014, eq. 15, with no estimate of the gradient noise).

    v <- (1 - friction) v - lr g + sqrt(2 friction lr / N) eps, theta <- theta + v.

    Args:
        params: the parameters to sample.
        lr: step size; a scheduler may lower it.
        data_size: the number of examples N.
        weight_decay: added to the gradient times the parameter: 1 / (N v) for a prior N(0, v) that the loss leaves out.
        friction: share of the velocity lost in each step.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, data_size: int, weight_decay: float = 0.0, friction: float = 0.1) -> None:
        super().__init__(params, {"lr": lr, "data_size": data_size, "weight_decay": weight_decay, "friction": friction})

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient."""
        for group in self.param_groups:
            noise = math.sqrt(2 * group["friction"] * group["lr"] / group["data_size"])
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                velocity = self.state[parameter].setdefault("velocity", torch.zeros_like(parameter))
                velocity.mul_(1 - group["friction"]).add_(parameter.grad, alpha=-group["lr"])
                velocity.add_(parameter, alpha=-group["lr"] * group["weight_decay"])
                parameter.add_(velocity.add_(torch.randn_like(parameter), alpha=noise))
