# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Load a model's estimator for an engine, a device and a precision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from uncertainty_depth.contrib.engines.graphs import GraphPair, input_channels, output_of, trace
from uncertainty_depth.contrib.engines.runtimes import Compiled, Engine, make_engine, step
from uncertainty_depth.depth.estimators import ESTIMATORS, Estimator
from uncertainty_depth.depth.estimators.mc_dropout import seeded
from uncertainty_depth.depth.model_folder.model import ModelFolder
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput


class EngineNetwork:
    """`DepthNetwork` with its two halves compiled; a half that is never called is never compiled.

    `encoders` are compiled ones by the encoder's id, which networks with one encoder share.
    """

    def __init__(
        self, network: DepthNetwork, engine: Engine, encoders: dict[int, Compiled]
    ) -> None:
        self._network = network
        self._engine = engine
        self._encoders = encoders

    def __getattr__(self, name: str) -> Any:
        """Return what the network has besides: its config, its decoder, its parameters."""
        return getattr(self._network, name)

    def __call__(self, image: Tensor) -> NetworkOutput:
        """See `DepthNetwork.forward`."""
        return self.decode(self.encode(image), image.shape[-2:])

    def encode(self, image: Tensor) -> Any:
        """See `DepthNetwork`: arrays, for `decode`."""
        key = id(self._network.encoder)
        if key not in self._encoders:
            self._encoders[key] = self._engine.compile(self._plain.trunk, is_shared=True)
        return self._encoders[key]([self._pixels(image)])

    def decode(self, features: Any, size: Sequence[int]) -> NetworkOutput:
        """See `DepthNetwork`; at its input's size."""
        return output_of(self._decoder(features))

    def trunk(self, image: Tensor) -> tuple[None, Any]:
        """See `DepthNetwork`: no features, and arrays for `branches`."""
        return None, self._trunk([self._pixels(image)])

    def noise_shapes(self, trunk: Any) -> Sequence[tuple[int, ...]]:
        """See `DepthNetwork`."""
        return self._stochastic.noise_shapes

    def branches(
        self,
        trunk: Any,
        dropouts: Sequence[Any],
        noise: Sequence[Tensor],
        size: Sequence[int],
    ) -> NetworkOutput:
        """See `DepthNetwork`: the engine takes the noise that torch does."""
        return output_of(self._branches([*trunk, *(drawn.numpy() for drawn in noise)]))

    def _pixels(self, image: Tensor) -> NDArray[np.float32]:
        """Return the image with all channels of the graph: no sparse depth is 0 everywhere."""
        missing = input_channels(self._network) - image.shape[1]
        padded = functional.pad(image, (0, 0, 0, 0, 0, missing)) if missing else image
        pixels: NDArray[np.float32] = padded.numpy()
        return pixels

    @cached_property
    def _plain(self) -> GraphPair:
        with step("tracing the network"):
            return trace(self._network)

    @cached_property
    def _stochastic(self) -> GraphPair:
        with step("tracing the network"):
            return trace(
                self._network, [seeded(layer) for layer in self._network.decoder.dropouts]
            )

    @cached_property
    def _decoder(self) -> Compiled:
        return self._engine.compile(self._plain.branches)

    @cached_property
    def _trunk(self) -> Compiled:
        return self._engine.compile(self._stochastic.trunk, is_shared=True)

    @cached_property
    def _branches(self) -> Compiled:
        return self._engine.compile(self._stochastic.branches)


CPU = torch.device("cpu")


def load_compiled(
    model: ModelFolder, method: str, engine: str, precision: str, device: str
) -> tuple[Estimator, Engine]:
    """Return the compiled estimator of a method and its engine; see `predictor_settings.load`."""
    compiler = make_engine(engine, precision, device, Estimator.at_once)
    encoders: dict[int, Compiled] = {}

    def compile_network(network: DepthNetwork) -> DepthNetwork:
        prepared = prepare(network, CPU, "fp32")
        return cast(DepthNetwork, EngineNetwork(prepared, compiler, encoders))

    return ESTIMATORS[method].load(model, compile_network), compiler
