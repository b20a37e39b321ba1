# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read a source into arrays at the network's size, split it, and vary it in training."""

from __future__ import annotations

import logging
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.focal_length import depth_factor
from uncertainty_depth.core.geometry.resampling import resample_depth
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.networks.encoder import image_tensor, resize_image, upload
from uncertainty_depth.frames.protocol import Source, Subsampled

logger = logging.getLogger(__name__)

VALIDATION_BLOCKS = 5


@dataclass
class TrainingFrames:
    """Training frames at the network's size.

    They take 3 + 2 bytes per pixel, 0.1 MB per frame at 160x128.

    Attributes:
        images: per frame (h, w, 3) uint8, RGB.
        depths_m: per frame (h, w) float16, metres, NaN for unknown. Half precision rounds by at
            most 0.05 %. They are a canonical camera's depths if there is one.
        cameras: per frame the camera at the source's size.
        canonical: relative focal length of the canonical camera; 0 for none.
        skipped: number of the source's records that gave no training frame, by reason.
    """

    images: list[NDArray[np.uint8]] = field(default_factory=list)
    depths_m: list[NDArray[np.float16]] = field(default_factory=list)
    cameras: list[Camera | None] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    canonical: float = 0.0

    def __len__(self) -> int:
        return len(self.images)

    def add(self, frame: Frame, width: int, height: int) -> None:
        """Resize and store a frame, or count it as skipped if no ground truth is left."""
        truth_m = frame.need_ground_truth()
        if frame.camera is not None:
            truth_m = frame.camera.only_seen(truth_m)
        depth_m = resample_depth(truth_m, width, height)
        depth = (depth_m / depth_factor(frame.camera, self.canonical)).astype(np.float16)
        if np.isnan(depth).all():
            self.skipped["no_ground_truth"] += 1
            return
        self.images.append(resize_image(frame.need_image(), (width, height)))
        self.depths_m.append(depth)
        self.cameras.append(frame.camera)

    def depth_m(self, index: int) -> NDArray[np.float32]:
        """Return a frame's depth for its own camera, (h, w), metres."""
        factor = depth_factor(self.cameras[index], self.canonical)
        return self.depths_m[index].astype(np.float32) * np.float32(factor)

    def batch(
        self, indices: Sequence[int], device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Return images (B, 3, h, w) in [0, 1] and depth (B, 1, h, w) in metres, float32.

        Unknown depth is NaN.
        """
        images = image_tensor(np.stack([self.images[index] for index in indices]), device)
        depths = torch.from_numpy(np.stack([self.depths_m[index] for index in indices]))
        depths = upload(depths, device)
        return images, depths[:, None].float()

    def fingerprint(self) -> str:
        """Return a checksum of all pixels; a resumed training must read the same frames."""
        checksum = 0
        arrays: list[NDArray[Any]] = [*self.images, *self.depths_m]
        for array in arrays:
            checksum = zlib.crc32(array.tobytes(), checksum)
        return f"{len(self)}-{checksum:08x}"


def read_frames(
    source: Source, size: tuple[int, ...], max_frames: int = 0, canonical: float = 0.0
) -> TrainingFrames:
    """Read the source once; at most `max_frames`, evenly spaced, if that is not 0.

    `size` is width and height of the network's input; `canonical` the relative focal length of the
    canonical camera whose depth is learnt, 0 for none.

    Raises:
        SourceError: fewer than two frames have ground truth: one to train on, one to validate on.
    """
    frames = TrainingFrames(canonical=canonical)
    width, height = size
    selected = Subsampled(source, max_frames)
    for record in tqdm(selected, f"reading {source.name}", len(selected), unit="frame"):
        if isinstance(record, Skipped):
            frames.skipped[record.reason] += 1
        else:
            frames.add(record, width, height)
    losses = ", ".join(f"{reason}: {count}" for reason, count in sorted(frames.skipped.items()))
    if len(frames) < 2:
        raise SourceError(
            f"{source.name} has {len(frames)} frames with ground truth "
            f"({losses or 'none skipped'}); expected at least 2 to train on"
        )
    for note in selected.notes:
        logger.warning("%s", note)
    if losses:
        logger.warning("%s: %d frames to train on, skipped %s", source.name, len(frames), losses)
    return frames


def split_frames(count: int, validation_fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Return training and validation frames, sorted: contiguous blocks in time, by the seed.

    Neighbouring frames of a drive show nearly the same image. A random split would put a twin of
    every validation frame among the training frames, and so reward memorising. Therefore whole
    blocks are held out: about `VALIDATION_BLOCKS` if there are enough frames. With two frames or
    more neither list is empty.
    """
    held_out = min(max(round(validation_fraction * count), 1), count - 1)
    blocks = min(max(round(VALIDATION_BLOCKS / validation_fraction), 2), count)
    edges = [index * count // blocks for index in range(blocks + 1)]
    validation: list[int] = []
    for block in np.random.default_rng(seed).permutation(blocks):
        room = held_out - len(validation)
        validation += range(edges[block], min(edges[block + 1], edges[block] + room))
    return sorted(set(range(count)) - set(validation)), sorted(validation)


ZOOM = 1.5  # Eigen et al. 2014, section 3.4
BRIGHTNESS = 0.2
CONTRAST = 0.2
COLOUR = 0.1
STRETCH = 1.15
"""Largest ratio of the two zooms for other cameras: a 16:9 image squeezed to 4:3 has 1.33, 3:2 has
1.125."""
ROLL = 6.0  # degrees, either way: a hand or a head tilts the camera
GAMMA = 0.6  # octaves of the exponent
EXPOSURE = 0.5  # octaves of the gain
SATURATION = 0.5
BLUR = (-0.5, 1.0)  # fraction of the way to a 5x5 mean; below 0 it sharpens
NOISE = 0.04  # largest standard deviation, of pixels in [0, 1]


def augment(
    images: Tensor, depth_m: Tensor, generator: torch.Generator, other_cameras: bool = False
) -> tuple[Tensor, Tensor]:
    """Flip half of the frames, zoom into all, and change brightness, contrast and colour.

    Flip and zoom change image and depth alike.

    Images are (B, 3, h, w) in [0, 1], depth (B, 1, h, w) metres, NaN for unknown. `other_cameras`
    also stretches and rolls the frames, and changes their tone curve, saturation, sharpness and
    noise, for a network that will serve other cameras than the training's.
    """
    flipped = upload(torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5, images.device)
    images = torch.where(flipped, images.flip(-1), images)
    depth_m = torch.where(flipped, depth_m.flip(-1), depth_m)
    if not other_cameras:
        images, depth_m = zoom(images, depth_m, generator)
        return change_light(images, generator), depth_m
    images, depth_m = zoom(images, depth_m, generator, STRETCH, ROLL)
    return change_light(change_sensor(images, generator), generator), depth_m


def zoom(
    images: Tensor,
    depth_m: Tensor,
    generator: torch.Generator,
    stretch: float = 1.0,
    roll: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Crop and enlarge each frame by up to `ZOOM`, and divide its depth by the factor.

    What looks larger is nearer. If the two zooms differ, the factor is their geometric mean, as in
    `depth_factor`.

    Depth is sampled at the nearest pixel, never blended, and unknown outside the frame, where the
    image is mirrored.

    `stretch` is the largest ratio of the zooms of width and height, either way, neither below 1;
    `roll` the largest rotation about the optical axis, either way, degrees.
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
    if roll > 0:
        angle = math.radians(roll) * (2 * torch.rand(len(images), generator=generator) - 1)
        height, width = images.shape[-2:]
        part[:, 0, 1] = -angle.sin() * height / width / factors[:, 0]
        part[:, 1, 0] = angle.sin() * width / height / factors[:, 1]
        part[:, [0, 1], [0, 1]] *= angle.cos()[:, None]
    part = upload(part, images.device)
    grid = functional.affine_grid(part, list(images.shape), align_corners=False)
    enlarged = functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    nearest = functional.grid_sample(
        depth_m, grid, mode="nearest", padding_mode="border", align_corners=False
    )
    nearest = torch.where((grid.abs() > 1).any(-1)[:, None], torch.nan, nearest)
    return enlarged, nearest / upload(factor[:, None, None, None], depth_m.device)


def change_sensor(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each frame's exposure, tone curve, saturation, sharpness and noise, within [0, 1]."""
    each = (len(images), 1, 1, 1)

    def draw(low: float, high: float) -> Tensor:
        chance = torch.rand(each, generator=generator)
        return upload(low + (high - low) * chance, images.device)

    exposed = (images * 2.0 ** draw(-EXPOSURE, EXPOSURE)).clamp(1e-3, 1)
    bent = exposed ** (2.0 ** draw(-GAMMA, GAMMA))
    grey = bent.mean(1, keepdim=True)
    coloured = torch.lerp(grey, bent, draw(1 - SATURATION, 1 + SATURATION))
    mean = functional.avg_pool2d(coloured, 5, 1, 2, count_include_pad=False)
    focused = torch.lerp(coloured, mean, draw(*BLUR))
    noise = upload(torch.randn(images.shape, generator=generator), images.device)
    return (focused + noise * draw(0, NOISE)).clamp(0, 1)


def change_light(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each frame's contrast, brightness and colour channels, clamped to [0, 1]."""
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
