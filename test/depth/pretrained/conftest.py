# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tiny models from the real classes with random weights, saved to folders."""

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from transformers import (
    AutoModelForDepthEstimation,
    BeitConfig,
    DepthAnythingConfig,
    DepthProConfig,
    Dinov2Config,
    DPTConfig,
    GLPNConfig,
    PretrainedConfig,
    PreTrainedModel,
    Swinv2Config,
    ZoeDepthConfig,
)

from test.conftest import ListSource, wall
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.networks.hourglass import make_network
from uncertainty_depth.depth.networks.pretrained import PretrainedDepth

METRIC = (
    "depth_anything_metric",
    "depth_pro",
    "glpn",
    "zoedepth",
    "zoedepth_of_two_domains",
)
RELATIVE = ("depth_anything", "dpt", "dpt_of_dinov2", "dpt_of_beit", "dpt_of_swinv2")
MEAN = [0.4, 0.5, 0.6]
STD = [0.2, 0.3, 0.25]
FUSION = {"neck_hidden_sizes": [4, 6, 8, 12], "fusion_hidden_size": 8}
VIT = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}
ZOE = {
    "bottleneck_features": 8,
    "num_attractors": [4, 3, 2, 1],
    "bin_embedding_dim": 8,
    "num_relative_features": 4,
    **FUSION,
}
PATCHES = {
    f"patch_transformer_{name}": value
    for name, value in (
        ("hidden_size", 128),
        ("intermediate_size", 16),
        ("num_attention_heads", 2),
    )
}
BINS = {"n_bins": 8, "min_depth": 1e-3}


def dinov2() -> Dinov2Config:
    return Dinov2Config(
        patch_size=14, image_size=56, out_indices=[1, 2, 3, 4], reshape_hidden_states=False, **VIT
    )


def depth_anything(**values: object) -> DepthAnythingConfig:
    return DepthAnythingConfig(
        backbone_config=dinov2(), reassemble_hidden_size=16, head_hidden_size=4, **FUSION, **values
    )


def beit() -> BeitConfig:
    stages = ["stage1", "stage2", "stage3", "stage4"]
    relative = {"use_relative_position_bias": True, "reshape_hidden_states": False}
    return BeitConfig(image_size=64, intermediate_size=32, out_features=stages, **relative, **VIT)


