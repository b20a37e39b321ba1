# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Image to feature maps: resize, scale to [0, 1], normalise, and run a pretrained backbone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from uncertainty_depth.core.errors import MessageError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

TransformersModel = Any
"""A model of transformers, or a `ResNet`. torch types its submodules as `Tensor | Module`, which
nothing can be called on, so they are typed here, once, as Any."""


def resize_image(image: NDArray[np.uint8], size: Sequence[int]) -> NDArray[np.uint8]:
    """Return (H, W, 3) uint8 at `size` = (width, height), or raise `MessageError`."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise MessageError(
            "image_wrong_shape",
            f"image has shape {image.shape} of {image.dtype}; "
            "expected (H, W, 3) of uint8, H and W at least 1",
        )
    width, height = size
    shrinks = image.shape[0] >= height and image.shape[1] >= width
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(image, (width, height), interpolation=interpolation)
    return resized.astype(np.uint8, copy=False)


def image_tensor(images: NDArray[np.uint8], device: torch.device | str = "cpu") -> Tensor:
    """Return (B, h, w, 3) uint8 images as (B, 3, h, w) float32 in [0, 1] on `device`."""
    pixels = upload(torch.from_numpy(np.ascontiguousarray(images)), device)
    return pixels.permute(0, 3, 1, 2).float().div_(255.0)


def upload(values: Tensor, device: torch.device | str) -> Tensor:
    """Return a CPU tensor on `device`; copying pinned memory to a GPU does not block."""
    if torch.device(device).type == "cuda":
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


def download(values: Sequence[Tensor]) -> list[NDArray[np.float32]]:
    """Return float32 tensors on one device as arrays, with one synchronisation."""
    device = values[0].device
    if device.type != "cuda":
        return [value.numpy() for value in values]
    together = torch.cat([value.flatten() for value in values])
    pinned = torch.empty(together.shape, pin_memory=True)
    pinned.copy_(together, non_blocking=True)
    torch.cuda.current_stream(device).synchronize()
    parts = pinned.split([value.numel() for value in values])
    return [part.view(value.shape).numpy() for part, value in zip(parts, values, strict=True)]


def resize_maps(maps: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Return (B, C, h, w) maps resized bilinearly to `size` = (height, width)."""
    if maps.shape[-2:] == tuple(size):
        return maps
    return functional.interpolate(
        maps, size=tuple(size), mode="bilinear", align_corners=align_corners
    )


class Encoder(nn.Module):
    """A backbone behind its images' normalisation.

    `mean` and `std` are of pixels in [0, 1], by default the backbone's, or ImageNet's; `patch`,
    which height and width must be a multiple of, is by default the backbone's, if it has one.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: TransformersModel,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        patch: int | None = None,
    ) -> None:
        super().__init__()
        mean = getattr(backbone, "pixel_mean", IMAGENET_MEAN) if mean is None else mean
        std = getattr(backbone, "pixel_std", IMAGENET_STD) if std is None else std
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))
        self.backbone: TransformersModel = backbone
        self.patch: int = patch or getattr(backbone.config, "patch_size", None) or 1

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Encoder:
        """Move to another device like any module; mean and std stay float32 in a cast."""
        exact = self.mean, self.std
        super()._apply(fn, recurse)
        self.mean, self.std = (values.to(self.mean.device) for values in exact)
        return self

    def forward(self, image: Tensor) -> Any:
        """Return the features of (B, 3, h, w) float32 RGB images in [0, 1].

        A ViT drops rows and columns beyond its last whole patch, so the image is stretched first.
        """
        normalised = (image - self.mean) / self.std
        pixels = normalised.to(next(self.backbone.parameters()).dtype)
        size = [-(-length // self.patch) * self.patch for length in image.shape[-2:]]
        return self.features(resize_maps(pixels, size))

    def features(self, pixels: Tensor) -> Any:
        """Return the feature maps of (B, 3, h, w) normalised pixels in whole patches."""
        return tuple(self.backbone(pixels).feature_maps)
