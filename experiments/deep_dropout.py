# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The hourglass with dropout in encoder and decoder, for the experiment on depth completion.

Gustafsson et al. 2020, section 4.2, after Kendall et al. 2017: dropout acts "after the three last
encoder blocks and the four first decoder blocks". Samples of MC dropout differ from the second
stage of the encoder on, so that stage and all that follow it belong to the decoder here, of which
every sample has a pass of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.decoder import Decoder, Dropout, decoder_widths
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.networks.resnet import Maps

NAME = "tiny+encoder_dropout"
"""The network's name, given in place of a backbone's."""
LATE_STAGES = 3
"""Stages of the encoder with dropout: all but the first."""


class FirstStage(nn.Module):
    """The stem and the first stage of a ResNet, in place of the whole of it."""

    def __init__(self, backbone: TransformersModel) -> None:
        super().__init__()
        self.config = backbone.config
        self.embedder: TransformersModel = backbone.embedder
        self.stage: TransformersModel = backbone.encoder.stages[0]

    def forward(self, pixels: Tensor) -> Maps:
        """Return the map of the first stage, (B, C, h/4, w/4)."""
        return Maps((self.stage(self.embedder(pixels)),))


def take_late_stages(encoder: Encoder) -> list[TransformersModel]:
    """Return the last stages of a ResNet encoder, which keeps its stem and its first stage.

    Raises:
        ConfigError: the encoder is not a ResNet.
    """
    backbone = encoder.backbone
    if backbone.config.model_type != "resnet":
        raise ConfigError(
            f"dropout in the encoder needs a ResNet, and the backbone is a "
            f"{backbone.config.model_type!r} model"
        )
    encoder.backbone = FirstStage(backbone)
    return list(backbone.encoder.stages[1:])


class DeepDropoutDecoder(Decoder):
    """The last stages of an encoder, and the up-projections, with dropout after each of both.

    Args:
        stages: of the encoder, the second to the last.
        options: as of `Decoder`; the dropouts of the stages come first.
    """

    def __init__(self, stages: Sequence[TransformersModel], *options: Any) -> None:
        super().__init__(*options)
        self.stages = nn.ModuleList(stages)

    def trunk(self, features: Sequence[Tensor]) -> Any:
        """Return the map of the encoder's first stage: the first dropout follows the second."""
        return features[0]

    def branches(self, trunk: Any, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        maps = [trunk]
        for stage, dropout in zip(self.stages, dropouts[:LATE_STAGES], strict=True):
            maps.append(dropout(stage(maps[-1])))
        decoded = super().trunk(maps)
        x = dropouts[LATE_STAGES](decoded.first)
        later = dropouts[LATE_STAGES + 1 :]
        for up, skip, dropout in zip(self.ups[1:], (*decoded.skips, None), later, strict=True):
            x = dropout(up(x, skip))
        return self.final(x)


class AroundBackbone(Hourglass):
    """An hourglass of the backbone before the first `+` in its config."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config, make_backbone(config.backbone.partition("+")[0]))


class DeepHourglass(AroundBackbone):
    """The same with dropout in encoder and decoder."""

    def make_decoder(self) -> DeepDropoutDecoder:
        """See `Hourglass`: the decoder takes the encoder's stages that follow a dropout."""
        config = self.config
        channels = list(self.encoder.backbone.channels)
        dropped = [*channels[1:], *decoder_widths(config.decoder_width)]
        return DeepDropoutDecoder(
            take_late_stages(self.encoder),
            channels,
            config.decoder_width,
            [nn.Dropout(config.dropout) for _ in dropped],
            1 if config.head == "none" else 2,
            config.last_activation,
        )
