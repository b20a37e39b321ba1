# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""OpenVINO and ONNX Runtime behind one interface: a graph is compiled once, then called."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.contrib.engines.graphs import Graph
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.extras import missing

Arrays = Sequence[NDArray[Any]]
Compiled = Callable[[Arrays], list[NDArray[np.float32]]]
"""A compiled graph: its inputs to its outputs, which hold until the next call."""
PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")
"""Of ONNX Runtime, the fastest first."""
OPENVINO_TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}


class Engine(Protocol):
    """Runs graphs in one precision on one device.

    Attributes:
        precision: one of `network.deployment.DTYPES`, in which most of it computes.
        description: name, version, device and precision, for a person.
    """

    precision: str
    description: str

    def compile(self, graph: Graph) -> Compiled:
        """Return the graph, ready to be called from one thread at a time."""
        ...


class OpenVino:
    """OpenVINO on the CPU; bfloat16 by default if the processor supports it.

    Raises:
        ConfigError: it is not installed, or the processor lacks the precision.
    """

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

    def compile(self, graph: Graph) -> Compiled:
        """See `Engine`; compiled again for each number of samples, at its first call."""
        requests: dict[tuple[tuple[int, ...], ...], Any] = {}

        def run(arrays: Arrays) -> list[NDArray[np.float32]]:
            shapes = tuple(array.shape for array in arrays)
            if shapes not in requests:
                requests[shapes] = self._request(graph, shapes)
            results = requests[shapes].infer(list(arrays), share_inputs=True, share_outputs=True)
            return [results[number] for number in range(len(graph.outputs))]

        return run

    def _request(self, graph: Graph, shapes: Sequence[Sequence[int]]) -> Any:
        model = self._core.read_model(graph.onnx)
        model.reshape(
            {name: list(shape) for name, shape in zip(graph.inputs, shapes, strict=True)}
        )
        with step("compiling for OpenVINO"):
            compiled = self._core.compile_model(model, "CPU", self._properties)
        return compiled.create_infer_request()


class OnnxRuntime:
    """ONNX Runtime: TensorRT or CUDA if the machine has them, otherwise the CPU in float32.

    Raises:
        ConfigError: it is not installed, or has no such device or precision.
    """

    def __init__(self, precision: str, threads: int, device: str = "auto") -> None:
        require("onnxruntime")
        import onnxruntime

        if precision not in ("auto", "fp32"):
            raise ConfigError(
                f"precision is {precision!r}, which engine 'onnxruntime' does not have; "
                "expected 'fp32' or another engine"
            )
        self.precision = "fp32"
        available = onnxruntime.get_available_providers()
        preferred = PROVIDERS[-1:] if device == "cpu" else PROVIDERS
        self._providers = [name for name in preferred if name in available]
        if device.startswith("cuda") and self._providers == [PROVIDERS[-1]]:
            raise ConfigError(
                f"device is {device!r}, but this ONNX Runtime has no CUDA; "
                "run: python -m pip install onnxruntime-gpu"
            )
        number = device.partition(":")[2] or "0"
        gpu_options = {"device_id": number}
        self._provider_options = [
            {} if name == PROVIDERS[-1] else gpu_options for name in self._providers
        ]
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.log_severity_level = 3
        self._version = onnxruntime.__version__
        self._describe(self._providers[0])

    def _describe(self, provider: str) -> None:
        place = provider.removesuffix("ExecutionProvider")
        self.description = f"ONNX Runtime {self._version} on {place} in {self.precision}"

    def compile(self, graph: Graph) -> Compiled:
        """See `Engine`; names the provider that accepted the graph."""
        import onnxruntime

        with step("compiling for ONNX Runtime"):
            session = onnxruntime.InferenceSession(
                graph.onnx, self._options, self._providers, self._provider_options
            )
        self._describe(session.get_providers()[0])

        def run(arrays: Arrays) -> list[NDArray[np.float32]]:
            inputs = dict(zip(graph.inputs, arrays, strict=True))
            results: list[NDArray[np.float32]] = session.run(list(graph.outputs), inputs)
            return results

        return run


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


def make_engine(name: str, precision: str, device: str) -> Engine:
    """Return "openvino" or "onnxruntime".

    Raises:
        ConfigError: it is unknown or not installed, or has no such precision or device.
    """
    import torch

    threads = min(torch.get_num_threads(), os.cpu_count() or 1)  # as many as torch would use
    if name == "onnxruntime":
        return OnnxRuntime(precision, threads, device)
    if name != "openvino":
        raise ConfigError(f"engine is {name!r}; expected torch, openvino or onnxruntime")
    if device.startswith("cuda"):
        raise ConfigError(
            f"device is {device!r}, which engine 'openvino' does not have; "
            "expected 'cpu' or 'auto'"
        )
    return OpenVino(precision, threads)
