# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The interface of all uncertainty methods, and their samples' mean and variance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
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

    def maps(self, component: str = "total") -> NDArray[np.float32]:
        """Return (2, h, w): depth and a component's standard deviation, metres.

        Args:
            component: one of `config.COMPONENTS`.
        """
        return download([self.stacked(component)])[0]

    def stacked(self, component: str = "total") -> Tensor:
        """Return `maps` where they were computed.

        The total variance is epistemic + aleatoric (Gustafsson et al. 2020, appendix A).
        """
        if component == "total":
            variance = self.epistemic + self.aleatoric
        else:
            variance = getattr(self, component)
        return torch.stack([self.depth_m, variance.sqrt()])


def download(values: Sequence[Tensor]) -> list[NDArray[np.float32]]:
    """Return float32 tensors on one device as arrays.

    GPU tensors are copied to pinned memory together, with one synchronisation.
    """
    device = values[0].device
    if device.type != "cuda":
        return [value.numpy() for value in values]
    together = torch.cat([value.flatten() for value in values])
    pinned = torch.empty(together.shape, pin_memory=True)
    pinned.copy_(together, non_blocking=True)
    torch.cuda.current_stream(device).synchronize()
    parts = pinned.split([value.numel() for value in values])
    return [part.view(value.shape).numpy() for part, value in zip(parts, values, strict=True)]


@dataclass
class Moments:
    """Running mean and variance (Welford 1962), one sample at a time, whatever the chunks.

    Depths are accumulated in float32: Welford's update has no cancellation that needs more.

    Attributes:
        count: number of samples.
        mean: (h, w) mean depth, metres; 0 before the first sample.
        squares: (h, w) sum of squared distances to the mean.
        aleatoric: (h, w) mean of the predicted variances; 0 without a head.
    """

    count: int = 0
    mean: Tensor | float = 0.0
    squares: Tensor | float = 0.0
    aleatoric: Tensor | float = 0.0

    def add(self, depths: Tensor, variances: Tensor | None) -> None:
        """Add (M, 1, h, w) depths in metres, and a head's variances in square metres."""
        for index, depth in enumerate(depths[:, 0]):
            self.count += 1
            difference = depth - self.mean
            self.mean += difference / self.count
            self.squares += difference * (depth - self.mean)
            if variances is not None:
                self.aleatoric += (variances[index, 0] - self.aleatoric) / self.count

    def estimate(self) -> Estimate:
        """Return the moments of the samples so far; at least one."""
        mean = torch.as_tensor(self.mean)
        epistemic = torch.as_tensor(self.squares / self.count).clamp_min(0.0)
        return Estimate(mean, epistemic, torch.zeros_like(mean) + self.aleatoric)


class FrameMoments:
    """Moments of each frame in a batch whose passes come one after the other."""

    def __init__(self, frames: int) -> None:
        self._frames = [Moments() for _ in range(frames)]

    def add(self, depths: Tensor, variances: Tensor | None) -> None:
        """Add a pass: (B, 1, h, w) depths in metres, and a head's variances in square metres."""
        for index, moments in enumerate(self._frames):
            frame = slice(index, index + 1)
            moments.add(depths[frame], None if variances is None else variances[frame])

    def estimates(self) -> list[Estimate]:
        """Return the moments of each frame; there was at least one pass."""
        return [moments.estimate() for moments in self._frames]


Place = Callable[[DepthNetwork], DepthNetwork]
"""Moves a loaded network to its device and precision."""


class Estimator(ABC):
    """Estimates depth and variance from images. Any thread may call it, one at a time.

    Attributes:
        networks: the networks in use, the main one last; they may share an encoder.
    """

    networks: list[DepthNetwork]

    @classmethod
    @abstractmethod
    def load(cls, model: ModelFolder, place: Place) -> Estimator:
        """Load the members that the method needs.

        Raises:
            ModelError: the model has no such members.
        """

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
            config: `samples`, `chunk` and `seed` are used; they may differ from call to call.
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

    @abstractmethod
    def passes(self, config: PredictorConfig) -> int:
        """Return the number of samples in one estimate."""

    @abstractmethod
    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """Return the sigma components of an estimate, from `config.COMPONENTS`."""


def components_of(networks: Sequence[DepthNetwork], passes: int) -> tuple[str, ...]:
    """Return the sigma components: several passes give epistemic, a head gives aleatoric."""
    components = ["total"]
    if passes > 1:
        components.append("epistemic")
    if any(network.config.head != "none" for network in networks):
        components.append("aleatoric")
    return tuple(components)
