# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Learned Error (Moukari et al. 2019): a second network predicts the first's absolute error."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.estimator import Estimate, Estimator, Place

ERROR = "error"
DEPTH = "depth"


class LearnedError(Estimator):
    """One network's depth; sigma is another network's predicted absolute error, uncalibrated."""

    def __init__(self, error: DepthNetwork, depth: DepthNetwork) -> None:
        self.networks = [error, depth]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> LearnedError:
        """Load both of the model's members.

        Raises:
            ModelError: the model has no such members.
        """
        if not {ERROR, DEPTH} <= set(model.members):
            raise ModelError(
                f"learned_error needs members {ERROR!r} and {DEPTH!r}, but {model.path} has "
                f"{', '.join(model.members)}; expected another method"
            )
        error, depth = model.load_all([ERROR, DEPTH])
        return cls(place(error), place(depth))

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return 1

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`; the error is learned as a whole."""
        return ("total",)

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; depends on the images alone."""
        error, depth = self.networks
        size = images.shape[-2:]
        features = depth.encode(images)
        has_shared_encoder = error.encoder is depth.encoder
        error_features = features if has_shared_encoder else error.encode(images)
        depths_m = depth.decode(features, size).depth_m[:, 0].clone()  # an engine's is overwritten
        errors_m = error.decode(error_features, size).depth_m[:, 0]
        return [
            Estimate(depth_m, torch.zeros_like(depth_m), error_m.square())
            for depth_m, error_m in zip(depths_m, errors_m, strict=True)
        ]
