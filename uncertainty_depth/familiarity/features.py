# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Features of a frame: mean and deviation of each channel of the encoder's maps."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.network.depth_network import DepthNetwork


def pooled(features: Any) -> NDArray[np.float32]:
    """Return (B, D) means and deviations over the pixels, for every channel of every map.

    Args:
        features: of an encoder: maps, (B, C, h, w), or the states of a transformer, (B, N, C),
            perhaps as the first of several values.
    """
    return torch.cat([_of_map(one) for one in _maps(features)], dim=1).float().cpu().numpy()


def _maps(features: Any) -> Sequence[Tensor]:
    is_nested = len(features) > 0 and not isinstance(features[0], Tensor)
    maps: Sequence[Tensor] = features[0] if is_nested else features
    return [one for one in maps if isinstance(one, Tensor)]


def _of_map(values: Tensor) -> Tensor:
    pixels = values.flatten(2) if values.ndim == 4 else values.transpose(1, 2)
    pixels = pixels.float()
    return torch.cat([pixels.mean(2), pixels.std(2, correction=0)], dim=1)


class FeatureTap:
    """Takes the features that a network's encoder computes anyway, of each thread its own."""

    def __init__(self, network: DepthNetwork) -> None:
        self._latest = threading.local()
        network.encoder.register_forward_hook(self._keep)

    def _keep(self, module: Any, inputs: Any, features: Any) -> None:
        self._latest.features = features

    def take(self) -> NDArray[np.float32] | None:
        """Return the features of this thread's latest frames, (B, D); None where there are none.

        A network that runs in another engine computes none here.
        """
        features = getattr(self._latest, "features", None)
        self._latest.features = None
        return None if features is None else pooled(features)
