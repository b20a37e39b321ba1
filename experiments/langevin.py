# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Stochastic-gradient Markov chains as a torch optimizer.

A stack of networks is as many independent chains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

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
