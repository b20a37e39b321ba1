# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""DeepLabv3 (Chen et al. 2017) in its shape, with a small ResNet.

As in Gustafsson et al. 2020, section 4.3 and appendix D, and their public code: an encoder of
stride 8, whose last two stages are dilated by 2 and 4 in place of their strides, atrous spatial
pyramid pooling (ASPP), a 1x1 convolution, and bilinear interpolation to the size of the image. For
MC-dropout there is a dropout of 0.5 after each of the four stages.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel, resize_maps

RATE = 0.5
"""Dropout rate of MC-dropout."""
POOLED_RATE = 0.1
"""Rate at which both methods drop whole channels behind the ASPP, in training only."""
STAGE_DILATIONS = {2: 2, 3: 4}


class DeepLab(nn.Module):
    """(B, 3, h, w) RGB images in [0, 1] to (B, classes, h, w) logits.

    Args:
        backbone: name of a ResNet for `make_backbone`.
        classes: of the pixels.
        width: channels of each branch of the ASPP.
        dilations: of its 3x3 convolutions; 12, 24 and 36 in the paper.
        has_dropout: whether this is a network of MC-dropout, whose dropout is always on.
    """

    def __init__(
        self,
        backbone: str,
        classes: int,
        width: int,
        dilations: tuple[int, ...],
        has_dropout: bool,
    ) -> None:
        super().__init__()
        self.rate = RATE if has_dropout else 0.0
        self.encoder = Encoder(dilated(make_backbone(backbone)))
        channels = self.encoder.backbone.config.hidden_sizes[-1]
        self.pyramid = Pyramid(channels, width, dilations)
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        backbone = self.encoder.backbone
        maps = backbone.embedder((images - self.encoder.mean) / self.encoder.std)
        for stage in backbone.encoder.stages:
            maps = functional.dropout(stage(maps), self.rate, training=True)
        logits = self.classify(self.pyramid(maps))
        return resize_maps(logits, images.shape[-2:], align_corners=True)


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: 1x1, dilated 3x3, and the mean over the image, joined.

    Args:
        channels: of the maps.
        width: channels of each branch and of the result.
        dilations: of the 3x3 convolutions.
    """

    def __init__(self, channels: int, width: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.mean = _block(nn.Conv2d(channels, width, 1, bias=False))
        branches = [_block(nn.Conv2d(channels, width, 1, bias=False))]
        for dilation in dilations:
            branches.append(
                _block(
                    nn.Conv2d(channels, width, 3, padding=dilation, dilation=dilation, bias=False)
                )
            )
        self.branches = nn.ModuleList(branches)
        joined = width * (len(branches) + 1)
        self.join = nn.Sequential(
            *_block(nn.Conv2d(joined, width, 1, bias=False)), nn.Dropout2d(POOLED_RATE)
        )

    def forward(self, maps: Tensor) -> Tensor:
        """Return (B, width, h, w) of (B, channels, h, w)."""
        mean = self.mean(maps.mean((2, 3), keepdim=True)).expand(-1, -1, *maps.shape[-2:])
        return self.join(torch.cat([mean, *(branch(maps) for branch in self.branches)], dim=1))


def _block(convolution: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU())


def dilated(backbone: TransformersModel) -> TransformersModel:
    """Return a ResNet with dilations in place of the strides of its last two stages: stride 8."""
    for number, dilation in STAGE_DILATIONS.items():
        for module in backbone.encoder.stages[number].modules():
            if isinstance(module, nn.Conv2d):
                module.stride = (1, 1)
                if module.kernel_size == (3, 3):
                    module.dilation = (dilation, dilation)
                    module.padding = (dilation, dilation)
    return backbone
