# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The interface of all uncertainty methods, and their samples' mean and variance."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.device_errors import free_memory, is_out_of_memory
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators.cuda_graphs import CudaGraphs
from uncertainty_depth.depth.model_folder.folder import ModelFolder
from uncertainty_depth.depth.networks.deployment import cuda_arithmetic
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput
from uncertainty_depth.depth.networks.encoder import download

logger = logging.getLogger(__name__)


class Estimate(NamedTuple):
    """One frame's (h, w) float32 maps at the network's size.

    Variances are in square metres: of the sampled depths, biased, and the samples' mean predicted
    one. Features are the image's, from the main network's encoder; None if not known.
    """

    depth_m: Tensor
    epistemic: Tensor
    aleatoric: Tensor
    features: Any = None

    def stacked(self) -> Tensor:
        """Return (2, h, w): depth and sigma, metres (total variance: Gustafsson et al. 2020)."""
        return torch.stack([self.depth_m, (self.epistemic + self.aleatoric).sqrt()])

    def maps(self) -> NDArray[np.float32]:
        """Return `stacked` as an array."""
        return download([self.stacked()])[0]


Samples = tuple[Tensor, Tensor | None]
"""(m, h, w) depths in metres, and a head's variances in square metres."""


class Moments:
    """Mean and variance of a frame's samples, part by part (Chan et al. 1983).

    Depths are accumulated in float32: the update has no cancellation that needs more.

    Args:
        in_order: add samples one by one (Welford 1962), so that maps do not depend on how many are
            computed at once; otherwise those of a call in one reduction.
    """

    def __init__(self, in_order: bool = True) -> None:
        self._in_order = in_order
        self._count = 0
        self._mean: Tensor | float = 0.0
        self._squares: Tensor | float = 0.0  # distances to the mean
        self._aleatoric: Tensor | float = 0.0

    def add(self, depths_m: Tensor, variances: Tensor | None) -> None:
        """Add `Samples`."""
        length = 1 if self._in_order else len(depths_m)
        for start in range(0, len(depths_m), length):
            part = slice(start, start + length)
            self._add(depths_m[part], None if variances is None else variances[part])

    def _add(self, depths_m: Tensor, variances: Tensor | None) -> None:
        count = len(depths_m)
        before = self._count
        self._count += count
        weight = self._count / count
        squares: Tensor | float = 0.0
        if count == 1:
            mean = depths_m[0]
        else:
            spread, mean = torch.var_mean(depths_m, 0, correction=0)
            squares = count * spread
        if variances is None:
            aleatoric = None
        else:
            aleatoric = variances[0] if count == 1 else variances.mean(0)
        if before == 0:
            own = torch.clone if count == 1 else torch.as_tensor  # a graph's maps are overwritten
            self._mean = own(mean)
            self._squares = squares
            self._aleatoric = 0.0 if aleatoric is None else own(aleatoric)
            return
        difference = mean - self._mean
        self._mean = self._mean + difference / weight
        between = difference * (mean - self._mean)
        self._squares = self._squares + (between if count == 1 else squares + count * between)
        if aleatoric is not None:
            self._aleatoric = self._aleatoric + (aleatoric - self._aleatoric) / weight

    def estimate(self, features: Any = None) -> Estimate:
        """Return the frame's moments; there was at least one sample."""
        mean = torch.as_tensor(self._mean)
        epistemic = self._squares
        if isinstance(epistemic, Tensor):
            epistemic = (epistemic / self._count).clamp_min(0.0)
        epistemic_m2, aleatoric_m2 = (
            values if isinstance(values, Tensor) else torch.zeros_like(mean)
            for values in (epistemic, self._aleatoric)
        )
        return Estimate(mean, epistemic_m2, aleatoric_m2, features)


Place = Callable[[DepthNetwork], DepthNetwork]
"""Moves a loaded network to its device and precision."""


class Estimator(ABC):
    """Estimates depth and variance from images. Any thread may call it, one at a time.

    By default one network, the model's last member, in one pass.

    Attributes:
        networks: the networks in use, the main one last; they may share an encoder.
        few_launches: whether everything is computed in as few operations as possible, as a GPU
            wants it; otherwise in little memory, one after the other.
        at_once: samples computed in one batch: more take more memory, and change nothing. Halved
            when memory runs out.
        tf32: whether a GPU rounds what it convolves to TensorFloat-32.
    """

    networks: list[DepthNetwork]
    at_once: int = 8
    tf32: bool = False

    def __init__(self, network: DepthNetwork) -> None:
        self.networks = [network]

    @cached_property
    def device(self) -> torch.device:
        """The networks' device."""
        return next(self.networks[-1].parameters()).device

    @cached_property
    def few_launches(self) -> bool:
        """See the class."""
        return self.device.type == "cuda"

    @cached_property
    def _graphs(self) -> CudaGraphs:
        return CudaGraphs()

    def run(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Return `function(*inputs)`, with few launches if wanted; see `CudaGraphs.run`."""
        return self._graphs.run(function, *inputs) if self.few_launches else function(*inputs)

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> Estimator:
        """Load the members that the method needs; raise `ModelError` if the model has none."""
        return cls(place(model.load(model.members[-1])))

    @torch.inference_mode()
    def estimate(
        self,
        image: Tensor,
        stamp_ns: int,
        config: PredictorConfig,
        samples: SampleRange | None = None,
    ) -> Estimate:
        """Return a frame's maps.

        If memory runs out, half as many samples are computed at once, from then on; if one alone
        does not fit, it is computed without CUDA graphs.
        """
        passes = self.passes(config)
        numbers = range(passes) if samples is None else samples.numbers(passes)
        while True:
            try:
                with cuda_arithmetic(image.device, self.tf32):
                    return self.compute(image, stamp_ns, config, numbers)
            except Exception as error:
                together = self.computed_together(config)
                if not is_out_of_memory(error) or (together == 1 and not len(self._graphs)):
                    raise
            if together > 1:
                self.at_once = together // 2
                change = f"{self.at_once} are computed at once"
            else:
                self._graphs.are_on = False
                change = "the network runs without CUDA graphs"
            self._graphs.forget()
            free_memory()
            logger.warning(
                "memory ran out for %d samples at once; from now on %s, which takes longer",
                together, change,
            )  # fmt: skip

    @abstractmethod
    def compute(
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """Return the maps of the samples with these numbers, of as many as `passes`."""

    def samples_of(self, output: NetworkOutput) -> Samples:
        """Return a network's (m, 1, h, w) maps as samples."""
        variance = self.networks[-1].variance(output)
        return output.depth_m[:, 0], None if variance is None else variance[:, 0]

    def passes(self, config: PredictorConfig) -> int:
        """Return the number of samples in one estimate."""
        return 1

    def computed_together(self, config: PredictorConfig) -> int:
        """Return the number of samples that take memory at the same time."""
        return min(self.at_once, self.passes(config))
