"""The hourglass network of Moukari et al. 2019: a pretrained encoder, the up-projection decoder of Laina et al. 2016."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.network.backbone import backbone_mapping, make_backbone
from uncertainty_depth.network.decoder import Decoder, Dropout, Trunk, decoder_widths, geometric
from uncertainty_depth.network.noise import make_dropout
from uncertainty_depth.options import check

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RELATIVE_SCALE = (1e-3, 2.0)
"""Least and greatest predicted scale of the error, as a share of the predicted depth: 1 mm to 2 m at one metre."""


class NetworkOutput(NamedTuple):
    """(B, 1, h, w) float32 each, metres; `scale_m` is the b of a Laplace or the s of a Gaussian, None without a head."""

    depth_m: Tensor
    scale_m: Tensor | None


class Encoder(nn.Module):
    """Normalises with ImageNet's mean and standard deviation, then runs the backbone."""

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(1, 3, 1, 1))
        self.backbone = backbone
        self.patch = getattr(backbone.config, "patch_size", None) or 1

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, h, w) float32 RGB in [0, 1] to feature maps, finest first."""
        normalised = ((image - self.mean) / self.std).to(next(self.backbone.parameters()).dtype)
        return tuple(self.backbone(self._to_whole_patches(normalised)).feature_maps)

    def _to_whole_patches(self, image: Tensor) -> Tensor:
        """A ViT drops the rows and columns beyond its last whole patch, which would shift every map: stretch the image instead."""
        size = [-(-length // self.patch) * self.patch for length in image.shape[-2:]]
        return image if size == list(image.shape[-2:]) else functional.interpolate(image, size=size, mode="bilinear", align_corners=False)


class Hourglass(nn.Module):
    """Image to depth, and the scale of its error where there is a head.

    Raises:
        ConfigError: a value of the config is out of range.
        ModelError: the backbone cannot be made.
    """

    def __init__(self, config: NetworkConfig, backbone: nn.Module | None = None) -> None:
        """`backbone` takes the place of the one that `config.backbone` names: a model folder brings its own."""
        super().__init__()
        check_network(config)
        self.config = config
        self.encoder = Encoder(make_backbone(config.backbone) if backbone is None else backbone)
        outputs = 1 if config.head == "none" else 2
        dropouts = [make_dropout(config.dropout_kind, features, config.dropout) for features in decoder_widths(config.decoder_width)[:3]]
        channels = self.encoder.backbone.channels
        self.decoder = Decoder(channels, config.decoder_width, dropouts, config.skip_connections, outputs, config.last_activation)
        self.encoder_is_frozen = False

    @property
    def backbone_config(self) -> dict:
        """The backbone's config as plain values."""
        return backbone_mapping(self.encoder.backbone)

    def freeze_encoder(self) -> None:
        """Train the decoder alone: the encoder gets no gradient and keeps its BatchNorm statistics, so snapshots can share one pass of it."""
        self.encoder_is_frozen = True
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> Hourglass:
        """As in torch, but a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.encoder_is_frozen:
            self.encoder.eval()
        return self

    def forward(self, image: Tensor) -> NetworkOutput:
        """(B, 3, h, w) float32 RGB in [0, 1] to maps of the same height and width."""
        return self.decode(self.encode(image), image.shape[-2:])

    def encode(self, image: Tensor) -> tuple[Tensor, ...]:
        """The encoder's feature maps, finest first. A frozen encoder has a gradient only where the image asks for one."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and (image.requires_grad or not self.encoder_is_frozen)):
            return self.encoder(image)

    def decode(self, features: Sequence[Tensor], size: Sequence[int]) -> NetworkOutput:
        """Feature maps to metres at `size` (height, width)."""
        return self.to_metres(self.decoder(features), size)

    def trunk(self, image: Tensor) -> Trunk:
        """All that comes before the first dropout, which samples of mc_dropout have in common."""
        return self.decoder.trunk(self.encode(image))

    def branches(self, trunk: Trunk, dropouts: Sequence[Dropout], size: Sequence[int]) -> NetworkOutput:
        """The rest, with the given functions in the place of the three dropouts."""
        return self.to_metres(self.decoder.branches(trunk, dropouts), size)

    def to_metres(self, raw: Tensor, size: Sequence[int]) -> NetworkOutput:
        """Raw maps to positive metres inside the depth range, then bilinearly to `size`.

        The scale is a share of the depth; no gradient goes through that factor, or a network could lower its loss by moving the depth.
        """
        low, high = self.config.depth_range
        depth = geometric(raw[:, :1].float(), low, high)
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
        raise ConfigError(f"depth_range is {config.depth_range!r}; expected the least depth before the greatest")
