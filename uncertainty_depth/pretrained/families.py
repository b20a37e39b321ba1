# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Hugging Face depth model families that can be wrapped: encoders and depth ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from uncertainty_depth.network.encoder import TransformersModel, resize_maps

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def working_size(config: PretrainedConfig) -> int:
    """Return height and width of every image that DepthPro sees, pixels.

    The image at the smallest scale is one patch.
    """
    return round(config.patch_size / min(config.scaled_images_ratios))


class DepthProBackbone(nn.Module):
    """DepthPro's encoder: patches, the whole image and its field of view, to the fusion's inputs.

    Images are resized to the working size, as in DepthPro.
    """

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
        """Return the image's width divided by its focal length (equation 1 in the paper).

        It is 1, the canonical value, without a field-of-view model.
        """
        if self.fov_model is None:
            return pixels.new_ones(len(pixels), 1, 1)
        field_of_view_deg = self.fov_model(pixels, coarsest).float()
        return 2.0 * torch.tan(0.5 * torch.deg2rad(field_of_view_deg))[:, None, None]


MIN_DEPTH_M = 1e-3
DPT_MAX_DEPTH_M = 80.0
DEPTH_PRO_MAX_DEPTH_M = 1e4
PROMPTED = "prompt_depth_anything"
"""Lin et al. 2025, "Prompting Depth Anything": it takes sparse depth, and gives its units."""
PROMPTED_MAX_DEPTH_M = 80.0
FAMILIES = ("depth_anything", "depth_pro", "dpt", "glpn", PROMPTED, "tipsv2_dpt", "zoedepth")
STRIDE = {"depth_pro": 1, "glpn": 32, "swinv2": 32}
"""Input pixels per pixel of the deepest map, for encoders without a patch size; 1 for any size."""

States = Callable[[TransformersModel, Tensor], Sequence[Tensor]]


def is_depth_model(config: PretrainedConfig) -> bool:
    """Return whether this config's depth model can be wrapped.

    A DPT-hybrid cannot, because it takes images of only one size.
    """
    return config.model_type in FAMILIES and not getattr(config, "is_hybrid", False)


def encoder_of(model: TransformersModel) -> tuple[TransformersModel, States]:
    """Return a depth model's encoder, and the function from encoder and pixels to states.

    The states are the inputs of the model's head, shallowest first.
    """
    if model.config.model_type == "glpn":
        return model.glpn, _all_states
    if model.config.model_type == "depth_pro":
        return DepthProBackbone(model), _outputs
    if getattr(model, "backbone", None) is None:
        return model.dpt, _selected_states
    return model.backbone, _feature_maps


def patch_size(config: PretrainedConfig) -> int:
    """Return the pixels that an image's height and width must be a multiple of."""
    encoder = _encoder_config(config)
    return STRIDE.get(encoder.model_type) or int(encoder.patch_size)


def image_size(config: PretrainedConfig) -> int:
    """Return the encoder's training image size; the larger side if they differ."""
    if config.model_type == "depth_pro":
        return working_size(config)
    sides = getattr(_encoder_config(config), "image_size", 384)
    return int(max(sides) if isinstance(sides, Sequence) else sides)


def metric_range(config: PretrainedConfig) -> tuple[float, float] | None:
    """Return the output's min and max depth, metres; None if the output is not in metres.

    DPT (Ranftl et al. 2021) and relative Depth Anything (Yang et al. 2024) give inverse depth up
    to an unknown scale and shift. DPT with DINOv2's head (Oquab et al. 2024), recognised by its
    projection, gives metres, up to 10 indoors and 80 outdoors; its config does not say so.
    DepthPro (Bochkovskii et al. 2024) gives inverse depth up to a factor from the field of view,
    which it may come with a model for. Prompt Depth Anything gives its prompt's units, here
    metres.
    """
    is_metric_depth_anything = (
        config.model_type == "depth_anything" and config.depth_estimation_type == "metric"
    )
    if config.model_type == PROMPTED:
        return MIN_DEPTH_M, PROMPTED_MAX_DEPTH_M
    if config.model_type in ("glpn", "tipsv2_dpt") or is_metric_depth_anything:
        return MIN_DEPTH_M, float(config.max_depth)
    if config.model_type == "zoedepth":
        return MIN_DEPTH_M, float(max(bins["max_depth"] for bins in config.bin_configurations))
    if config.model_type == "dpt" and config.add_projection:
        is_dinov2 = _encoder_config(config).model_type == "dinov2"
        return (MIN_DEPTH_M, DPT_MAX_DEPTH_M) if is_dinov2 else None
    if config.model_type == "depth_pro" and config.use_fov_model:
        return MIN_DEPTH_M, DEPTH_PRO_MAX_DEPTH_M
    return None


def _encoder_config(config: PretrainedConfig) -> PretrainedConfig:
    return getattr(config, "backbone_config", None) or config


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
