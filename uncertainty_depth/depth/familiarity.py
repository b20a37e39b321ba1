# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The unfamiliarity of a network's frames, and a warning if most are unfamiliar.

It is the Mahalanobis distance of a frame's features to the training's (Lee et al. 2018), for one
Gaussian instead of one per class, as depth has no classes.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.strict import limits_of
from uncertainty_depth.depth.model_folder.files import read_tensors, write_tensors
from uncertainty_depth.depth.model_folder.folder import FAMILIARITY

logger = logging.getLogger(__name__)

WARNING_FRAMES = 8
"""Frames that decide on the warning: the first ones of a run may be of the floor."""
MEANING = (
    "only a few % of familiar images score above 1; there neither depth nor sigma has been tried"
)


@dataclass(frozen=True, eq=False)
class Familiarity:
    """A Gaussian of the training features, and the limits of familiar distances.

    Attributes:
        mean: (D,) of the training's features.
        whitening: (D, D), maps what is centred to uncorrelated features of unit variance.
        threshold: the distance that all but a few % of held-out frames stay below.
        places: mean unfamiliarity that one in ten held-out places exceeds, and one in a hundred;
            None if not known.
    """

    mean: NDArray[np.floating]
    whitening: NDArray[np.floating]
    threshold: float
    places: tuple[float, float] | None = None

    def scores(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return frames' unfamiliarity, (N,), from (N, D) features; few familiar ones exceed 1."""
        centred = features.astype(np.float64) - self.mean
        distances: NDArray[np.float64] = np.linalg.norm(
            centred @ self.whitening.T.astype(np.float64), axis=1
        )
        return distances / self.threshold


def write(folder: Path, familiarity: Familiarity) -> Path:
    """Write it to the folder, whole, the matrix in half precision; return its file's path."""
    tensors = {
        "mean": torch.from_numpy(familiarity.mean),
        "whitening": torch.from_numpy(familiarity.whitening).half(),
        "threshold": torch.tensor([familiarity.threshold]),
    }
    if familiarity.places:
        tensors["places"] = torch.tensor(familiarity.places)
    return write_tensors(folder / FAMILIARITY, tensors)


def read(folder: Path) -> Familiarity | None:
    """Return the folder's familiarity, None if it has none; raise `ModelError` if damaged."""
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
    places = limits_of(tensors["places"].tolist()) if "places" in tensors else None
    return Familiarity(mean, whitening, threshold, places)


def pooled(features: Any) -> Tensor:
    """Return (B, D) float32 means and deviations over the pixels, for each channel of the maps.

    The deepest map is left out. It has most channels, and training has bent it most to its own
    frames: with it the shipped model's AUROC for a street falls from .99 to .90. Features are an
    encoder's maps, (B, C, h, w), or a transformer's states, (B, N, C), perhaps in a tuple.
    """
    maps = features if isinstance(features[0], Tensor) else features[0]
    moments = []
    tensors = [values for values in maps if isinstance(values, Tensor)]
    for values in tensors[:-1] or tensors:
        pixels = (values.flatten(2) if values.ndim == 4 else values.transpose(1, 2)).float()
        moments += [pixels.mean(2), pixels.std(2, correction=0)]
    return torch.cat(moments, dim=1)


class UnfamiliarityMonitor:
    """Scores frames, and warns once if most are unfamiliar; any thread may use it."""

    def __init__(self, familiarity: Familiarity) -> None:
        """Take what scores."""
        self._familiarity = familiarity
        self._scores: deque[float] = deque(maxlen=WARNING_FRAMES)
        self._has_warned = False
        self._lock = threading.Lock()

    def describe(self) -> dict[str, list[float]]:
        """Return what a description of the model says of it, if anything."""
        if self._familiarity.places is None:
            return {}
        return {"familiar_places": [round(limit, 4) for limit in self._familiarity.places]}

    def score(self, features: NDArray[np.float32]) -> float:
        """Return the latest frame's unfamiliarity, from its (1, D) `pooled` features.

        Warns once if the median of the last `WARNING_FRAMES` is unfamiliar.
        """
        score = float(self._familiarity.scores(features)[0])
        with self._lock:
            self._scores.append(score)
            median = sorted(self._scores)[len(self._scores) // 2]
            is_due = len(self._scores) == WARNING_FRAMES and median > 1 and not self._has_warned
            self._has_warned = self._has_warned or is_due
        if is_due:
            logger.warning(
                "the images are unlike those of the training: unfamiliarity %.2f, and %s",
                median,
                MEANING,
            )
        return score

    def check(self, features: Any) -> None:
        """Raise `ModelError` if an encoder's features are another network's."""
        found = pooled(features)
        dimensions = len(self._familiarity.mean)
        if found.shape[1] != dimensions:
            raise ModelError(
                f"the encoder has {found.shape[1]} features, the model's familiarity "
                f"{dimensions}; expected that of the same network: compute it again with "
                "uncertainty_depth.depth.training.familiarity.add_familiarity"
            )
