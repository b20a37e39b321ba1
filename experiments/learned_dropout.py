# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Dropout whose rate is learned: concrete dropout and variational (Gaussian) dropout."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class ConcreteDropout(nn.Module):
    """Dropout with a learned rate, differentiable by the concrete distribution.

    Gal et al. 2017.

    Args:
        features: units the mask applies to, K.
        shape: shape of the rate, e.g. (members, 1, 1) for one rate per stacked network.
        rate: initial rate.
        temperature: of the relaxation; near 0 the mask is near 0 or 1.
    """

    def __init__(
        self,
        features: int,
        shape: tuple[int, ...] = (),
        rate: float = 0.1,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        self.features = features
        self.temperature = temperature
        self.logit = nn.Parameter(torch.full(shape, math.log(rate / (1 - rate))))

    @property
    def rate(self) -> Tensor:
        """The probability of dropping a unit, of the rate's initial shape."""
        return torch.sigmoid(self.logit)

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop units in training mode; the rate broadcasts to the shape of the inputs."""
        if not self.training:
            return inputs
        uniform = torch.rand_like(inputs, dtype=torch.float32).clamp(1e-6, 1 - 1e-6)
        keep = torch.sigmoid(-(self.logit + torch.logit(uniform)) / self.temperature)
        return inputs * (keep / (1 - self.rate)).to(inputs.dtype)

    def divergence(self, squared_weights: Tensor, prior_precision: float) -> Tensor:
        """Return the KL divergence to the prior, up to a constant (Gal et al. 2017).

        Args:
            squared_weights: sum of the squares of the weights that the masked units enter, of the
                rate's shape.
            prior_precision: inverse variance of the Gaussian prior of the weights.

        Returns:
            The divergence, of the rate's shape; to be divided by the number of examples when the
            likelihood is a mean over them.
        """
        entropy = functional.softplus(self.logit) - self.rate * self.logit
        return prior_precision / 2 * squared_weights / (1 - self.rate) - self.features * entropy


class VariationalDropout(nn.Module):
    """Multiplicative Gaussian noise N(1, alpha) with a learned alpha.

    Kingma et al. 2015, section 3.1.

    Args:
        features: units the noise multiplies, K.
        shape: shape of alpha, e.g. (members, 1, 1) for one per stacked network.
        alpha: initial alpha.
    """

    def __init__(self, features: int, shape: tuple[int, ...] = (), alpha: float = 0.1) -> None:
        super().__init__()
        self.features = features
        self.log_alpha = nn.Parameter(torch.full(shape, math.log(alpha)))

    @property
    def alpha(self) -> Tensor:
        """Variance of the noise; p / (1 - p) of Bernoulli dropout of rate p with that variance."""
        return self.log_alpha.exp()

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply by noise in training mode; alpha broadcasts to the shape of the inputs."""
        if not self.training:
            return inputs
        noise = torch.randn_like(inputs, dtype=torch.float32)
        return inputs * (1 + self.alpha.sqrt() * noise).to(inputs.dtype)

    def divergence(self) -> Tensor:
        """Return the KL divergence to the log-uniform prior, up to a constant, for any alpha.

        Molchanov et al. 2017, eq. 14.
        """
        scaled = 0.63576 * torch.sigmoid(1.87320 + 1.48695 * self.log_alpha)
        return self.features * (0.63576 - scaled + 0.5 * functional.softplus(-self.log_alpha))
