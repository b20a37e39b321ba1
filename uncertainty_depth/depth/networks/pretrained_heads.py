# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The heads of pretrained depth models, with dropout between their stages, and their units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.decoder import Dropout, DropoutDecoder
from uncertainty_depth.depth.networks.encoder import TransformersModel, resize_maps
from uncertainty_depth.depth.networks.families import DEPTH_PRO_MAX_DEPTH_M, metric_range

if TYPE_CHECKING:
    from transformers import PretrainedConfig

HALF = 0.5


class DepthScaling(nn.Module, ABC):
    """A positive function of the output with one or two learned numbers.

    They adapt the depth to another camera or environment. They stay in float32 whatever the rest
    of the network is: a rounding error in the logarithm is a factor on every depth.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> DepthScaling:
        """Move to another device like any module, but stay float32 in a cast."""
        return super()._apply(lambda values: values.to(fn(values).device), recurse)

    @abstractmethod
    def forward(self, output: Tensor) -> Tensor:
        """Return the model's output as positive metres."""

    @abstractmethod
    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """Fit the learned numbers to outputs with known depth; both arrays are flat."""


class Metric(DepthScaling):
    """Metres, times a factor that is 1 before the fit."""

    def forward(self, output: Tensor) -> Tensor:
        """See `DepthScaling`."""
        return self.log_scale.exp() * output.float()

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `DepthScaling`: the median ratio."""
        ratio = (depth_m / output).median()
        if torch.isfinite(ratio) and ratio > 0:
            self.log_scale.data.copy_(ratio.log())


class InverseMetric(Metric):
    """Inverse metres, clipped as in DepthPro's own processor, with a factor as in `Metric`."""

    def forward(self, output: Tensor) -> Tensor:
        """See `DepthScaling`."""
        return super().forward(_reciprocal(output))

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `Metric`."""
        super().fit(_reciprocal(output), depth_m)


class InverseDepth(DepthScaling):
    """Inverse depth up to a positive scale and shift: depth is positive and finite."""

    def __init__(self) -> None:
        super().__init__()
        self.log_shift = nn.Parameter(torch.zeros(()))

    def forward(self, output: Tensor) -> Tensor:
        """See `DepthScaling`."""
        return 1.0 / (self.log_scale.exp() * output.float() + self.log_shift.exp())

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `DepthScaling`: least squares in inverse depth (Ranftl et al. 2020, eq. 4).

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


class Unaligned(DepthScaling):
    """The unchanged output: inverse depth up to an unknown scale and shift, without a unit."""

    def forward(self, output: Tensor) -> Tensor:
        """See `DepthScaling`."""
        return output.float()

    def fit(self, output: Tensor, depth_m: Tensor) -> None:
        """See `DepthScaling`; there is nothing to fit."""


def units_of(config: PretrainedConfig) -> DepthScaling:
    """Return the units of a depth model's output."""
    if metric_range(config) is None:
        return InverseDepth()
    return InverseMetric() if config.model_type == "depth_pro" else Metric()


def _reciprocal(inverse: Tensor) -> Tensor:
    return 1.0 / inverse.float().clamp(1.0 / DEPTH_PRO_MAX_DEPTH_M, DEPTH_PRO_MAX_DEPTH_M)


SCALE_WIDTH = 32


class Features(NamedTuple):
    """What the encoder returns, and what the neck makes of it.

    Attributes:
        states: shallowest first, (B, C, h, w) maps, or (B, 1 + h w, C) tokens, the class token
            first; DepthPro's last is its inverse depth's factor.
        grid: rows and columns of patches.
    """

    states: tuple[Tensor, ...]
    grid: tuple[int, int]


class _Pass(NamedTuple):
    """A pass through a head's fusion stages, with the dropouts between and the outputs so far."""

    dropouts: Sequence[Dropout]
    outputs: list[Tensor]


_PASS: ContextVar[_Pass | None] = ContextVar("pass", default=None)
"""What the hooks of this thread's stages act in, as any thread may predict; None if the model runs
by itself."""


def _after_stage(_: nn.Module, __: Any, output: Tensor) -> Tensor:
    """Drop units of a stage's output, unless it is the last stage's; a forward hook."""
    if (this := _PASS.get()) is None:
        return output
    if len(this.outputs) < len(this.dropouts):
        output = this.dropouts[len(this.outputs)](output)
    this.outputs.append(output)
    return output


