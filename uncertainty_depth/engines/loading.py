# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Load a model's estimator for an engine, a device and a precision."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch

from uncertainty_depth.config import TRAINING_FREE_METHODS
from uncertainty_depth.engines.engine_network import EngineNetwork
from uncertainty_depth.engines.runtimes import Compiled, Engine, make_engine
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.inference.deployment import check_precision, choose_device, prepare
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty import ESTIMATORS, Estimator

CPU = torch.device("cpu")


class Loaded(NamedTuple):
    """An estimator that an engine runs.

    Attributes:
        estimator: of the method.
        engine: what runs it, as an option names it.
        precision: in which it computes.
        device: of the images it takes.
        compiler: the engine, if it is not torch.
    """

    estimator: Estimator
    engine: str
    precision: str
    device: torch.device
    compiler: Engine | None = None

    @property
    def description(self) -> str:
        """Readable name of engine, device and precision; complete after the first run."""
        if self.compiler is not None:
            return self.compiler.description
        return f"torch {torch.__version__} on {self.device} in {self.precision}"


def load(model: ModelFolder, method: str, engine: str, precision: str, device: str) -> Loaded:
    """Return the estimator of a method for one engine.

    Args:
        model: the folder.
        method: a name of `ESTIMATORS`.
        engine: torch, openvino or onnxruntime.
        precision: auto takes the engine's own.
        device: auto, cpu, cuda or cuda:0, cuda:1, ...

    Raises:
        ConfigError: the engine is not installed, cannot run the method, or has no such device or
            precision.
        ModelError: the model cannot be run with the method.
    """
    if engine == "torch":
        torch_device = choose_device(device)
        precision = "fp32" if precision == "auto" else precision
        check_precision(torch_device, precision)

        def place(network: DepthNetwork) -> DepthNetwork:
            return prepare(network, torch_device, precision)

        return Loaded(ESTIMATORS[method].load(model, place), engine, precision, torch_device)
    check_method(method, engine)
    compiler = make_engine(engine, precision, device)
    encoders: dict[int, Compiled] = {}

    def compile_network(network: DepthNetwork) -> DepthNetwork:
        prepared = prepare(network, CPU, "fp32")
        return cast(DepthNetwork, EngineNetwork(prepared, compiler, encoders))

    estimator: Any = ESTIMATORS[method].load(model, compile_network)
    return Loaded(estimator, engine, compiler.precision, CPU, compiler)


def check_method(method: str, engine: str) -> None:
    """Raise `ConfigError` where an engine other than torch cannot run a method.

    A graph has the size of one image, and the network's own dropouts at their rates.
    """
    if method in TRAINING_FREE_METHODS:
        raise ConfigError(
            f"method is {method!r}, which changes the image or the features of a network, but the "
            f"graphs of {engine} are fixed; expected engine torch, or another method"
        )
