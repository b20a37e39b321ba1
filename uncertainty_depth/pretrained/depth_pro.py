"""The encoder of DepthPro (Bochkovskii et al. 2024): patches of the image at three scales, the whole image, and its field of view."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PretrainedConfig, PreTrainedModel


def working_size(config: PretrainedConfig) -> int:
    """Height and width of every image that DepthPro sees, pixels: of the smallest scale there is just one patch."""
    return round(config.patch_size / min(config.scaled_images_ratios))


class DepthProBackbone(nn.Module):
    """All that the fusion is fed with. Images of any size are stretched to the one it was made for, as the model's own processor does it."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.depth_pro = model.depth_pro
        self.fov_model = model.fov_model
        self.size = working_size(model.config)

    def forward(self, pixels: Tensor) -> list[Tensor]:
        """(B, 3, h, w) to (B, C, h, w) maps, the finest first, and last (B, 1, 1): what makes canonical inverse depth one of metres."""
        pixels = functional.interpolate(
            pixels, size=(self.size, self.size), mode="bilinear", align_corners=False
        )
        maps = self.depth_pro(pixels).features
        return [*maps[::-1], self._width_by_focal_length(pixels, maps[0].detach())]

    def _width_by_focal_length(self, pixels: Tensor, coarsest: Tensor) -> Tensor:
        """Equation 1 of the paper; canonical is a focal length of the image's width, which it stays without a model of the field of view."""
        if self.fov_model is None:
            return pixels.new_ones(len(pixels), 1, 1)
        degrees = self.fov_model(pixels, coarsest).float()
        return 2.0 * torch.tan(0.5 * torch.deg2rad(degrees))[:, None, None]