class PretrainedHead(DropoutDecoder):
    """Everything of a depth model that is not its encoder, as its class runs it.

    There is a dropout between any two fusion stages, as between the hourglass's up-projections: a
    hook on each stage. What comes before the first is computed once for all samples of a batch,
    and so is what a later stage adds from the encoder. For a likelihood, a second output reads the
    last stage: the error's scale.

    Attributes:
        parts: names of the model's modules after its encoder.
        channels: name of the number of channels in each stage's output, in the model's config.
    """

    parts: ClassVar[tuple[str, ...]]
    channels: ClassVar[str] = "fusion_hidden_size"

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__()
        self.units = units_of(model.config)
        for name in self.parts:
            setattr(self, name, getattr(model, name))
        stages = self.stages()
        for stage in stages:
            stage.register_forward_hook(_after_stage)
        self.dropouts = nn.ModuleList(nn.Dropout(config.dropout) for _ in stages[1:])
        channels = getattr(model.config, self.channels)
        self.scale = None if config.head == "none" else _scale_head(channels)

    @abstractmethod
    def stages(self) -> list[TransformersModel]:
        """Return the fusion stages, in the order in which they run."""

    @abstractmethod
    def depth(self, trunk: Features) -> Tensor:
        """Return the model's output, (B, h, w)."""

    def trunk(self, features: Features) -> Features:
        """See `DropoutDecoder`: the first stage runs with the others."""
        return features

    def branches(self, trunk: Features, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        this = _Pass(dropouts, [])
        token = _PASS.set(this)
        try:
            depth = self.depth(trunk)[:, None]
        finally:
            _PASS.reset(token)
        if self.scale is None:
            return depth
        scale = resize_maps(self.scale(this.outputs[-1]), depth.shape[-2:])
        return torch.cat([depth, scale], dim=1)


def _scale_head(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, SCALE_WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(SCALE_WIDTH, 1, 3, padding=1),
    )


class DptHead(PretrainedHead):
    """Ranftl et al. 2021, section 3: maps at four scales, fused from coarsest to finest.

    The neck is taken apart, as its class runs it, so that samples share its maps.
    """

    parts: ClassVar[tuple[str, ...]] = ("neck", "head")
    neck: TransformersModel
    head: TransformersModel

    def stages(self) -> list[TransformersModel]:
        """See `PretrainedHead`."""
        return list(self.neck.fusion_stage.layers)

    def trunk(self, features: Features) -> Features:
        """See `DropoutDecoder`: the maps that the stages fuse."""
        states: Sequence[Tensor] = features.states
        if self.neck.reassemble_stage is not None:
            states = self.neck.reassemble_stage(list(states), *features.grid)
        maps = [conv(state) for conv, state in zip(self.neck.convs, states, strict=True)]
        return features._replace(states=tuple(maps))

    def depth(self, trunk: Features) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(self.neck.fusion_stage(list(trunk.states)))


class DepthAnythingHead(DptHead):
    """Yang et al. 2024: the head takes the patch grid, which gives it the image's size."""

    def depth(self, trunk: Features) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(self.neck.fusion_stage(list(trunk.states)), *trunk.grid)


class ZoeHead(DptHead):
    """Bhat et al. 2023: relative depth, and metric depth bins weighted by all stages."""

    parts = ("neck", "relative_head", "metric_head")
    relative_head: TransformersModel
    metric_head: TransformersModel

    def depth(self, trunk: Features) -> Tensor:
        """See `PretrainedHead`; no autocast: bfloat16 is too coarse for log near 0 and 1."""
        states, deepest = self.neck.fusion_stage(list(trunk.states)), trunk.states[-1]
        relative, last = self.relative_head(states)
        dtype = next(self.metric_head.parameters()).dtype
        with torch.autocast(last.device.type, enabled=False):
            maps = [
                each.to(dtype).expand(last.shape[0], -1, -1, -1) for each in (deepest, *states)
            ]
            outputs = self.metric_head(last.to(dtype), maps[0], maps[1:], relative.to(dtype))
            return outputs[0].squeeze(1)


class GlpnHead(PretrainedHead):
    """Kim et al. 2022: maps at four scales, joined by selective feature fusion."""

    parts = ("decoder", "head")
    channels = "decoder_hidden_size"
    decoder: TransformersModel
    head: TransformersModel

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        for stage in self.stages()[1:]:
            stage.fusion.register_forward_pre_hook(_with_all_samples)

    def stages(self) -> list[TransformersModel]:
        """See `PretrainedHead`."""
        return list(self.decoder.stages)

    def depth(self, trunk: Features) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(self.decoder(list(trunk.states)))


def _with_all_samples(_: nn.Module, maps: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Repeat the encoder's map for each sample: the fusion concatenates; a forward hook."""
    own, samples = maps
    return own.expand(samples.shape[0], -1, -1, -1), samples


class DepthProHead(PretrainedHead):
    """Bochkovskii et al. 2024: fusion as in DPT, each stage enlarging its output.

    The result is canonical inverse depth, times the width divided by the focal length.
    """

    parts = ("fusion_stage", "head")
    fusion_stage: TransformersModel
    head: TransformersModel

    def stages(self) -> list[TransformersModel]:
        """See `PretrainedHead`."""
        return [*self.fusion_stage.intermediate, self.fusion_stage.final]

    def depth(self, trunk: Features) -> Tensor:
        """See `PretrainedHead`."""
        *maps, factor = trunk.states
        return self.head(self.fusion_stage(maps[::-1])[-1]) * factor


HEADS: dict[str, Callable[[TransformersModel, NetworkConfig], PretrainedHead]] = {
    "depth_anything": DepthAnythingHead,
    "depth_pro": DepthProHead,
    "dpt": DptHead,
    "glpn": GlpnHead,
    "zoedepth": ZoeHead,
}
