"""The kinds of Hugging Face depth models that can be wrapped: what is the encoder of each, and what its output means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from uncertainty_depth.pretrained.depth_pro import DepthProBackbone, working_size

LEAST_DEPTH_M = 1e-3
GREATEST_DEPTH_M = 80.0
FARTHEST_M = 1e4  # of DepthPro
FAMILIES = ("depth_anything", "depth_pro", "dpt", "glpn", "tipsv2_dpt", "zoedepth")
STRIDE = {"depth_pro": 1, "glpn": 32, "swinv2": 32}
"""Of encoders without patches of one size: the whole number of pixels that its deepest map's pixels stand for; 1 where any size will do."""

States = Callable[[nn.Module, Tensor], Sequence[Tensor]]


def is_depth_model(config: PretrainedConfig) -> bool:
    """Whether this is the config of a depth model that can be wrapped. A DPT-hybrid takes images of one size only, so it cannot."""
    return config.model_type in FAMILIES and not getattr(config, "is_hybrid", False)


def encoder_of(model: PreTrainedModel) -> tuple[nn.Module, States]:
    """The part of the model that is pretrained on more than depth, and how it gives the states that the head is fed with, shallowest first."""
    if model.config.model_type == "glpn":
        return model.glpn, _all_states
    if model.config.model_type == "depth_pro":
        return DepthProBackbone(model), _as_it_gives
    return (
        (model.dpt, _chosen_states)
        if getattr(model, "backbone", None) is None
        else (model.backbone, _feature_maps)
    )


def patch_size(config: PretrainedConfig) -> int:
    """Pixels that the height and width of an image must be a multiple of."""
    encoder = _encoder_config(config)
    return STRIDE.get(encoder.model_type) or int(encoder.patch_size)


def image_size(config: PretrainedConfig) -> int:
    """Height and width that the encoder was trained at, as far as the config knows; the greater one where they differ."""
    if config.model_type == "depth_pro":
        return working_size(config)
    sides = getattr(_encoder_config(config), "image_size", 384)
    return int(max(sides) if isinstance(sides, Sequence) else sides)


def _encoder_config(config: PretrainedConfig) -> PretrainedConfig:
    return getattr(config, "backbone_config", None) or config


def metric_range(config: PretrainedConfig) -> tuple[float, float] | None:
    """Least and greatest depth that the model gives, metres; None where its output is no depth in metres.

    DPT (Ranftl et al. 2021) and Depth Anything (Yang et al. 2024) as it is trained first give inverse depth up to an unknown scale and shift.
    DPT with the head of DINOv2 (Oquab et al. 2024), known by its projection, gives metres: up to 10 indoors, 80 outdoors, but the config is silent.
    DepthPro (Bochkovskii et al. 2024) has inverse depth up to a factor that the field of view decides, and may come with a model of that.
    """
    if config.model_type in ("glpn", "tipsv2_dpt") or (
        config.model_type == "depth_anything" and config.depth_estimation_type == "metric"
    ):
        return LEAST_DEPTH_M, float(config.max_depth)
    if config.model_type == "zoedepth":
        return LEAST_DEPTH_M, float(max(bins["max_depth"] for bins in config.bin_configurations))
    if (
        config.model_type == "dpt"
        and config.add_projection
        and _encoder_config(config).model_type == "dinov2"
    ):
        return LEAST_DEPTH_M, GREATEST_DEPTH_M
    if config.model_type == "depth_pro" and config.use_fov_model:
        return LEAST_DEPTH_M, FARTHEST_M
    return None


def _as_it_gives(backbone: nn.Module, pixels: Tensor) -> Sequence[Tensor]:
    return backbone(pixels)


def _feature_maps(backbone: nn.Module, pixels: Tensor) -> Sequence[Tensor]:
    return backbone(pixels).feature_maps


def _all_states(model: Any, pixels: Tensor) -> Sequence[Tensor]:
    return model(pixels, output_hidden_states=True).hidden_states


def _chosen_states(model: Any, pixels: Tensor) -> Sequence[Tensor]:
    """The first of the states is the embedding of the patches."""
    states = model(pixels, output_hidden_states=True).hidden_states[1:]
    return [states[index] for index in sorted(model.config.backbone_out_indices)]
