# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A pretrained Hugging Face depth model as a network: with dropout, an error scale, and metres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.backbone import backbone_mapping
from uncertainty_depth.depth.networks.decoder import Dropout, DropoutDecoder, raw_value
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel, resize_maps
from uncertainty_depth.depth.networks.families import (
    DEPTH_PRO_MAX_DEPTH_M,
    metric_range,
    patch_size,
    working_size,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig

START_WEIGHT = 0.1
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


class DepthProBackbone(nn.Module):
    """DepthPro's encoder: patches, whole image and field of view, resized to the working size."""

    def __init__(self, model: TransformersModel) -> None:
        super().__init__()
        self.depth_pro: TransformersModel = model.depth_pro
        self.fov_model: TransformersModel = model.fov_model
        self.size = working_size(model.config)

    def forward(self, pixels: Tensor) -> list[Tensor]:
        """Return the (B, C, h, w) maps of (B, 3, h, w) images, finest first, and a factor.

        The factor, (B, 1, 1), turns canonical inverse depth into inverse metres.
        """
        pixels = resize_maps(pixels, (self.size, self.size))
        maps = self.depth_pro(pixels).features
        return [*maps[::-1], self._width_by_focal_length(pixels, maps[0].detach())]

    def _width_by_focal_length(self, pixels: Tensor, coarsest: Tensor) -> Tensor:
        """Return the image's width over its focal length (equation 1 in the paper), or 1."""
        if self.fov_model is None:
            return pixels.new_ones(len(pixels), 1, 1)
        field_of_view_deg = self.fov_model(pixels, coarsest).float()
        return 2.0 * torch.tan(0.5 * torch.deg2rad(field_of_view_deg))[:, None, None]


def _all_states(model: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    return model(pixels, output_hidden_states=True).hidden_states


def _selected_states(model: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    """Return the states that the config names; state 0 is the patch embedding."""
    states = _all_states(model, pixels)[1:]
    return [states[index] for index in sorted(model.config.backbone_out_indices)]


def encoder_of(
    model: TransformersModel,
) -> tuple[TransformersModel, Callable[[TransformersModel, Tensor], Sequence[Tensor]]]:
    """Return a depth model's encoder, and what makes the head's inputs of it and pixels."""
    if model.config.model_type == "glpn":
        return model.glpn, _all_states
    if model.config.model_type == "depth_pro":
        return DepthProBackbone(model), lambda backbone, pixels: backbone(pixels)
    if getattr(model, "backbone", None) is None:
        return model.dpt, _selected_states
    return model.backbone, lambda backbone, pixels: backbone(pixels).feature_maps


class PretrainedEncoder(Encoder):
    """The model's encoder, with the normalisation in its config."""

    def __init__(self, model: TransformersModel) -> None:
        backbone, self._states = encoder_of(model)
        config = model.config
        super().__init__(backbone, config.image_mean, config.image_std, patch_size(config))

    def features(self, pixels: Tensor) -> Features:
        """See `Encoder`."""
        height, width = pixels.shape[-2:]
        grid = (height // self.patch, width // self.patch)
        return Features(tuple(self._states(self.backbone, pixels)), grid)


def _fused(head: PretrainedHead, trunk: Features) -> Any:
    return head.neck.fusion_stage(list(trunk.states))


def _zoe_depth(head: PretrainedHead, trunk: Features) -> Tensor:
    """Return metric depth bins weighted by all stages (Bhat et al. 2023).

    Without autocast: bfloat16 is too coarse for log near 0 and 1.
    """
    states, deepest = _fused(head, trunk), trunk.states[-1]
    relative, last = head.relative_head(states)
    dtype = next(head.metric_head.parameters()).dtype
    with torch.autocast(last.device.type, enabled=False):
        maps = [each.to(dtype).expand(last.shape[0], -1, -1, -1) for each in (deepest, *states)]
        outputs = head.metric_head(last.to(dtype), maps[0], maps[1:], relative.to(dtype))
        return outputs[0].squeeze(1)


def _depth_pro_depth(head: PretrainedHead, trunk: Features) -> Tensor:
    """Return canonical inverse depth times the image's width over its focal length."""
    *maps, factor = trunk.states
    return head.head(head.fusion_stage(maps[::-1])[-1]) * factor


class HeadLayout(NamedTuple):
    """What follows the encoder of a depth model, as its class runs it.

    Attributes:
        parts: names of the model's modules after its encoder.
        stages: returns the fusion stages, in the order in which they run.
        depth: returns the model's output, (B, h, w).
        channels: name of the number of channels in each stage's output, in the model's config.
    """

    parts: tuple[str, ...]
    stages: Callable[[PretrainedHead], list[TransformersModel]]
    depth: Callable[[PretrainedHead, Features], Tensor]
    channels: str = "fusion_hidden_size"


def _neck_stages(head: PretrainedHead) -> list[TransformersModel]:
    return list(head.neck.fusion_stage.layers)


HEADS = {
    # Ranftl et al. 2021, section 3: maps at four scales, fused from coarsest to finest
    "dpt": HeadLayout(
        ("neck", "head"), _neck_stages, lambda head, trunk: head.head(_fused(head, trunk))
    ),
    # Yang et al. 2024: the head takes the patch grid, which gives it the image's size
    "depth_anything": HeadLayout(
        ("neck", "head"),
        _neck_stages,
        lambda head, trunk: head.head(_fused(head, trunk), *trunk.grid),
    ),
    "zoedepth": HeadLayout(("neck", "relative_head", "metric_head"), _neck_stages, _zoe_depth),
    # Kim et al. 2022: maps at four scales, joined by selective feature fusion
    "glpn": HeadLayout(
        ("decoder", "head"),
        lambda head: list(head.decoder.stages),
        lambda head, trunk: head.head(head.decoder(list(trunk.states))),
        "decoder_hidden_size",
    ),
    # Bochkovskii et al. 2024: fusion as in DPT, each stage enlarging its output
    "depth_pro": HeadLayout(
        ("fusion_stage", "head"),
        lambda head: [*head.fusion_stage.intermediate, head.fusion_stage.final],
        _depth_pro_depth,
    ),
}


class PretrainedHead(DropoutDecoder):
    """Everything of a depth model that is not its encoder, as its class runs it.

    There is a dropout between any two fusion stages, as between the hourglass's up-projections: a
    hook on each stage. What comes before the first is computed once for all samples of a batch,
    and so is what a later stage adds from the encoder. For a likelihood, a second output reads the
    last stage: the error's scale.
    """

    neck: TransformersModel
    head: TransformersModel
    decoder: TransformersModel
    fusion_stage: TransformersModel
    relative_head: TransformersModel
    metric_head: TransformersModel

    def __init__(self, model: TransformersModel, config: NetworkConfig) -> None:
        super().__init__()
        self.units = units_of(model.config)
        self._layout = layout = HEADS[model.config.model_type]
        for name in layout.parts:
            setattr(self, name, getattr(model, name))
        stages = layout.stages(self)
        for stage in stages:
            stage.register_forward_hook(_after_stage)
        if model.config.model_type == "glpn":
            for stage in stages[1:]:
                stage.fusion.register_forward_pre_hook(_with_all_samples)
        self.dropouts = nn.ModuleList(nn.Dropout(config.dropout) for _ in stages[1:])
        channels = getattr(model.config, layout.channels)
        self.scale: nn.Sequential | None = None
        if config.head != "none":
            self.scale = nn.Sequential(
                nn.Conv2d(channels, SCALE_WIDTH, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(SCALE_WIDTH, 1, 3, padding=1),
            )

    def trunk(self, features: Features) -> Features:
        """See `DropoutDecoder`: a neck's maps before its fusion; else the first stage runs later.

        The neck is taken apart, as its class runs it, so that samples share its maps.
        """
        if "neck" not in self._layout.parts:
            return features
        states: Sequence[Tensor] = features.states
        if self.neck.reassemble_stage is not None:
            states = self.neck.reassemble_stage(list(states), *features.grid)
        maps = [conv(state) for conv, state in zip(self.neck.convs, states, strict=True)]
        return features._replace(states=tuple(maps))

    def branches(self, trunk: Features, dropouts: Sequence[Dropout]) -> Tensor:
        """See `DropoutDecoder`."""
        this = _Pass(dropouts, [])
        token = _PASS.set(this)
        try:
            depth = self._layout.depth(self, trunk)[:, None]
        finally:
            _PASS.reset(token)
        if self.scale is None:
            return depth
        scale = resize_maps(self.scale(this.outputs[-1]), depth.shape[-2:])
        return torch.cat([depth, scale], dim=1)


def _with_all_samples(_: nn.Module, maps: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Repeat the encoder's map for each sample: GLPN's fusion concatenates; a forward hook."""
    own, samples = maps
    return own.expand(samples.shape[0], -1, -1, -1), samples


class PretrainedDepth(DepthNetwork):
    """Any model of `families`, fine-tuned or unchanged.

    Before training it gives the model's own output if that is in metres and inside the depth
    range.

    Raises `ConfigError`: a value of the config is out of range.
    """

    architecture = "pretrained"
    encoder: PretrainedEncoder
    decoder: PretrainedHead

    def __init__(self, config: NetworkConfig, model: TransformersModel) -> None:
        super().__init__(config)
        self._model_config = backbone_mapping(model)
        self.encoder = PretrainedEncoder(model)
        self.decoder = PretrainedHead(model, config)

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`: the whole model's config."""
        return self._model_config

    def depth_of(self, raw: Tensor) -> Tensor:
        """See `DepthNetwork`; gradients pass the limits, so that a pixel there still learns."""
        depth = self.decoder.units(raw)
        return depth + (depth.clamp(*self.config.depth_range) - depth).detach()

    @torch.no_grad()
    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`; the depth is pretrained and keeps its weights."""
        if self.decoder.scale is not None:
            weight, _ = self.decoder.scale[-1].parameters()
            weight.mul_(START_WEIGHT)
        self._set_relative_error(relative_error)

    @torch.no_grad()
    def align(self, examples: Callable[[], tuple[Tensor, Tensor]]) -> None:
        """See `DepthNetwork`; the error scale starts at the median error after the fit."""
        images, targets = examples()
        training = self.training
        self.eval()
        raw = self.decoder(self.encode(images))[:, :1].float()
        output = resize_maps(raw, targets.shape[-2:])
        depth_m = targets[:, :1]
        valid = torch.isfinite(depth_m)
        self.decoder.units.fit(output[valid], depth_m[valid])
        error = (self.depth_of(output[valid]) - depth_m[valid]).abs() / depth_m[valid]
        self._set_relative_error(error.median().item())
        self.train(training)

    def _set_relative_error(self, relative_error: float) -> None:
        """Set the scale head's bias, if there is one."""
        if self.decoder.scale is not None:
            _, bias = self.decoder.scale[-1].parameters()
            bias.fill_(raw_value(relative_error, *RELATIVE_SCALE))
