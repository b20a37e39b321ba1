# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The base class of all networks: an encoder, a decoder that holds the dropout, and metres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import validate
from uncertainty_depth.depth.networks.decoder import DropoutDecoder, geometric
from uncertainty_depth.depth.networks.encoder import resize_maps

RELATIVE_SCALE = (1e-3, 2.0)
"""Min and max predicted scale of the error, as a fraction of the predicted depth."""


class NetworkOutput(NamedTuple):
    """(B, 1, h, w) float32 metres; `scale_m`: Laplace's b or Gaussian's s, None without a head."""

    depth_m: Tensor
    scale_m: Tensor | None

    def mirrored(self) -> NetworkOutput:
        """Return the maps mirrored left to right: a mirror image's, at the image's pixels."""
        scale_m = None if self.scale_m is None else self.scale_m.flip(-1)
        return NetworkOutput(self.depth_m.flip(-1), scale_m)


class DepthNetwork(nn.Module, ABC):
    """Image to depth, and the depth error's scale if there is a head.

    A network's features and trunk fit only its own decoder.

    `depth_of` turns the decoder's first output, (B, 1, h, w), into metres in the depth range.
    Raises `ConfigError` if a value of the config is out of range.
    """

    architecture: str
    encoder: nn.Module
    decoder: DropoutDecoder
    depth_of: Callable[[Tensor], Tensor]

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        check_network(config)
        self.config = config
        self.encoder_is_frozen = False

    @property
    @abstractmethod
    def backbone_config(self) -> dict[str, Any]:
        """The pretrained part's config, as plain values."""

    @property
    def foldable(self) -> list[nn.Module]:
        """Parts in which a BatchNorm registered after a convolution is also computed after it."""
        return []

    @abstractmethod
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """Initialise the new layers to predict this depth and relative error everywhere."""

    def align(self, examples: Callable[[], tuple[Tensor, Tensor]]) -> None:
        """Fit a pretrained depth's units to metres, before training.

        `examples` returns images (B, 3, h, w) and their targets, (B, 1 or more, h, w), whose first
        channel is the depth in metres, NaN for unknown.
        """

    def training_input(
        self, images: Tensor, depth_m: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return what the network is given of a batch, and the depth that it has to learn.

        A network that takes more than the images overrides this; `generator` draws its choices.
        """
        return images, depth_m

    def freeze_encoder(self) -> None:
        """Train the decoder alone.

        The encoder gets no gradient and keeps its BatchNorm statistics, so that snapshots can
        share one pass of it.
        """
        self.encoder_is_frozen = True
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> DepthNetwork:
        """Set the training mode as torch does; a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.encoder_is_frozen:
            self.encoder.eval()
        return self

    def forward(self, image: Tensor) -> NetworkOutput:
        """Return the maps for (B, 3, h, w) float32 RGB images in [0, 1], at their size."""
        return self.decode(self.encode(image), image.shape[-2:])

    def encode(self, image: Tensor) -> Any:
        """Return the encoder's features; a frozen one has a gradient only if the image has."""
        needs_gradient = image.requires_grad or not self.encoder_is_frozen
        with torch.set_grad_enabled(torch.is_grad_enabled() and needs_gradient):
            return self.encoder(image)

    def decode(self, features: Any, size: Sequence[int]) -> NetworkOutput:
        """Return the maps from an encoder's features, at `size` = (height, width)."""
        return self.to_metres(self.decoder(features), size)

    def trunk(self, image: Tensor) -> tuple[Any, Any]:
        """Return the encoder's features, and what all samples share before the first dropout."""
        features = self.encoder(image)
        return features, self.decoder.trunk(features)

    def noise_shapes(self, trunk: Any) -> list[tuple[int, ...]]:
        """Return (C, h, w) of the maps that reach each dropout."""
        shapes: list[tuple[int, ...]] = []

        def note(x: Tensor) -> Tensor:
            shapes.append(tuple(x.shape[1:]))
            return x

        self.decoder.branches(trunk, [note] * len(self.decoder.dropouts))
        return shapes

    def branches(
        self,
        trunk: Any,
        dropouts: Sequence[Callable[..., Tensor]],
        noise: Sequence[Any],
        size: Sequence[int],
    ) -> NetworkOutput:
        """Return the maps of M samples, (M, 1, h, w) each, at `size` = (height, width).

        `dropouts` replace the dropout layers, for maps and the noise of M samples.
        """
        applied = [
            partial(dropout, noise=drawn) for dropout, drawn in zip(dropouts, noise, strict=True)
        ]
        return self.to_metres(self.decoder.branches(trunk, applied), size)

    def to_metres(self, raw: Tensor, size: Sequence[int]) -> NetworkOutput:
        """Return raw maps as positive metres inside the depth range, resized to `size`.

        The scale is a fraction of the depth. No gradient goes through that factor; otherwise a
        network could lower its loss by moving the depth.
        """
        depth = self.depth_of(raw[:, :1].float())
        if raw.shape[1] == 1:
            return NetworkOutput(resize_maps(depth, size), None)
        scale = depth.detach() * geometric(raw[:, 1:].float(), *RELATIVE_SCALE)
        return NetworkOutput(resize_maps(depth, size), resize_maps(scale, size))

    def variance(self, output: NetworkOutput) -> Tensor | None:
        """Return the predicted variance, (B, 1, h, w), square metres; None without a head."""
        if output.scale_m is None:
            return None
        return output.scale_m.square() * (2.0 if self.config.head == "laplace" else 1.0)


def check_network(config: NetworkConfig) -> None:
    """Raise `ConfigError` if values are out of range or contradict each other."""
    validate(config)
    if not config.depth_range[0] < config.depth_range[1]:
        raise ConfigError(
            f"depth_range is {config.depth_range!r}; expected the min depth before the max depth"
        )
