# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The heads of pretrained depth models, with dropout between their stages, and their units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config import NetworkConfig
from uncertainty_depth.depth.networks.decoder import Dropout, DropoutDecoder
from uncertainty_depth.depth.networks.encoder import TransformersModel, resize_maps
from uncertainty_depth.depth.networks.families import DEPTH_PRO_MAX_DEPTH_M, metric_range

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


SCALE_WIDTH = 32


class Features(NamedTuple):
    """What the encoder returns.

    Attributes:
        states: shallowest first, (B, C, h, w) maps, or (B, 1 + h w, C) tokens, the class token
            first; DepthPro's last is the factor of its inverse depth.
        grid: rows and columns of patches.
    """

    states: tuple[Tensor, ...]
    grid: tuple[int, int]


class HeadTrunk(NamedTuple):
    """What the head computes before its first dropout.

    Attributes:
        first: (B, C, h, w), after the first stage.
        skips: the encoder's input to each further stage.
        deepest: the input of the first stage.
        grid: rows and columns of patches.
        factor: (B, 1, 1), factor of each image's output, if the encoder gives one.
    """

    first: Tensor
    skips: tuple[Tensor, ...]
    deepest: Tensor
    grid: tuple[int, int]
    factor: Tensor | None = None


class PretrainedHead(DropoutDecoder):
    """Everything of a depth model that is not its encoder.

    There is a dropout between any two fusion stages, as between the hourglass's up-projections.
    For a likelihood, a second output reads the last stage: the error's scale.

    Args:
        channels: number of channels in each stage's output.
        stages: number of fusion stages.
        units: turns the model's output into metres.
        config: of the network.
    """

    def __init__(self, channels: int, stages: int, units: Units, config: NetworkConfig) -> None:
        super().__init__()
        self.units = units
        self.dropouts = nn.ModuleList(nn.Dropout(config.dropout) for _ in range(stages - 1))
        self.scale = None if config.head == "none" else _scale_head(channels)

    @abstractmethod
    def trunk(self, features: Features) -> HeadTrunk:
        """See `DropoutDecoder`."""

    @abstractmethod
    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """Return a later stage's output at this height and width."""

    @abstractmethod
    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """Return the model's output, (B, h, w), from the results of all stages."""

    def branches(self, trunk: HeadTrunk, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        sizes = [skip.shape[-2:] for skip in trunk.skips[1:]]
        last_size = doubled(trunk.skips[-1].shape[-2:])
        states = []
        x = trunk.first
        stages = zip(trunk.skips, dropouts, [*sizes, last_size], strict=True)
        for number, (skip, dropout, size) in enumerate(stages, 1):
            states.append(dropout(x))
            x = self.stage(number, states[-1], skip, size)
        depth = self.depth([*states, x], trunk)[:, None]
        if self.scale is None:
            return depth
        return torch.cat([depth, resize_maps(self.scale(x), depth.shape[-2:])], dim=1)


def doubled(size: Sequence[int]) -> tuple[int, int]:
    """Return twice the height and width."""
    return 2 * size[0], 2 * size[1]


def _scale_head(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, SCALE_WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(SCALE_WIDTH, 1, 3, padding=1),
    )


class FusionHead(PretrainedHead):
    """The neck of DPT (Ranftl et al. 2021, section 3).

    States are reassembled into maps at four scales, and fused from coarsest to finest.
    """

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.fusion_hidden_size,
            len(model.neck.fusion_stage.layers),
            units_of(model.config),
            config,
        )
        self.neck: TransformersModel = model.neck

    @property
    def layers(self) -> TransformersModel:
        """The stages of the fusion."""
        return self.neck.fusion_stage.layers

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`; the finer maps' residual layers belong to the trunk too."""
        deepest, *finer = self._maps(features)
        skips = []
        size: Sequence[int] = deepest.shape[-2:]
        for layer, finer_map in zip(self.layers[1:], finer, strict=True):
            size = self.joined_size(size, finer_map)
            skips.append(layer.residual_layer1(resize_maps(finer_map, size)))
        first = self._fuse(0, deepest, skips[0].shape[-2:])
        return HeadTrunk(first, tuple(skips), deepest, features.grid)

    def joined_size(self, previous_size: Sequence[int], finer: Tensor) -> Sequence[int]:
        """Return the height and width at which a finer map joins the previous stage's."""
        return doubled(previous_size)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        return self._fuse(number, x + skip, size)

    def _maps(self, features: Features) -> list[Tensor]:
        """Return one map per scale, all with as many channels, coarsest first."""
        states = list(features.states)
        if self.neck.reassemble_stage is not None:
            states = self.neck.reassemble_stage(states, *features.grid)
        return [conv(state) for conv, state in zip(self.neck.convs, states, strict=True)][::-1]

    def _fuse(self, number: int, x: Tensor, size: Sequence[int]) -> Tensor:
        layer = self.layers[number]
        return layer.projection(resize_maps(layer.residual_layer2(x), size, align_corners=True))


class DptHead(FusionHead):
    """DPT's own head: three convolutions."""

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        self.head: TransformersModel = model.head

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states)


class DepthAnythingHead(DptHead):
    """Yang et al. 2024: DPT's head, but maps are joined at the finer map's size.

    The head takes the patch grid, which gives it the image's size.
    """

    def joined_size(self, previous_size: Sequence[int], finer: Tensor) -> Sequence[int]:
        """See `FusionHead`."""
        return finer.shape[-2:]

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states, *trunk.grid)


class ZoeHead(FusionHead):
    """Bhat et al. 2023: relative depth, and metric depth bins weighted by all stages."""

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        self.relative_head: TransformersModel = model.relative_head
        self.metric_head: TransformersModel = model.metric_head

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`.

        Without autocast: bfloat16 is too coarse for logarithms of probabilities near 0 and 1.
        """
        relative, features = self.relative_head(states)
        dtype = next(self.metric_head.parameters()).dtype
        with torch.autocast(features.device.type, enabled=False):
            bottleneck = trunk.deepest.to(dtype).expand(len(features), -1, -1, -1)
            blocks = [state.to(dtype).expand(len(features), -1, -1, -1) for state in states]
            outputs = self.metric_head(features.to(dtype), bottleneck, blocks, relative.to(dtype))
            return outputs[0].squeeze(1)


class GlpnHead(PretrainedHead):
    """Kim et al. 2022: maps at four scales, joined by selective feature fusion."""

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.decoder_hidden_size,
            len(model.decoder.stages),
            units_of(model.config),
            config,
        )
        self.decoder: TransformersModel = model.decoder
        self.head: TransformersModel = model.head

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`."""
        deepest, *finer = features.states[::-1]
        first_stage, *stages = self.decoder.stages
        skips = [
            stage.convolution(finer_map) for stage, finer_map in zip(stages, finer, strict=True)
        ]
        first = resize_maps(first_stage.convolution(deepest), skips[0].shape[-2:])
        return HeadTrunk(first, tuple(skips), deepest, features.grid)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        fusion = self.decoder.stages[number].fusion
        return resize_maps(fusion(skip.expand(len(x), -1, -1, -1), x), size)

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head([resize_maps(states[-1], doubled(states[-1].shape[-2:]))])


