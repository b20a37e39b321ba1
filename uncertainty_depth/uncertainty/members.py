# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One pass through each trained network, one or several.

With a head, `deterministic` is `log_likelihood` (Nix and Weigend 1994; Kendall and Gal 2017,
section 2.2): the network is trained with a normal or Laplace likelihood and predicts the
distribution's scale. `distilled` (after Hinton et al. 2015) learns a whole model's mean and sigma.

The ensembles differ in how their members were trained:

- `multi_epochs` (Moukari et al. 2019, section IV): snapshots of one training run, taken once the
  validation error has stopped improving.
- `multi_inits` (Moukari et al. 2019; deep ensemble, Lakshminarayanan et al. 2017): different
  initial weights and frame order.
- `bagging` (Breiman 1996; Moukari et al. 2019): as `multi_inits`, and each member sees its own
  bootstrap sample of training frames.
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
from uncertainty_depth.uncertainty.estimator import Estimate, Estimator, Moments, Place


class Deterministic(Estimator):
    """The variance of one network's head; 0 without a head."""

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; nothing is random.

        Members run one after the other, so memory is bounded by one pass.
        """
        members = self.networks[-config.samples :]
        if samples is not None:
            members = [members[number] for number in samples.numbers(len(members))]
        moments = Moments()
        encoder = None
        features: Any = None
        for network in members:
            if network.encoder is not encoder:
                encoder = network.encoder
                features = network.encode(images)
            output = network.decode(features, images.shape[-2:])
            moments.add(output.depth_m, network.variance(output))
        return moments.estimates()


class Ensemble(Deterministic):
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
