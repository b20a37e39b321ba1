# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Mean and variance over samples, without holding the samples."""

from __future__ import annotations

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

    @property
    def variance(self) -> Tensor:
        """Total variance: epistemic + aleatoric (Gustafsson et al. 2020, appendix A)."""
        return self.epistemic + self.aleatoric

    def maps(self, component: str = "total") -> NDArray[np.float32]:
        """Return (2, h, w): depth and the standard deviation of a component, metres.

        Args:
            component: one of `config.COMPONENTS`.
        """
        variance = self.variance if component == "total" else getattr(self, component)
        maps = torch.stack([self.depth_m, variance.sqrt()])
        return download(maps).numpy()


def download(maps: Tensor) -> Tensor:
    """Return a tensor on the CPU; from a GPU by one copy into pinned memory, waited for once."""
    if maps.device.type != "cuda":
        return maps.cpu()
    pinned = torch.empty(maps.shape, dtype=maps.dtype, pin_memory=True)
    pinned.copy_(maps, non_blocking=True)
    torch.cuda.current_stream(maps.device).synchronize()
    return pinned


class Moments:
    """Running mean and variance (Welford 1962), one sample at a time: chunks change no result.

    Depths are accumulated in their own precision, float32: Welford's update has no cancellation
    that needs more.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean = torch.zeros(())
        self._squares = torch.zeros(())
        self._aleatoric = torch.zeros(())

    def add(self, depths: Tensor, variances: Tensor | None) -> None:
        """Add (M, 1, h, w) depths in metres, and a head's variances in square metres."""
        for index, depth in enumerate(depths[:, 0]):
            if self.count == 0:
                self._mean = torch.zeros_like(depth)
                self._squares = torch.zeros_like(depth)
                self._aleatoric = torch.zeros_like(depth)
            self.count += 1
            difference = depth - self._mean
            self._mean += difference / self.count
            self._squares += difference * (depth - self._mean)
            if variances is not None:
                self._aleatoric += (variances[index, 0] - self._aleatoric) / self.count

    def estimate(self) -> Estimate:
        """Return the moments of the samples so far; at least one."""
        epistemic = (self._squares / self.count).clamp_min(0.0)
        return Estimate(self._mean, epistemic, self._aleatoric)
