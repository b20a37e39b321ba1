# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The familiarity in a model folder, `familiarity.safetensors`."""

from __future__ import annotations

from pathlib import Path

import torch

from uncertainty_depth.errors import ModelError
from uncertainty_depth.familiarity.gauge import Familiarity
from uncertainty_depth.model_folder.files import read_tensors, write_tensors
from uncertainty_depth.model_folder.folder import FAMILIARITY


def write(folder: Path, familiarity: Familiarity) -> Path:
    """Write it to the model folder, whole or not at all; returns the path of its file.

    The matrix is stored in half precision: 0.5 MB for 480 features.
    """
    tensors = {
        "mean": torch.from_numpy(familiarity.mean),
        "whitening": torch.from_numpy(familiarity.whitening).half(),
        "threshold": torch.tensor([familiarity.threshold]),
    }
    return write_tensors(folder / FAMILIARITY, tensors)


def read(folder: Path) -> Familiarity | None:
    """Return the folder's familiarity; None for a model that has none.

    Raises:
        ModelError: the file is damaged.
    """
    path = folder / FAMILIARITY
    if not path.exists():
        return None
    tensors = read_tensors(path)
    try:
        mean = tensors["mean"].float().numpy()
        whitening = tensors["whitening"].float().numpy()
        (threshold,) = tensors["threshold"].tolist()
    except (KeyError, ValueError) as error:
        raise ModelError(
            f"{path} lacks the tensors of a familiarity; expected mean, whitening and threshold"
        ) from error
    if whitening.shape != (len(mean), len(mean)) or not threshold > 0:
        raise ModelError(
            f"{path} has a mean of {len(mean)} features, a matrix {whitening.shape} and threshold "
            f"{threshold}; expected a square matrix of as many features and a positive threshold"
        )
    return Familiarity(mean, whitening, threshold)
