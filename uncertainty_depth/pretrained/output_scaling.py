# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Units of pretrained depth models' output: functions from the output to metres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from uncertainty_depth.pretrained.families import DEPTH_PRO_MAX_DEPTH_M, metric_range

if TYPE_CHECKING:
    from transformers import PretrainedConfig

HALF = 0.5


class Units(nn.Module, ABC):
    """A positive function of the output with one or two learned numbers.

    They adapt the depth to another camera or environment. They stay in float32 whatever the rest
    of the network is: a rounding error in the logarithm is a factor on every depth.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Units:
        """Move to another device like any module, but stay float32 in a cast."""
        return super()._apply(lambda values: values.to(fn(values).device), recurse)

    @abstractmethod
    def forward(self, output: Tensor) -> Tensor:
        """Return the model's output as positive metres."""

    @abstractmethod
    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """Fit the learned numbers to outputs with known depth; both arrays are flat."""


class Metric(Units):
    """Metres, times a factor that is 1 before the fit."""

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return self.log_scale.exp() * output.float()

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Units`: the median ratio."""
        ratio = (depth_m / output).median()
        if torch.isfinite(ratio) and ratio > 0:
            self.log_scale.data.copy_(ratio.log())


class InverseMetric(Metric):
    """Inverse metres, clipped as in DepthPro's own processor, with a factor as in `Metric`."""

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return super().forward(_reciprocal(output))

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Metric`."""
        super().fit(_reciprocal(output), depth_m)


class InverseDepth(Units):
    """Inverse depth up to scale and shift.

    Both are positive, so depth is positive and finite for any output of 0 or more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_shift = nn.Parameter(torch.zeros(()))

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return 1.0 / (self.log_scale.exp() * output.float() + self.log_shift.exp())

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Units`: least squares in inverse depth (Ranftl et al. 2020, eq. 4).

        The max depth limits the shift. If there is no positive solution, scale and shift each make
        up half of the mean inverse depth.
        """
        output = output.double()
        inverse = 1.0 / depth_m.double()
        min_shift = inverse.min() * HALF
        mean = inverse.mean()
        scale = ((output - output.mean()) * (inverse - mean)).mean() / output.var(correction=0)
        shift = (mean - scale * output.mean()).clamp_min(min_shift)
        scale = (mean - shift) / output.mean()
        if not (torch.isfinite(scale) and scale > 0):
            scale = HALF * mean / output.mean().clamp_min(1e-6)
            shift = HALF * mean
        self.log_scale.data.copy_(scale.log())
        self.log_shift.data.copy_(shift.log())


class Unaligned(Units):
    """The unchanged output: inverse depth up to an unknown scale and shift, without a unit."""

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return output.float()

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Units`; there is nothing to fit."""


def units_of(config: PretrainedConfig) -> Units:
    """Return the units of a depth model's output."""
    if metric_range(config) is None:
        return InverseDepth()
    return InverseMetric() if config.model_type == "depth_pro" else Metric()


def _reciprocal(inverse: Tensor) -> Tensor:
    return 1.0 / inverse.float().clamp(1.0 / DEPTH_PRO_MAX_DEPTH_M, DEPTH_PRO_MAX_DEPTH_M)
