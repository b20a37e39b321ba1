# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The interface of all uncertainty methods, and their samples' mean and variance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import download
from uncertainty_depth.records import SampleRange


class Estimate(NamedTuple):
    """One frame's (h, w) float32 maps at the network's size.

    Attributes:
        depth_m: metres.
        epistemic: square metres, the biased variance of the sampled depths.
        aleatoric: square metres, mean of the samples' predicted variances; 0 without a head.
    """

    depth_m: Tensor
    epistemic: Tensor
    aleatoric: Tensor

    def maps(self) -> NDArray[np.float32]:
        """Return (2, h, w): depth and its standard deviation, metres."""
        return download([self.stacked()])[0]

    def stacked(self) -> Tensor:
        """Return `maps` where they were computed.

        The total variance is epistemic + aleatoric (Gustafsson et al. 2020, appendix A).
        """
        return torch.stack([self.depth_m, (self.epistemic + self.aleatoric).sqrt()])


class Moments:
    """Running mean and variance of B frames (Welford 1962), one pass at a time.

    Depths are accumulated in float32: Welford's update has no cancellation that needs more.
    """

    def __init__(self) -> None:
        self._count = 0
        self._mean: Tensor | float = 0.0
        self._squares: Tensor | float = 0.0  # distances to the mean
        self._aleatoric: Tensor | float = 0.0

    def add(self, depths_m: Tensor, variances: Tensor | None) -> None:
        """Add a pass: (B, 1, h, w) depths in metres, and a head's variances in square metres."""
        depth = depths_m[:, 0]
        self._count += 1
        difference = depth - self._mean
        self._mean = self._mean + difference / self._count
        self._squares = self._squares + difference * (depth - self._mean)
        if variances is not None:
            self._aleatoric = self._aleatoric + (variances[:, 0] - self._aleatoric) / self._count

    def estimates(self) -> list[Estimate]:
        """Return the moments of each frame; there was at least one pass."""
        mean = torch.as_tensor(self._mean)
        epistemic = torch.as_tensor(self._squares / self._count).clamp_min(0.0)
        aleatoric = torch.zeros_like(mean) + self._aleatoric
        return [Estimate(*maps) for maps in zip(mean, epistemic, aleatoric, strict=True)]


Place = Callable[[DepthNetwork], DepthNetwork]
"""Moves a loaded network to its device and precision."""


class Estimator(ABC):
    """Estimates depth and variance from images. Any thread may call it, one at a time.

    By default one network, the model's last member, in one pass.

    Attributes:
        networks: the networks in use, the main one last; they may share an encoder.
    """

    networks: list[DepthNetwork]

    def __init__(self, network: DepthNetwork) -> None:
        self.networks = [network]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> Estimator:
        """Load the members that the method needs.

        Raises:
            ModelError: the model has no such members.
        """
        return cls(place(model.load(model.members[-1])))

    @abstractmethod
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """Return the maps of B frames, each independent of the rest of the batch.

        What a frame's samples share is computed once for all frames; noise is drawn per frame.
        Batched convolutions add in another order, so maps differ from a single frame's in the last
        digits of float32.

        Args:
            images: (B, 3, h, w) float32 RGB in [0, 1], on the networks' device.
            stamps_ns: frame times, nanoseconds; with `config.seed` they determine every random
                number.
            config: `samples` and `seed` are used; they may differ from call to call.
            samples: which of the `passes` to use; None uses all. Single-pass methods ignore it.
        """

    def estimate(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> Estimate:
        """Return one frame's maps, from (1, 3, h, w); see `estimate_batch`."""
        return self.estimate_batch(image, [stamp_ns], config, samples)[0]

    def passes(self, config: PredictorConfig) -> int:
        """Return the number of samples in one estimate."""
        return 1
