# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""OpenVINO and ONNX Runtime behind one interface: a graph is compiled once, then called."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from uncertainty_depth.contrib.engines.graphs import (
    Graph,
    GraphPair,
    output_of,
    trace,
)
from uncertainty_depth.core.errors import ConfigError, missing
from uncertainty_depth.depth.estimators import ESTIMATORS, Estimator
from uncertainty_depth.depth.estimators.mc_dropout import seeded
from uncertainty_depth.depth.model_folder.folder import ModelFolder
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput

logger = logging.getLogger(__name__)

Compiled = Callable[[Sequence[Any]], list[Any]]
"""A compiled graph: its inputs to its outputs, which hold until the next call."""
TENSORRT = "TensorrtExecutionProvider"
CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
PROVIDERS = (TENSORRT, CUDA, CPU)
"""ONNX Runtime's, the fastest first."""
OPENVINO_TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
HOST = torch.device("cpu")


class OpenVino:
    """OpenVINO on the CPU, bfloat16 if the processor has it; raise `ConfigError` without it.

    It runs graphs in one `precision` on one `device`; `description` names both for a person.
    """

    device = "cpu"

    def __init__(self, precision: str, threads: int) -> None:
        require("openvino")
        import openvino

        self._core = openvino.Core()
        supported = set(self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
        if precision == "auto":
            precision = "bf16" if "BF16" in supported else "fp32"
        if precision.upper() not in supported:
            raise ConfigError(
                f"precision is {precision!r}, which OpenVINO does not have on this processor; "
                f"expected {' or '.join(p for p in OPENVINO_TYPES if p.upper() in supported)}"
            )
        self.precision = precision
        self._properties = {
            "INFERENCE_PRECISION_HINT": OPENVINO_TYPES[precision],
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        version = importlib.metadata.version("openvino")
        self.description = f"OpenVINO {version} on the CPU in {precision}, threads: {threads}"

    def compile(self, graph: Graph, is_shared: bool = False) -> Compiled:
        """Return the graph, ready to be called from one thread at a time.

        Outputs are arrays; those of a shared one stay on the device, as another graph's inputs. It
        is compiled at its first call, for this number of samples and for any other: for one number
        it is a tenth faster, and a number that comes later must not wait for it.
        """
        requests: dict[Any, Any] = {}

        def run(arrays: Sequence[Any]) -> list[NDArray[np.float32]]:
            shapes = tuple(array.shape for array in arrays)
            if not requests:
                given = dict(zip(graph.inputs, shapes, strict=True))
                requests[shapes] = self._request(graph, given)
                if graph.free:
                    rows = {name: (-1, *row) for name, row in graph.free.items()}
                    requests[None] = self._request(graph, given | rows)
            request = requests[shapes if shapes in requests else None]
            results = request.infer(list(arrays), share_inputs=True, share_outputs=True)
            return [results[number] for number in range(len(graph.outputs))]

        return run

    def _request(self, graph: Graph, shapes: dict[str, tuple[int, ...]]) -> Any:
        model = self._core.read_model(graph.onnx)
        model.reshape({name: list(shape) for name, shape in shapes.items()})
        with step("compiling for OpenVINO"):
            compiled = self._core.compile_model(model, "CPU", self._properties)
        return compiled.create_infer_request()


class OnnxRuntime:
    """ONNX Runtime: TensorRT or CUDA if they load, otherwise the CPU.

    Precision fp16 takes TensorRT, auto is fp32; `most_samples` are called with at once. Raises
    `ConfigError` if it, the device or the precision is not there.
    """

    def __init__(self, precision: str, threads: int, device: str, most_samples: int) -> None:
        require("onnxruntime")
        import onnxruntime

        has = onnxruntime.get_available_providers()
        self._providers = [name for name in PROVIDERS if name in has]
        if device == "cpu":
            self._providers = [CPU]
        self.precision = "fp32" if precision == "auto" else precision
        if self.precision != "fp32" and (precision, self._providers[0]) != ("fp16", TENSORRT):
            raise ConfigError(
                f"precision is {precision!r}, which engine 'onnxruntime' does not have here; "
                "expected 'fp32', 'fp16' with TensorRT, or another engine"
            )
        self._wants_gpu = device.startswith("cuda")
        if self._wants_gpu and self._providers == [CPU]:
            raise ConfigError(
                f"device is {device!r}, but this ONNX Runtime has no CUDA; "
                "run: python -m pip install onnxruntime-gpu"
            )
        self._number = int(device.partition(":")[2] or 0)
        self._most_samples = most_samples
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.log_severity_level = 3
        self._version = onnxruntime.__version__
        self._name(self._providers[0])

    def _name(self, provider: str) -> None:
        self.device = "cpu" if provider == CPU else f"cuda:{self._number}"
        place = provider.removesuffix("ExecutionProvider")
        self.description = f"ONNX Runtime {self._version} on {place} in {self.precision}"

    def compile(self, graph: Graph, is_shared: bool = False) -> Compiled:
        """See `OpenVino`; raise `ConfigError` if no provider for a wanted GPU loads."""
        import onnxruntime

        options = [self._options_of(provider, graph) for provider in self._providers]
        with step("compiling for ONNX Runtime"):
            session = onnxruntime.InferenceSession(
                graph.onnx, self._options, self._providers, options
            )
        self._check(session.get_providers())
        place, _, number = self.device.partition(":")

        def run(values: Sequence[Any]) -> list[Any]:
            binding = session.io_binding()
            for name, value in zip(graph.inputs, values, strict=True):
                if isinstance(value, np.ndarray):
                    binding.bind_cpu_input(name, np.ascontiguousarray(value))
                else:
                    binding.bind_ortvalue_input(name, value)
            for name in graph.outputs:
                if is_shared:
                    binding.bind_output(name, place, int(number or 0))
                else:
                    binding.bind_output(name)
            session.run_with_iobinding(binding)
            outputs: list[Any] = binding.get_outputs()
            return outputs if is_shared else [output.numpy() for output in outputs]

        return run

    def _check(self, loaded: Sequence[str]) -> None:
        """Say which providers did not load, and what computes instead."""
        self._name(loaded[0])
        absent = [name for name in self._providers if name not in loaded]
        if not absent:
            return
        told = (
            f"{' and '.join(absent)} of ONNX Runtime {self._version} did not load, so {loaded[0]} "
            "computes; expected the CUDA, cuDNN and TensorRT that this version was built for: "
            "onnxruntime.ai/docs/execution-providers"
        )
        if (self._wants_gpu and loaded[0] == CPU) or (
            self.precision == "fp16" and loaded[0] != TENSORRT
        ):
            raise ConfigError(told)
        self._providers = list(loaded)  # once is enough
        logger.warning(told)

    def _options_of(self, provider: str, graph: Graph) -> dict[str, Any]:
        if provider == CPU:
            return {}
        if provider == CUDA:
            return {"device_id": self._number}
        folder = cache_folder(self._version, graph.onnx)
        options = {
            "device_id": self._number,
            "trt_fp16_enable": self.precision == "fp16",
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(folder),
            "trt_timing_cache_enable": True,
            "trt_timing_cache_path": str(folder.parent),
        }
        # One engine for any number of samples: a budget must not build another on the way.
        for kind, samples in (
            ("min", 1),
            ("opt", self._most_samples),
            ("max", self._most_samples),
        ):
            shapes = [
                f"{name}:{'x'.join(map(str, (samples, *row)))}" for name, row in graph.free.items()
            ]
            if shapes:
                options[f"trt_profile_{kind}_shapes"] = ",".join(shapes)
        return options


Engine: TypeAlias = OpenVino | OnnxRuntime


def cache_folder(version: str, onnx: bytes) -> Path:
    """Return a folder for one graph's TensorRT engines, which ONNX Runtime names by structure."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "uncertainty_depth" / "tensorrt" / hashlib.sha256(onnx).hexdigest()[:16]
    folder = folder.with_name(f"{version}-{folder.name}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def step(what: str) -> tqdm[NoReturn]:
    """Return a bar that shows, on a terminal, what takes seconds before the first frame."""
    return tqdm(total=1, desc=what, unit="graph", leave=False, disable=None)


def is_installed(name: str) -> bool:
    """Return whether an engine, "torch", "openvino" or "onnxruntime", can be used."""
    libraries = ("torch",) if name == "torch" else (name, "onnx")
    return all(importlib.util.find_spec(library) is not None for library in libraries)


def require(name: str) -> None:
    """Raise `ConfigError` if an engine is not installed, with the command that installs it."""
    if not is_installed(name):
        raise ConfigError(f"engine is {name!r}: {missing(name)}")


def make_engine(name: str, precision: str, device: str, most_samples: int) -> Engine:
    """Return "openvino" or "onnxruntime", or raise `ConfigError`."""
    import torch

    threads = min(torch.get_num_threads(), os.cpu_count() or 1)  # as many as torch would use
    if name == "onnxruntime":
        return OnnxRuntime(precision, threads, device, most_samples)
    if name != "openvino":
        raise ConfigError(f"engine is {name!r}; expected torch, openvino or onnxruntime")
    if device.startswith("cuda"):
        raise ConfigError(
            f"device is {device!r}, which engine 'openvino' does not have; "
            "expected 'cpu' or 'auto'"
        )
    return OpenVino(precision, threads)


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
        return self._encoders[key]([image.numpy()])

    def decode(self, features: Any, size: Sequence[int]) -> NetworkOutput:
        """See `DepthNetwork`; at its input's size."""
        return output_of(self._decoder(features))

    def trunk(self, image: Tensor) -> tuple[None, Any]:
        """See `DepthNetwork`: no features, and arrays for `branches`."""
        return None, self._trunk([image.numpy()])

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


def load_compiled(
    model: ModelFolder, method: str, engine: str, precision: str, device: str
) -> tuple[Estimator, Engine]:
    """Return the compiled estimator of a method and its engine; see `predictor_settings.load`."""
    compiler = make_engine(engine, precision, device, Estimator.at_once)
    encoders: dict[int, Compiled] = {}

    def compile_network(network: DepthNetwork) -> DepthNetwork:
        prepared = prepare(network, HOST, "fp32")
        return cast(DepthNetwork, EngineNetwork(prepared, compiler, encoders))

    return ESTIMATORS[method].load(model, compile_network), compiler
