# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Augment a batch so that its depth stays true: flips, zoom, brightness and colour."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from uncertainty_depth.network.encoder import upload

ZOOM = 1.5  # Eigen et al. 2014, section 3.4
BRIGHTNESS = 0.2
CONTRAST = 0.2
COLOUR = 0.1
STRETCH = 1.15
"""Largest ratio of the two zooms for other cameras: a 16:9 image squeezed to 4:3 has 1.33, 3:2 has
1.125."""
GAMMA = 0.4


def augment(
    images: Tensor, depth_m: Tensor, generator: torch.Generator, other_cameras: bool = False
) -> tuple[Tensor, Tensor]:
    """Flip half of the frames, zoom into all, and change brightness, contrast and colour.

    Flip and zoom change image and depth alike.

    Args:
        images: (B, 3, h, w) float32 in [0, 1].
        depth_m: (B, 1, h, w) float32, metres, NaN where unknown.
        generator: source of all randomness, on the CPU.
        other_cameras: also stretch the frames and bend their brightness, for a network that is
            to serve cameras of another aspect and another tone curve than the training's.
    """
    flipped = upload(torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5, images.device)
    images = torch.where(flipped, images.flip(-1), images)
    depth_m = torch.where(flipped, depth_m.flip(-1), depth_m)
    images, depth_m = zoom(images, depth_m, generator, STRETCH if other_cameras else 1.0)
    if other_cameras:
        exponent = 2.0 ** (_factors((len(images), 1, 1, 1), GAMMA, generator) - 1)
        images = images.clamp_min(1e-3) ** upload(exponent, images.device)
    return change_light(images, generator), depth_m


def zoom(
    images: Tensor, depth_m: Tensor, generator: torch.Generator, stretch: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Crop and enlarge each frame by up to `ZOOM`, and divide its depth by the factor.

    What looks larger is nearer: with both zooms, by their geometric mean, as `depth_factor` takes
    a camera's focal length.

    Depth is sampled at the nearest pixel, never blended.

    Args:
        images: (B, 3, h, w).
        depth_m: (B, 1, h, w), metres.
        generator: of the zooms and the crops' places.
        stretch: largest ratio of the zooms of width and height, either way; neither goes below 1.
    """
    factor = 1 + (ZOOM - 1) * torch.rand(len(images), generator=generator)
    factors = factor[:, None].repeat(1, 2)
    if stretch > 1:
        ratio = stretch ** (2 * torch.rand(len(images), generator=generator) - 1)
        factors = factor[:, None] * torch.stack([ratio.sqrt(), 1 / ratio.sqrt()], dim=1)
        factors = factors / factors.amin(1, keepdim=True).clamp_max(1)
        factor = factors.prod(1).sqrt()
    shift = (2 * torch.rand(len(images), 2, generator=generator) - 1) * (1 - 1 / factors)
    part = torch.cat([torch.diag_embed(1 / factors), shift[:, :, None]], dim=2)
    part = upload(part, images.device)
    grid = functional.affine_grid(part, list(images.shape), align_corners=False)
    enlarged = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    nearest = functional.grid_sample(
        depth_m, grid, mode="nearest", padding_mode="border", align_corners=False
    )
    return enlarged, nearest / upload(factor[:, None, None, None], depth_m.device)


def change_light(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change contrast, brightness and colour channels of each frame, clamped to [0, 1]."""
    count = len(images)
    contrast = upload(_factors((count, 1, 1, 1), CONTRAST, generator), images.device)
    brightness = _factors((count, 1, 1, 1), BRIGHTNESS, generator)
    colour = _factors((count, 3, 1, 1), COLOUR, generator)
    gain = upload(brightness * colour, images.device)
    mean = images.mean((1, 2, 3), keepdim=True)
    return ((mean + (images - mean) * contrast) * gain).clamp(0, 1)


def _factors(shape: tuple[int, ...], spread: float, generator: torch.Generator) -> Tensor:
    """Return factors, uniform in [1 - spread, 1 + spread]."""
    return 1 + spread * (2 * torch.rand(shape, generator=generator) - 1)
