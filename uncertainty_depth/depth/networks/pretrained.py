# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A pretrained Hugging Face depth model as a network, with dropout and an error scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.backbone import backbone_mapping
from uncertainty_depth.depth.networks.decoder import raw_value
from uncertainty_depth.depth.networks.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.depth.networks.encoder import Encoder, TransformersModel, resize_maps
from uncertainty_depth.depth.networks.families import patch_size, working_size
from uncertainty_depth.depth.networks.pretrained_heads import HEADS, Features, PretrainedHead

START_WEIGHT = 0.1
States = Callable[[TransformersModel, Tensor], Sequence[Tensor]]


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


def encoder_of(model: TransformersModel) -> tuple[TransformersModel, States]:
    """Return a depth model's encoder, and what makes the head's inputs of it and pixels."""
    if model.config.model_type == "glpn":
        return model.glpn, _all_states
    if model.config.model_type == "depth_pro":
        return DepthProBackbone(model), _outputs
    if getattr(model, "backbone", None) is None:
        return model.dpt, _selected_states
    return model.backbone, _feature_maps


def _outputs(backbone: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    return backbone(pixels)


def _feature_maps(backbone: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    return backbone(pixels).feature_maps


def _all_states(model: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    return model(pixels, output_hidden_states=True).hidden_states


def _selected_states(model: TransformersModel, pixels: Tensor) -> Sequence[Tensor]:
    """Return the states that the config names; state 0 is the patch embedding."""
    states = model(pixels, output_hidden_states=True).hidden_states[1:]
    return [states[index] for index in sorted(model.config.backbone_out_indices)]


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
        self.decoder = HEADS[model.config.model_type](model, config)

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
