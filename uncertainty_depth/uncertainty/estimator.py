# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The interface of all uncertainty methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.records import SampleRange
from uncertainty_depth.uncertainty.moments import Estimate

Place = Callable[[DepthNetwork], DepthNetwork]
"""Moves a loaded network to its device and precision."""


class Estimator(ABC):
    """Images to depth and variance. Any thread may call it, one at a time.

    Attributes:
        networks: those in use, the main one last; they may share an encoder.
    """

    networks: list[DepthNetwork]

    @classmethod
    @abstractmethod
    def load(cls, model: ModelFolder, place: Place) -> Estimator:
        """Load the members that the method needs.

        Raises:
            ModelError: the model has no such members.
        """

    @abstractmethod
    def estimate_batch(
        self,
        images: Tensor,
        stamps_ns: Sequence[int],
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> list[Estimate]:
        """Return the maps of each of B frames, whatever else is in the batch.

        What the samples of a frame share is computed once for all frames; their noise is each
        frame's own. Convolutions of a batch add in another order: against a frame alone, maps
        differ in the last digits of float32.

        Args:
            images: (B, 3, h, w) float32 RGB in [0, 1], on the networks' device.
            stamps_ns: times of the frames, nanoseconds; with `config.seed` they decide every
                random number.
            config: `samples`, `chunk` and `seed` are used; they may differ from call to call.
            samples: those to be used of the `passes`; None uses all, and so does a method of a
                single pass.
        """

    def estimate(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> Estimate:
        """Return the maps of one frame, (1, 3, h, w); see `estimate_batch`."""
        return self.estimate_batch(image, [stamp_ns], config, samples)[0]

    @abstractmethod
    def passes(self, config: PredictorConfig) -> int:
        """Return the number of samples in one estimate."""

    @abstractmethod
    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """Return the components of sigma that an estimate has, of `config.COMPONENTS`."""


def components_of(networks: Sequence[DepthNetwork], passes: int) -> tuple[str, ...]:
    """Return the components of averaged passes: several give epistemic, a head aleatoric sigma."""
    components = ["total"]
    if passes > 1:
        components.append("epistemic")
    if any(network.config.head != "none" for network in networks):
        components.append("aleatoric")
    return tuple(components)
