"""The hourglass network of Moukari et al. 2019: a pretrained encoder, the up-projection decoder of Laina et al. 2016."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.backbone import backbone_mapping, make_backbone
from uncertainty_depth.network.decoder import Decoder, decoder_widths, geometric, raw_value
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import Encoder
from uncertainty_depth.network.learned_dropout import make_dropout

START_WEIGHT = 0.1


class Hourglass(DepthNetwork):
    """Any backbone and four up-projections; depth is bounded by the depth range.

    Raises:
        ConfigError: a value of the config is out of range.
        ModelError: the backbone cannot be made.
    """

    architecture = "hourglass"
    encoder: Encoder
    decoder: Decoder

    def __init__(self, config: NetworkConfig, backbone: nn.Module | None = None) -> None:
        """`backbone` takes the place of the one that `config.backbone` names: a model folder brings its own."""
        super().__init__(config)
        self.encoder = Encoder(make_backbone(config.backbone) if backbone is None else backbone)
        outputs = 1 if config.head == "none" else 2
        dropouts = [
            make_dropout(config.dropout_type, features, config.dropout)
            for features in decoder_widths(config.decoder_width)[:3]
        ]
        channels = self.encoder.backbone.channels
        self.decoder = Decoder(
            channels,
            config.decoder_width,
            dropouts,
            config.skip_connections,
            outputs,
            config.last_activation,
        )

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`."""
        return backbone_mapping(self.encoder.backbone)

    @property
    def foldable(self) -> list[nn.Module]:
        """See `DepthNetwork`."""
        return [
            self.decoder,
            *([self.encoder] if self.encoder.backbone.config.model_type == "resnet" else []),
        ]

    def depth_of(self, raw: Tensor) -> Tensor:
        """See `DepthNetwork`."""
        return geometric(raw, *self.config.depth_range)

    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`: all is decided by the last layer."""
        targets = [
            raw_value(depth_m, *self.config.depth_range),
            raw_value(relative_error, *RELATIVE_SCALE),
        ]
        final = self.decoder.final
        with torch.no_grad():
            final.weight.mul_(START_WEIGHT)
            final.bias.copy_(torch.tensor(targets[: len(final.bias)]))
