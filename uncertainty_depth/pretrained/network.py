"""A pretrained depth model of Hugging Face as a network: its encoder, its head with dropout and a scale of the error, and metres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.network.backbone import backbone_mapping
from uncertainty_depth.network.decoder import raw_value
from uncertainty_depth.network.depth_network import RELATIVE_SCALE, DepthNetwork
from uncertainty_depth.network.encoder import Encoder
from uncertainty_depth.pretrained.families import encoder_of, patch_size
from uncertainty_depth.pretrained.head import Features, PretrainedHead, resized
from uncertainty_depth.pretrained.heads import HEADS

START_WEIGHT = 0.1


class PretrainedEncoder(Encoder):
    """The model's encoder, with the normalisation that its config notes."""

    def __init__(self, model: PreTrainedModel) -> None:
        backbone, self._states = encoder_of(model)
        super().__init__(
            backbone, model.config.image_mean, model.config.image_std, patch_size(model.config)
        )

    def features(self, pixels: Tensor) -> Features:
        """See `Encoder`."""
        height, width = pixels.shape[-2:]
        return Features(
            tuple(self._states(self.backbone, pixels)), (height // self.patch, width // self.patch)
        )


class PretrainedDepth(DepthNetwork):
    """Any model of `families`, fine-tuned or as it is.

    Until it is trained it gives what the model gives, where that is in metres and inside the depth range.

    Raises:
        ConfigError: a value of the config is out of range.
    """

    architecture = "pretrained"
    encoder: PretrainedEncoder
    decoder: PretrainedHead

    def __init__(self, config: NetworkConfig, model: PreTrainedModel) -> None:
        super().__init__(config)
        self._model_config = backbone_mapping(model)
        self.encoder = PretrainedEncoder(model)
        self.decoder = HEADS[model.config.model_type](model, config)

    @property
    def backbone_config(self) -> dict[str, Any]:
        """See `DepthNetwork`: the config of the whole model."""
        return self._model_config

    def depth_of(self, raw: Tensor) -> Tensor:
        """See `DepthNetwork`. The gradient goes through where the depth range cuts off, or such a pixel would never learn."""
        depth = self.decoder.units(raw)
        return depth + (depth.clamp(*self.config.depth_range) - depth).detach()

    def start_from_constant(self, depth_m: float, relative_error: float) -> None:
        """See `DepthNetwork`: the depth has weights of its own."""
        if self.decoder.scale is not None:
            self.decoder.scale[-1].weight.data.mul_(START_WEIGHT)
            self._expect(relative_error)

    @torch.no_grad()
    def align(self, examples: Callable[[], tuple[Tensor, Tensor]]) -> None:
        """See `DepthNetwork`: the units are fitted, and the scale of the error starts at the median error that is then left."""
        images, targets = examples()
        training = self.training
        _ = self.eval()
        depth_m = targets[:, :1]
        output = resized(self.decoder(self.encode(images))[:, :1].float(), targets.shape[-2:])
        known = torch.isfinite(depth_m)
        self.decoder.units.fit(output[known], depth_m[known])
        error = (self.depth_of(output[known]) - depth_m[known]).abs() / depth_m[known]
        if self.decoder.scale is not None:
            self._expect(error.median().item())
        self.train(training)

    def _expect(self, relative_error: float) -> None:
        nn.init.constant_(self.decoder.scale[-1].bias, raw_value(relative_error, *RELATIVE_SCALE))
