"""Mean and variance over samples, without holding the samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Estimate(NamedTuple):
    """(h, w) float32 maps of one frame at the network's size."""

    depth_m: Tensor
    epistemic: Tensor  # square metres: the biased variance of the samples' depths
    aleatoric: (
        Tensor  # square metres: the mean of the variances the samples predict; 0 without a head
    )

    @property
    def variance(self) -> Tensor:
        """The law of total variance: epistemic + aleatoric (Gustafsson et al. 2020, appendix A)."""
        return self.epistemic + self.aleatoric

    def maps(self, component: str = "total") -> NDArray[np.float32]:
        """(2, h, w): depth and the standard deviation of a component (`config.COMPONENTS`), metres."""
        variance = self.variance if component == "total" else getattr(self, component)
        return torch.stack([self.depth_m, variance.sqrt()]).cpu().numpy()


class Moments:
    """Running mean and variance (Welford 1962), one sample after the other, so that chunks cannot change the result.

    Depths are accumulated in the precision they come in, float32: Welford's update has no cancellation that would ask for more.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean = self._squares = self._aleatoric = torch.zeros(())

    def add(self, depths: Tensor, variances: Tensor | None) -> None:
        """Fold in (M, 1, h, w) depths in metres, and the variances a head predicts in square metres."""
        for index, depth in enumerate(depths[:, 0]):
            self._add_one(depth, None if variances is None else variances[index, 0])

    def _add_one(self, depth: Tensor, variance: Tensor | None) -> None:
        if self.count == 0:
            self._mean, self._squares, self._aleatoric = (
                torch.zeros_like(depth) for _ in range(3)
            )
        self.count += 1
        difference = depth - self._mean
        self._mean += difference / self.count
        self._squares += difference * (depth - self._mean)
        if variance is not None:
            self._aleatoric += (variance - self._aleatoric) / self.count

    def estimate(self) -> Estimate:
        """The moments of all samples so far; at least one."""
        return Estimate(self._mean, (self._squares / self.count).clamp_min(0.0), self._aleatoric)
