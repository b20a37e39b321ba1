# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Compute a model's familiarity from its training frames."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.errors import ModelError, SourceError
from uncertainty_depth.familiarity import file
from uncertainty_depth.familiarity.fit import fit
from uncertainty_depth.familiarity.gauge import Familiarity, pooled
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.deployment import choose_device
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.uncertainty.estimator import download

logger = logging.getLogger(__name__)

MAX_FRAMES = 4000
MAX_FEATURES = 2048
BATCH = 16


def add_familiarity(
    folder: Path,
    frames: TrainingFrames,
    indices: Sequence[int],
    held_out: Sequence[int],
    device: str = "auto",
) -> Familiarity:
    """Compute the familiarity of a model and write it to its folder.

    Args:
        folder: the model folder.
        frames: training and validation frames.
        indices: the training frames; evenly spaced ones if there are more than `MAX_FRAMES`.
        held_out: the validation frames.
        device: as for training.

    Raises:
        SourceError: there are too few frames.
        ModelError: the network has too many features to tell them apart.
    """
    model = read(folder)
    network = model.load(model.members[-1]).to(choose_device(device))
    selection = indices[:: -(-len(indices) // MAX_FRAMES)]
    familiarity = fit(_features(network, frames, selection), _features(network, frames, held_out))
    file.write(model.path, familiarity)
    return familiarity


def try_to_add(
    folder: Path,
    frames: TrainingFrames,
    indices: Sequence[int],
    held_out: Sequence[int],
    device: str,
) -> None:
    """Add the familiarity to a trained model, or log why it cannot be computed."""
    try:
        add_familiarity(folder, frames, indices, held_out, device)
    except (SourceError, ModelError) as error:
        logger.warning("the model cannot detect unfamiliar frames: %s", error)


@torch.inference_mode()
def _features(
    network: DepthNetwork, frames: TrainingFrames, indices: Sequence[int]
) -> NDArray[np.float32]:
    """Return the features of frames, (N, D)."""
    device = next(network.parameters()).device
    rows = []
    for start in range(0, len(indices), BATCH):
        images, _ = frames.batch(list(indices[start : start + BATCH]), device)
        rows += download([pooled(network.encode(images))])
    features = np.concatenate(rows)
    if features.shape[1] > MAX_FEATURES:
        raise ModelError(
            f"the encoder has {features.shape[1]} features; expected at most {MAX_FEATURES}"
        )
    return features
