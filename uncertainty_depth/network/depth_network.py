"""What every network has in common: an encoder, a decoder behind it that holds the dropout, and metres at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.decoder import Dropout, geometric
from uncertainty_depth.options import check

RELATIVE_SCALE = (1e-3, 2.0)
"""Least and greatest predicted scale of the error, as a share of the predicted depth: 1 mm to 2 m at one metre."""


class NetworkOutput(NamedTuple):
    """(B, 1, h, w) float32 each, metres; `scale_m` is the b of a Laplace or the s of a Gaussian, None without a head."""

    depth_m: Tensor
    scale_m: Tensor | None


class DepthNetwork(nn.Module, ABC):
    """Image to depth, and the scale of its error where there is a head.

    A network of any architecture gives `encoder`, which maps an image to features, and `decoder`, whose `trunk` and `branches` are what comes before
    its first dropout and what comes from there on, whose `dropouts` are those layers, and whose `divergence` is theirs to their priors. Features and
    trunk are for the network's own decoder alone.

    Raises:
        ConfigError: a value of the config is out of range.
    """

    architecture: str
    encoder: nn.Module
    decoder: nn.Module

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        check_network(config)
        self.config = config
        self.encoder_is_frozen = False

    @property
    @abstractmethod
    def backbone_config(self) -> dict[str, Any]:
        """The config of what is pretrained, as plain values."""

    @property
    def foldable(self) -> list[nn.Module]:
        """Parts in which a BatchNorm registered right after a convolution also comes right after it in the computation."""
        return []

    @abstractmethod
    def depth_of(self, raw: Tensor) -> Tensor:
        """The decoder's first output, (B, 1, h, w), to metres inside the depth range."""

    @abstractmethod
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """Before training: let what has no weights of its own yet predict about this depth, and this relative error of it, everywhere."""

    def align(self, examples: Callable[[], tuple[Tensor, Tensor]]) -> None:
        """Before training: bring a depth that is pretrained to metres, by images (B, 3, h, w) and what to give for them, (B, 1 or more, h, w)."""

    def freeze_encoder(self) -> None:
        """Train the decoder alone: the encoder gets no gradient and keeps its BatchNorm statistics, so snapshots can share one pass of it."""
        self.encoder_is_frozen = True
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> DepthNetwork:
        """As in torch, but a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.encoder_is_frozen:
            self.encoder.eval()
        return self

    def forward(self, image: Tensor) -> NetworkOutput:
        """(B, 3, h, w) float32 RGB in [0, 1] to maps of the same height and width."""
        return self.decode(self.encode(image), image.shape[-2:])

    def encode(self, image: Tensor) -> Any:
        """The encoder's features. A frozen encoder has a gradient only where the image asks for one."""
        with torch.set_grad_enabled(
            torch.is_grad_enabled() and (image.requires_grad or not self.encoder_is_frozen)
        ):
            return self.encoder(image)

    def decode(self, features: Any, size: Sequence[int]) -> NetworkOutput:
        """Features to metres at `size` (height, width)."""
        return self.to_metres(self.decoder(features), size)

    def trunk(self, image: Tensor) -> Any:
        """All that comes before the first dropout, which samples of mc_dropout have in common."""
        return self.decoder.trunk(self.encode(image))

    def branches(
        self, trunk: Any, dropouts: Sequence[Dropout], size: Sequence[int]
    ) -> NetworkOutput:
        """The rest, with the given functions in the place of the dropouts."""
        return self.to_metres(self.decoder.branches(trunk, dropouts), size)

    def to_metres(self, raw: Tensor, size: Sequence[int]) -> NetworkOutput:
        """Raw maps to positive metres inside the depth range, then bilinearly to `size`.

        The scale is a share of the depth; no gradient goes through that factor, or a network could lower its loss by moving the depth.
        """
        depth = self.depth_of(raw[:, :1].float())
        if raw.shape[1] == 1:
            return NetworkOutput(_resize(depth, size), None)
        scale = depth.detach() * geometric(raw[:, 1:].float(), *RELATIVE_SCALE)
        return NetworkOutput(_resize(depth, size), _resize(scale, size))

    def variance(self, output: NetworkOutput) -> Tensor | None:
        """(B, 1, h, w) square metres: 2 b^2 for a Laplace head, s^2 for a Gaussian one, None without a head."""
        if output.scale_m is None:
            return None
        return output.scale_m.square() * (2.0 if self.config.head == "laplace" else 1.0)


def _resize(maps: Tensor, size: Sequence[int]) -> Tensor:
    return functional.interpolate(maps, size=tuple(size), mode="bilinear", align_corners=False)


def check_network(config: NetworkConfig) -> None:
    """Raise `ConfigError` where values are out of range or do not go together."""
    check(config)
    for name in ("input_size", "depth_range"):
        if len(getattr(config, name)) != 2:
            raise ConfigError(f"{name} is {getattr(config, name)!r}; expected two numbers")
    if not config.depth_range[0] < config.depth_range[1]:
        raise ConfigError(
            f"depth_range is {config.depth_range!r}; expected the least depth before the greatest"
        )