class DepthProHead(PretrainedHead):
    """Bochkovskii et al. 2024: fusion as in DPT, each stage enlarging its output.

    The result is canonical inverse depth, times the width divided by the focal length.
    """

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.fusion_hidden_size,
            model.fusion_stage.num_layers,
            units_of(model.config),
            config,
        )
        self.fusion_stage: TransformersModel = model.fusion_stage
        self.head: TransformersModel = model.head

    @property
    def layers(self) -> list[TransformersModel]:
        """The stages of the fusion."""
        return [*self.fusion_stage.intermediate, self.fusion_stage.final]

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`."""
        *maps, factor = features.states
        deepest, *finer = maps[::-1]
        first_layer, *layers = self.layers
        skips = [
            layer.residual_layer1(finer_map)
            for layer, finer_map in zip(layers, finer, strict=True)
        ]
        return HeadTrunk(first_layer(deepest), tuple(skips), deepest, features.grid, factor)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        return self.layers[number](x + skip)

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states[-1]) * trunk.factor


HEADS: dict[str, Callable[[TransformersModel, NetworkConfig], PretrainedHead]] = {
    "depth_anything": DepthAnythingHead,
    "depth_pro": DepthProHead,
    "dpt": DptHead,
    "glpn": GlpnHead,
    "zoedepth": ZoeHead,
}