def swinv2() -> Swinv2Config:
    stages = ["stage1", "stage2", "stage3", "stage4"]
    return Swinv2Config(
        image_size=64,
        embed_dim=4,
        depths=[1, 2, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=4,
        out_features=stages,
    )


def depth_pro(**values: object) -> DepthProConfig:
    """Images are 128 x 128, patches 32 at scales 1/4, 1/2 and 1."""
    vit = Dinov2Config(patch_size=8, image_size=32, **VIT)
    parts = dict.fromkeys(("image_model_config", "patch_model_config", "fov_model_config"), vit)
    hooks = {"intermediate_hook_ids": [3, 1], "intermediate_feature_dims": [8, 8]}
    return DepthProConfig(
        patch_size=32,
        fusion_hidden_size=8,
        scaled_images_feature_dims=[12, 10, 8],
        **hooks,
        **parts,
        **values,
    )


def configs() -> dict[str, PretrainedConfig]:
    domains = [
        {"name": "nyu", "max_depth": 10.0, **BINS},
        {"name": "kitti", "max_depth": 80.0, **BINS},
    ]
    own = {"image_size": 64, "intermediate_size": 32, "backbone_out_indices": [0, 1, 2, 3]}
    return {
        "depth_anything_metric": depth_anything(depth_estimation_type="metric", max_depth=20),
        "depth_anything": depth_anything(),
        "depth_pro": depth_pro(use_fov_model=True),
        "depth_pro_without_fov": depth_pro(),
        "dpt": DPTConfig(**own, **VIT, **FUSION),
        "dpt_of_dinov2": DPTConfig(backbone_config=dinov2(), **FUSION),
        "dpt_of_beit": DPTConfig(backbone_config=beit(), **FUSION),
        "dpt_of_swinv2": DPTConfig(
            backbone_config=swinv2(), **{**FUSION, "neck_hidden_sizes": [4, 8, 16, 32]}
        ),
        "dpt_metric": DPTConfig(
            backbone_config=dinov2(), add_projection=True, **{**FUSION, "fusion_hidden_size": 256}
        ),
        "glpn": GLPNConfig(
            hidden_sizes=[4, 8, 12, 16],
            depths=[1] * 4,
            num_attention_heads=[1, 1, 2, 2],
            decoder_hidden_size=8,
        ),
        "zoedepth": ZoeDepthConfig(
            backbone_config=beit(), bin_configurations=[{"max_depth": 10.0, **BINS}], **ZOE
        ),
        "zoedepth_of_two_domains": ZoeDepthConfig(
            backbone_config=beit(),
            bin_configurations=domains,
            num_patch_transformer_layers=4,
            **PATCHES,
            **ZOE,
        ),
    }


@functools.cache
def random_model(family: str) -> PreTrainedModel:
    """Return a model with large random weights: a fresh model's output is nearly constant.

    With this seed no model's last ReLU is 0 everywhere.
    """
    torch.manual_seed(4)
    model = AutoModelForDepthEstimation.from_config(configs()[family]).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(0.0, 0.2) if weights.ndim > 1 else weights.uniform_(0.05, 0.15)
        if family.startswith("depth_pro"):
            model.head.layers[-2].bias.fill_(8.0)  # nothing is infinitely far
        if family == "depth_pro":
            model.fov_model.head.layers[-1].weight.mul_(200.0)
            model.fov_model.head.layers[-1].bias.fill_(50.0)  # degrees
    return model


@torch.no_grad()
def by_hand(family: str, images: torch.Tensor) -> torch.Tensor:
    """The model's own output for images in [0, 1]; DepthPro's is in inverse metres."""
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    outputs = random_model(family)((images - mean) / std)
    if family != "depth_pro":
        return outputs.predicted_depth
    width = 2.0 * torch.tan(0.5 * torch.deg2rad(outputs.field_of_view))
    return outputs.predicted_depth * width[:, None, None]


def metres(family: str, images: torch.Tensor) -> torch.Tensor:
    """Depth at the image's size, as the processor's `post_process_depth_estimation`."""
    found = by_hand(family, images)
    if family == "depth_pro":
        found = 1.0 / found.clamp(1e-4, 1e4)
    return functional.interpolate(found[:, None], images.shape[-2:], mode="bilinear")[:, 0]


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where models are saved once, for all tests."""
    return tmp_path_factory.mktemp("hub")


@pytest.fixture
def saved(hub: Path, tmp_path: Path) -> Callable[..., Path]:
    """Returns the folder of a model and its preprocessing, which the test may change."""

    def saving(family: str, **settings: object) -> Path:
        if not (hub / family).exists():
            random_model(family).save_pretrained(hub / family)
        folder = tmp_path / "hub" / family
        shutil.copytree(hub / family, folder, dirs_exist_ok=True)
        preprocessor = {
            "do_normalize": True,
            "image_mean": MEAN,
            "image_std": STD,
            "size": {"height": 56, "width": 56},
            **settings,
        }
        (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
        return folder

    return saving


@pytest.fixture
def network(saved) -> Callable[..., PretrainedDepth]:
    """From a saved model, in evaluation mode."""

    def making(family: str, **options: object) -> PretrainedDepth:
        torch.manual_seed(2)
        return make_network(
            NetworkConfig(
                backbone=str(saved(family)),
                **{"depth_range": (1e-3, 1e4), "head": "none", **options},
            )
        ).eval()

    return making


@pytest.fixture
def source() -> ListSource:
    return ListSource([wall(index) for index in range(8)])


@pytest.fixture(autouse=True)
def quick(one_thread: None) -> None:
    """For every test in this folder."""
