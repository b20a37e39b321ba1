"""What the output of a pretrained depth model means, and how it becomes metres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from uncertainty_depth.pretrained.families import FARTHEST_M, metric_range

HALF = 0.5


class Units(nn.Module, ABC):
    """A positive function of the output with few learned numbers, which say how another camera or another room changes the depth.

    Float32 whatever the rest of the network is: an error of the logarithm would be one factor for every depth.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Units:
        """What torch moves and casts a module by: follows to another device, and stays float32."""
        return super()._apply(lambda values: values.to(fn(values).device), recurse)

    @abstractmethod
    def forward(self, output: Tensor) -> Tensor:
        """Output of the model to positive metres."""

    @abstractmethod
    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """Choose the learned numbers by outputs of known depth, both flat."""


class Metric(Units):
    """Metres, times a factor that is 1 as long as nothing is fitted."""

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return self.log_scale.exp() * output.float()

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Units`: the median ratio."""
        ratio = (depth_m / output).median()
        if torch.isfinite(ratio) and ratio > 0:
            self.log_scale.data.copy_(ratio.log())


class InverseMetric(Metric):
    """The same of inverse metres, cut off where DepthPro's own processor does it."""

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return super().forward(_reciprocal(output))

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Metric`."""
        super().fit(_reciprocal(output), depth_m)


class InverseDepth(Units):
    """Inverse depth up to scale and shift, which both are positive: whatever the output, 0 or more, the depth is positive and finite."""

    def __init__(self) -> None:
        super().__init__()
        self.log_shift = nn.Parameter(torch.zeros(()))

    def forward(self, output: Tensor) -> Tensor:
        """See `Units`."""
        return 1.0 / (self.log_scale.exp() * output.float() + self.log_shift.exp())

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Units`: least squares in inverse depth (Ranftl et al. 2020, eq. 4), the farthest depth a limit to the shift.

        Where that has no positive solution, each of the two makes half of the mean inverse depth.
        """
        output = output.double()
        inverse = 1.0 / depth_m.double()
        shift_least = inverse.min() * HALF
        mean = inverse.mean()
        scale = ((output - output.mean()) * (inverse - mean)).mean() / output.var(correction=0)
        shift = (mean - scale * output.mean()).clamp_min(shift_least)
        scale = (mean - shift) / output.mean()
        if not (torch.isfinite(scale) and scale > 0):
            scale = HALF * mean / output.mean().clamp_min(1e-6)
            shift = HALF * mean
        self.log_scale.data.copy_(scale.log())
        self.log_shift.data.copy_(shift.log())


def units_of(config: PretrainedConfig) -> Units:
    """Of a depth model's output."""
    if metric_range(config) is None:
        return InverseDepth()
    return InverseMetric() if config.model_type == "depth_pro" else Metric()


def _reciprocal(inverse: Tensor) -> Tensor:
    return 1.0 / inverse.float().clamp(1.0 / FARTHEST_M, FARTHEST_M)
