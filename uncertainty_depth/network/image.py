"""From a camera image of any size to what the network sees; training and prediction share it."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def resize_image(image: NDArray[np.uint8], size: Sequence[int]) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 to (height, width, 3) for `size` = (width, height): area averages when shrinking, bilinear otherwise."""
    width, height = size
    shrinks = image.shape[0] >= height and image.shape[1] >= width
    return cv2.resize(
        image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    )


def image_tensor(images: NDArray[np.uint8], device: torch.device | str = "cpu") -> Tensor:
    """(B, h, w, 3) uint8 to (B, 3, h, w) float32 in [0, 1] on `device`; bytes travel, floats are made there."""
    pixels = torch.from_numpy(np.ascontiguousarray(images)).to(device)
    return pixels.permute(0, 3, 1, 2).float().div_(255.0)
