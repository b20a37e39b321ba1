# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ensembles: one pass through each of several networks that were trained differently.

- `multi_epochs` (Moukari et al. 2019, section IV): snapshots of one training run, taken once the
  validation error has stopped improving.
- `multi_inits` (Moukari et al. 2019; deep ensemble, Lakshminarayanan et al. 2017): different
  initial weights and frame order.
- `bagging` (Breiman 1996; Moukari et al. 2019): as `multi_inits`, and each member sees its own
  bootstrap sample of training frames.
- `multi_networks` (Moukari et al. 2019): members have different encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.estimator import (
    Estimate,
    Estimator,
    FrameMoments,
    Place,
    components_of,
)


class Ensemble(Estimator):
    """One pass through each of the last `samples` members; a shared encoder runs once."""

    def __init__(self, networks: Sequence[DepthNetwork]) -> None:
        self.networks = list(networks)

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> Ensemble:
        """Load all of the model's members."""
        return cls([place(network) for network in model.load_all(model.members)])

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`; at most the number of members."""
        return min(config.samples, len(self.networks))

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return components_of(self.networks, self.passes(config))

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; nothing is random.

        Members run one after the other, so memory is bounded by one pass, whatever the chunk.
        """
        moments = FrameMoments(len(stamps_ns))
        encoder = None
        features: Any = None
        for network in self._members(config, samples):
            if network.encoder is not encoder:
                encoder = network.encoder
                features = network.encode(images)
            output = network.decode(features, images.shape[-2:])
            moments.add(output.depth_m, network.variance(output))
        return moments.estimates()

    def _members(self, config: PredictorConfig, samples: SampleRange | None) -> list[DepthNetwork]:
        members = self.networks[-config.samples :]
        if samples is None:
            return members
        return [members[number] for number in samples.numbers(len(members))]
