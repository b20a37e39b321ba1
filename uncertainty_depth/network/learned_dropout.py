"""Dropout whose rate is learned: concrete dropout and variational (Gaussian) dropout."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.errors import ConfigError


class ConcreteDropout(nn.Module):
    """Dropout with a learned rate, made differentiable by the concrete distribution (Gal et al. 2017).

    Args:
        features: units the mask applies to, K.
        shape: shape of the rate, e.g. (members, 1, 1) for one rate per stacked network.
        rate: where the rate starts.
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
        """The probability of dropping a unit, of the shape given at the start."""
        return torch.sigmoid(self.logit)

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop in training mode, pass through in evaluation mode; any shape that the rate broadcasts to."""
        if not self.training:
            return inputs
        uniform = torch.rand_like(inputs, dtype=torch.float32).clamp(1e-6, 1 - 1e-6)
        keep = torch.sigmoid(-(self.logit + torch.logit(uniform)) / self.temperature)
        return inputs * (keep / (1 - self.rate)).to(inputs.dtype)

    def divergence(self, squared_weights: Tensor, prior_precision: float) -> Tensor:
        """KL divergence to the prior, up to a constant (Gal et al. 2017).

        Args:
            squared_weights: sum of the squares of the weights that the masked units enter, of the rate's shape.
            prior_precision: inverse variance of the Gaussian prior of the weights.

        Returns:
            Of the rate's shape; divide by the number of examples when the likelihood is a mean over them.
        """
        entropy = functional.softplus(self.logit) - self.rate * self.logit
        return prior_precision / 2 * squared_weights / (1 - self.rate) - self.features * entropy


class VariationalDropout(nn.Module):
    """Multiplicative Gaussian noise N(1, alpha) with a learned alpha (Kingma et al. 2015, section 3.1).

    Args:
        features: units that are multiplied, K.
        shape: shape of alpha, e.g. (members, 1, 1) for one per stacked network.
        alpha: where alpha starts.
    """

    def __init__(self, features: int, shape: tuple[int, ...] = (), alpha: float = 0.1) -> None:
        super().__init__()
        self.features = features
        self.log_alpha = nn.Parameter(torch.full(shape, math.log(alpha)))

    @property
    def alpha(self) -> Tensor:
        """Variance of the noise; p / (1 - p) of the Bernoulli dropout of rate p with the same variance."""
        return self.log_alpha.exp()

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply in training mode, pass through in evaluation mode; any shape that alpha broadcasts to."""
        if not self.training:
            return inputs
        return inputs * (1 + self.alpha.sqrt() * torch.randn_like(inputs, dtype=torch.float32)).to(
            inputs.dtype
        )

    def divergence(self) -> Tensor:
        """KL divergence to the log-uniform prior, up to a constant, for any alpha (Molchanov et al. 2017, eq. 14)."""
        scaled = 0.63576 * torch.sigmoid(1.87320 + 1.48695 * self.log_alpha)
        return self.features * (0.63576 - scaled + 0.5 * functional.softplus(-self.log_alpha))


def make_dropout(kind: str, features: int, rate: float) -> nn.Module:
    """A layer of `config.DROPOUTS` for maps of so many channels; gaussian starts at the variance of Bernoulli dropout of the rate.

    Raises:
        ConfigError: a rate that is learned would start at 0, which has no gradient.
    """
    if kind == "bernoulli":
        return nn.Dropout(rate)
    if rate == 0.0:
        raise ConfigError(
            f"dropout is 0.0 but dropout_type is {kind!r}; expected a rate above 0 to start from"
        )
    return (
        ConcreteDropout(features, rate=rate)
        if kind == "concrete"
        else VariationalDropout(features, alpha=rate / (1 - rate))
    )


def divergence(layer: nn.Module, after: nn.Module) -> Tensor | float:
    """KL divergence of a layer whose units enter `after` to its prior: N(0, 1) of the weights for a concrete rate; 0 for a rate that is fixed."""
    if isinstance(layer, ConcreteDropout):
        return layer.divergence(after.weight.square().sum(), 1.0)
    return layer.divergence() if isinstance(layer, VariationalDropout) else 0.0
