# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A compact U-Net of one channel to one (Ronneberger et al. 2015), split at its dropout."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.network.decoder import Dropout
from uncertainty_depth.network.encoder import resize_maps

WIDTHS = (32, 32, 64, 64)
"""Channels of each scale, as of the two U-Nets of pNCNN (Eldesokey et al. 2020)."""


class UNet(nn.Module):
    """Four scales; dropout acts at the coarsest, between its two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        downs = [nn.Sequential(*_block(1, WIDTHS[0]), *_block(WIDTHS[0], WIDTHS[0]))]
        for fine, coarse in pairwise(WIDTHS[:-1]):
            downs.append(nn.Sequential(*_block(fine, coarse), *_block(coarse, coarse)))
        self.downs = nn.ModuleList(downs)
        self.deepest = _block(WIDTHS[-2], WIDTHS[-1])
        self.after_dropout = _block(WIDTHS[-1], WIDTHS[-1])
        ups = []
        for fine, coarse in pairwise(WIDTHS):
            ups.append(nn.Sequential(*_block(fine + coarse, fine), *_block(fine, fine)))
        self.ups = nn.ModuleList(reversed(ups))
        self.final = nn.Conv2d(WIDTHS[0], 1, 1)

    def trunk(self, maps: Tensor) -> list[Tensor]:
        """Return the maps of each scale before the dropout, the coarsest first."""
        scales = [self.downs[0](maps)]
        for down in self.downs[1:]:
            scales.append(down(functional.max_pool2d(scales[-1], 2)))
        scales.append(self.deepest(functional.max_pool2d(scales[-1], 2)))
        return scales[::-1]

    def branches(self, scales: list[Tensor], dropout: Dropout) -> Tensor:
        """Return (M, 1, h, w), for as many samples as the dropout returns."""
        maps = self.after_dropout(dropout(scales[0]))
        for up, scale in zip(self.ups, scales[1:], strict=True):
            wide = resize_maps(maps, scale.shape[-2:])
            maps = up(torch.cat([scale.expand(wide.shape[0], -1, -1, -1), wide], dim=1))
        return self.final(maps)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )
