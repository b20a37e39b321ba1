# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The encoder of DepthPro (Bochkovskii et al. 2024).

It encodes patches of the image at three scales, the whole image, and its field of view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from uncertainty_depth.network.encoder import TransformersModel, resize_maps

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def working_size(config: PretrainedConfig) -> int:
    """Return height and width of every image that DepthPro sees, pixels.

    The image at the smallest scale is one patch.
    """
    return round(config.patch_size / min(config.scaled_images_ratios))


class DepthProBackbone(nn.Module):
    """Images to all inputs of the fusion; resized to the working size, as DepthPro does it."""

    def __init__(self, model: TransformersModel) -> None:
        super().__init__()
        self.depth_pro: TransformersModel = model.depth_pro
        self.fov_model: TransformersModel = model.fov_model
        self.size = working_size(model.config)

    def forward(self, pixels: Tensor) -> list[Tensor]:
        """Return the (B, C, h, w) maps of (B, 3, h, w) images, finest first, and a factor.

        The factor, (B, 1, 1), turns canonical inverse depth into inverse metres.
        """
        pixels = resize_maps(pixels, (self.size, self.size))
        maps = self.depth_pro(pixels).features
        return [*maps[::-1], self._width_by_focal_length(pixels, maps[0].detach())]

    def _width_by_focal_length(self, pixels: Tensor, coarsest: Tensor) -> Tensor:
        """Return the image's width by its focal length (equation 1 of the paper).

        1, the canonical value, without a model of the field of view.
        """
        if self.fov_model is None:
            return pixels.new_ones(len(pixels), 1, 1)
        field_of_view_deg = self.fov_model(pixels, coarsest).float()
        return 2.0 * torch.tan(0.5 * torch.deg2rad(field_of_view_deg))[:, None, None]
