# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One pass of one network.

With a head this is `log_likelihood` (Nix and Weigend 1994; Kendall and Gal 2017, section 2.2): the
network is trained with a normal or Laplace likelihood and predicts the distribution's scale.
`distilled` (after Hinton et al. 2015) learns a whole model's mean and total sigma.
"""

from __future__ import annotations

from collections.abc import Sequence

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


class Deterministic(Estimator):
    """The variance of the network's head; 0 without a head."""

    def __init__(self, network: DepthNetwork) -> None:
        self.networks = [network]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> Deterministic:
        """Load the model's last member."""
        return cls(place(model.load(model.members[-1])))

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return 1

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return components_of(self.networks, 1)

    @torch.inference_mode()
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """See `Estimator`; depends on the images alone."""
        network = self.networks[0]
        moments = FrameMoments(len(stamps_ns))
        output = network(images)
        moments.add(output.depth_m, network.variance(output))
        return moments.estimates()


class Distilled(Deterministic):
    """One network trained on a whole model's total sigma; it has no other component."""

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return ("total",)
