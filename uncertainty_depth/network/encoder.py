"""Image to feature maps: normalised, stretched to whole patches, and through a pretrained backbone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Encoder(nn.Module):
    """Normalises, with ImageNet's mean and standard deviation unless told otherwise, then runs the backbone."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
        patch: int | None = None,
    ) -> None:
        """`patch`: pixels that height and width must be a multiple of; else the backbone's patch size, where it has one."""
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))
        self.backbone = backbone
        self.patch = patch or getattr(backbone.config, "patch_size", None) or 1

    def forward(self, image: Tensor) -> Any:
        """(B, 3, h, w) float32 RGB in [0, 1] to features."""
        normalised = ((image - self.mean) / self.std).to(next(self.backbone.parameters()).dtype)
        return self.features(self._to_whole_patches(normalised))

    def features(self, pixels: Tensor) -> Any:
        """(B, 3, h, w), normalised, of whole patches, to feature maps, finest first."""
        return tuple(self.backbone(pixels).feature_maps)

    def _to_whole_patches(self, image: Tensor) -> Tensor:
        """A ViT drops the rows and columns beyond its last whole patch, which would shift every map: stretch the image instead."""
        size = [-(-length // self.patch) * self.patch for length in image.shape[-2:]]
        return (
            image
            if size == list(image.shape[-2:])
            else functional.interpolate(image, size=size, mode="bilinear", align_corners=False)
        )
