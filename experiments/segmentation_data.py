# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""CamVid street scenes (Brostow et al. 2009) with labels of 11 classes, by day and at dusk.

Its files: `SPLIT/NAME.jpg` or `.png` and `SPLITannot/NAME.png`, 8 bits, in the usual split into
train, val and test. The name begins with the drive: 0001TP is filmed at dusk, all others by day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.depth.networks.encoder import IMAGENET_MEAN, resize_image

CLASSES = (
    "sky",
    "building",
    "pole",
    "road",
    "pavement",
    "tree",
    "sign",
    "fence",
    "car",
    "pedestrian",
    "bicyclist",
)
VOID = len(CLASSES)
"""The label that is neither trained on nor scored."""
DUSK_DRIVE = "0001TP"
SCALES = (0.5, 1.5)


@dataclass(frozen=True)
class LabelledImages:
    """Images and their labels, all of one size.

    Attributes:
        images: (N, h, w, 3) uint8, RGB.
        labels: (N, h, w) uint8: a class, or `VOID`.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read(
    folder: Path, split: str, is_dusk: bool, size: Sequence[int], number: int = 0
) -> LabelledImages:
    """Read the images of a split that were taken by day, or at dusk.

    Args:
        folder: of the data set.
        split: "train", "val" or "test".
        is_dusk: which of its drives.
        size: (width, height) to resize to: images by area, labels to the nearest pixel.
        number: of images, evenly spread; 0 takes all.

    Raises:
        SourceError: the folder has no images, an image or its labels cannot be read, their sizes
            differ, or a label is neither a class nor `VOID`.
    """
    paths = [
        path
        for path in sorted((folder / split).glob("*"))
        if path.suffix in (".jpg", ".png") and path.name.startswith(DUSK_DRIVE) == is_dusk
    ]
    if not paths:
        light = f"of drive {DUSK_DRIVE}" if is_dusk else f"of drives other than {DUSK_DRIVE}"
        raise SourceError(f"{folder / split} has no .jpg or .png images {light}")
    if number:
        paths = paths[:: max(len(paths) // number, 1)][:number]
    images = []
    labels = []
    for path in tqdm(paths, desc=f"segmentation: {split}", unit="image", leave=False):
        image, label = _read_pair(path, folder / f"{split}annot" / f"{path.stem}.png")
        images.append(resize_image(image, size))
        labels.append(cv2.resize(label, tuple(size), interpolation=cv2.INTER_NEAREST))
    return LabelledImages(np.stack(images), np.stack(labels).astype(np.uint8))


def _read_pair(path: Path, label_path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    image = _decode(path, cv2.IMREAD_COLOR)
    label = _decode(label_path, cv2.IMREAD_UNCHANGED)
    if label.dtype != np.uint8 or label.shape != image.shape[:2]:
        raise SourceError(
            f"{label_path} is {label.dtype} {label.shape}; expected uint8 {image.shape[:2]}, as "
            "the image"
        )
    if label.max() > VOID:
        raise SourceError(
            f"{label_path} has the label {label.max()}; expected a class from 0 to {VOID - 1}, or "
            f"{VOID} for none"
        )
    return image[..., ::-1], label


def _decode(path: Path, flags: int) -> NDArray[np.uint8]:
    pixels: Any = cv2.imread(str(path), flags)
    if pixels is None:
        raise SourceError(f"{path} is missing or not an image")
    return pixels


def augment(images: Tensor, labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Flip half of the images, scale each by 0.5 to 1.5, and crop or pad at random.

    Args:
        images: (B, 3, h, w) float32 in [0, 1]; padded with the mean colour.
        labels: (B, h, w) integers; padded with `VOID`.
        generator: source of all randomness.

    Returns:
        Images and labels (int64) of the same sizes.
    """
    number = len(images)
    low, high = SCALES
    scale = low + (high - low) * torch.rand(number, generator=generator)
    room = (1 - 1 / scale).abs()[:, None]
    shift = (2 * torch.rand(number, 2, generator=generator) - 1) * room
    flip = 1.0 - 2.0 * torch.randint(2, (number,), generator=generator)
    part = torch.zeros(number, 2, 3)
    part[:, 0, 0] = flip / scale
    part[:, 1, 1] = 1 / scale
    part[:, :, 2] = shift
    grid = functional.affine_grid(part, list(images.shape), align_corners=False)
    mean = torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1)
    # What lies outside is sampled as 0: the mean colour, and VOID.
    scaled = functional.grid_sample(images - mean, grid, align_corners=False) + mean
    offset = (labels.float() - VOID)[:, None]
    nearest = functional.grid_sample(offset, grid, mode="nearest", align_corners=False)
    return scaled, (nearest[:, 0] + VOID).round().long()
