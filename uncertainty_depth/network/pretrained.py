# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A pretrained Hugging Face depth model as a network, with dropout and an error scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.backbone import backbone_mapping
from uncertainty_depth.network.decoder import raw_value
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import Encoder, TransformersModel, resize_maps
from uncertainty_depth.network.families import PROMPTED, encoder_of, patch_size
from uncertainty_depth.network.pretrained_heads import HEADS, Features, PretrainedHead
from uncertainty_depth.network.sparse import fill

START_WEIGHT = 0.1
MIN_SPAN_M = 1e-6
"""Range of a prompt that is the same everywhere, as in the model's own processor."""


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


class PromptedEncoder(PretrainedEncoder):
    """An encoder that also passes sparse depth to the head, as its prompt.

    The transformers class scales each prompt to [0, 1] by its own min and max, and would count a
    pixel without depth as 0 m. So the prompt is made dense first.
    """

    def forward(self, image: Tensor) -> Any:
        """Return the features of (B, 3 or 4, h, w) images: RGB in [0, 1], and metres.

        The last two states are the prompt in [0, 1], (B, 1, h, w), and its range and min, (B, 2,
        1) metres. Range and min are NaN if no depth is known: the model then has no metric scale.
        """
        states, grid = super().forward(image[:, :3])
        sparse_m = functional.pad(image, (0, 0, 0, 0, 0, 4 - image.shape[1]))[:, 3:]
        dense_m = fill(sparse_m)
        low = dense_m.amin(dim=(2, 3))
        span = (dense_m.amax(dim=(2, 3)) - low).clamp_min(MIN_SPAN_M)
        prompt = (dense_m - low[..., None, None]) / span[..., None, None]
        scale = torch.where(low > 0, torch.cat([span, low], dim=1), torch.nan)[..., None]
        return Features((*states, prompt.to(states[0].dtype), scale), grid)


class PretrainedDepth(DepthNetwork):
    """Any model of `families`, fine-tuned or unchanged.

    Before training it gives the model's own output if that is in metres and inside the depth
    range.

    Raises:
        ConfigError: a value of the config is out of range.
    """

    architecture = "pretrained"
    encoder: PretrainedEncoder
    decoder: PretrainedHead

    def __init__(self, config: NetworkConfig, model: TransformersModel) -> None:
        super().__init__(config)
        self._model_config = backbone_mapping(model)
        is_prompted = model.config.model_type == PROMPTED
        self.encoder = PromptedEncoder(model) if is_prompted else PretrainedEncoder(model)
        self.decoder = HEADS[model.config.model_type](model, config)

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`: the config of the whole model."""
        return self._model_config

    def depth_of(self, raw: Tensor) -> Tensor:
        """See `DepthNetwork`.

        The gradient passes the depth range's limits; otherwise a pixel beyond them would never
        learn.
        """
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
