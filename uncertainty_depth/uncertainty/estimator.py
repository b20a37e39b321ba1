"""The one interface of all ways to get a sigma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty.moments import Estimate

Place = Callable[[DepthNetwork], DepthNetwork]
"""Brings a loaded network to its device and precision."""


class Estimator(Protocol):
    """Image to depth and variance. One estimator may be asked from any thread, by one at a time."""

    def estimate(self, image: Tensor, stamp_ns: int, config: PredictorConfig) -> Estimate:
        """Maps of one frame.

        Args:
            image: (1, 3, h, w) float32 RGB in [0, 1], on the networks' device.
            stamp_ns: time of the frame, nanoseconds; with `config.seed` it decides every random number.
            config: `samples`, `chunk` and `seed` count; they may differ from call to call.
        """
        ...

    def passes(self, config: PredictorConfig) -> int:
        """How many samples one estimate is made of."""
        ...

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """The parts of sigma that one estimate has, of `config.COMPONENTS`."""
        ...

    @property
    def networks(self) -> list[DepthNetwork]:
        """The networks in use, the one that stands for the model last; they may share an encoder."""
        ...


def components_of(networks: Sequence[DepthNetwork], passes: int) -> tuple[str, ...]:
    """The parts of sigma where passes of networks are averaged: several make it epistemic, a head makes it aleatoric."""
    has_head = any(network.config.head != "none" for network in networks)
    return ("total", *(["epistemic"] if passes > 1 else []), *(["aleatoric"] if has_head else []))
