# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera images, and sparse depth where the model takes it, as the network's input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from uncertainty_depth.completion.sparse_input import check_sparse_depth
from uncertainty_depth.errors import MessageError
from uncertainty_depth.geometry.resampling import resample_depth
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.encoder import image_tensor, resize_image
from uncertainty_depth.records import Observation


def network_input(
    observations: Sequence[Observation],
    factors: Sequence[np.float32],
    model: ModelFolder,
    device: torch.device,
) -> Tensor:
    """Return images as (B, 3, h, w), or with sparse depth as a fourth channel, 0 where unknown.

    Args:
        observations: at least one.
        factors: by which the network's metres of each are multiplied for its camera.
        model: whose network it is for.
        device: of the network.

    Raises:
        MessageError: an image is of another shape or dtype, a sparse depth is of another size,
            dtype or unit, or the model takes none.
    """
    size = model.network.input_size
    images = [resize_image(observation.image, size) for observation in observations]
    pixels = image_tensor(np.stack(images), device)
    if all(observation.sparse_m is None for observation in observations):
        return pixels
    sparse = [
        _sparse_tensor(observation, model, device) / float(factor)
        for observation, factor in zip(observations, factors, strict=True)
    ]
    return torch.cat([pixels, torch.cat(sparse)], dim=1)


def _sparse_tensor(observation: Observation, model: ModelFolder, device: torch.device) -> Tensor:
    """Return sparse depth at the network's size, (1, 1, h, w), 0 where unknown."""
    network = model.network
    width, height = network.input_size
    if observation.sparse_m is None:
        return torch.zeros((1, 1, height, width), device=device)
    if not network.sparse_input:
        raise MessageError(
            "sparse_depth_not_taken",
            f"{model.name} takes the image alone, without sparse depth; expected a model "
            "trained with --sparse-input",
        )
    shape = (observation.image.shape[0], observation.image.shape[1])
    check_sparse_depth(observation.sparse_m, shape, network.depth_range)
    resampled = resample_depth(observation.sparse_m, width, height)
    return torch.from_numpy(np.nan_to_num(resampled)[None, None]).to(device)
