# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Mean and variance over samples, without holding the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Estimate(NamedTuple):
    """(h, w) float32 maps of one frame at the network's size.

    Attributes:
        depth_m: metres.
        epistemic: square metres, the biased variance of the samples' depths.
        aleatoric: square metres, the mean of the variances the samples predict; 0 without a head.
    """

    depth_m: Tensor
    epistemic: Tensor
    aleatoric: Tensor

    def maps(self, component: str = "total") -> NDArray[np.float32]:
        """Return (2, h, w): depth and the standard deviation of a component, metres.

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
    """Return float32 tensors of one device as arrays.

    From a GPU they come in one copy into pinned memory, waited for once.
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
    """Running mean and variance (Welford 1962), one sample at a time: chunks change no result.

    Depths are accumulated in their own precision, float32: Welford's update has no cancellation
    that needs more.

    Attributes:
        count: of the samples.
        mean: (h, w) of their depths, metres; 0 before the first one.
        squares: (h, w) sum of their squared distances to it.
        aleatoric: (h, w) mean of the variances that they predict; 0 without a head.
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
    """The moments of each frame of a batch, whose passes come one after the other."""

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
