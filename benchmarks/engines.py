# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What eight samples cost by each engine, against one plain pass of torch in float32.

A ResNet-18 hourglass at 320x240 on one thread of the CPU, in CPU time. All runs take turns, and
each ratio is to the plain pass of its own round. The naive way runs the whole network for every
sample. The floor of an engine is the shared part once and the rest for eight samples, without
drawing noise and without accumulating.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import torch

from benchmarks.network import NETWORK, STAMP_NS
from benchmarks.rounds import Seconds, Spread, alternate, load, markdown
from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.engines.loading import EngineNetwork
from uncertainty_depth.engines.runtimes import Compiled, is_installed, make_engine
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty import Ensemble, McDropout
from uncertainty_depth.uncertainty.mc_dropout import seeded
from uncertainty_depth.uncertainty.noise import GivenNoise, IndependentStreams, random_stream

SAMPLES = 8
CPU = torch.device("cpu")
PLAIN = "torch fp32, one pass"
CANDIDATES = (
    ("torch", "fp32"),
    ("torch", "bf16"),
    ("onnxruntime", "fp32"),
    ("openvino", "fp32"),
    ("openvino", "bf16"),
)
Runs = dict[str, Callable[[], object]]


class Row(NamedTuple):
    """CPU milliseconds, and their ratio to the plain pass of the same round."""

    label: str
    milliseconds: Spread
    ratio: Spread


def run(repetitions: int = 9, network: NetworkConfig = NETWORK) -> list[Row]:
    """Time every engine that is installed; minutes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        model = make_network(network).eval()
        with torch.inference_mode():
            runs = _all_runs(model)
            return _rows(alternate(runs, repetitions, time.process_time, description="engines"))
    finally:
        torch.set_num_threads(threads)


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    note = f"ratios to {PLAIN}, of the same round; {load()}"
    return f"{markdown(('what', 'CPU ms', 'ratio'), rows)}\n\n{note}"


def _all_runs(model: DepthNetwork) -> Runs:
    width, height = model.config.input_size
    image = torch.rand(1, 3, height, width)
    runs: Runs = {}
    for engine, precision in CANDIDATES:
        try:
            runs |= _runs(copy.deepcopy(model), engine, precision, image)
        except ConfigError:  # not installed, or the processor lacks the precision
            continue
    return runs


def _runs(model: DepthNetwork, engine: str, precision: str, image: torch.Tensor) -> Runs:
    """Return what is timed of one engine: a pass, both methods, their floors and naive ways."""
    if not is_installed(engine):
        raise ConfigError(f"{engine} is not installed")
    name = f"{engine} {precision}"
    place = _placer(engine, precision)
    network = place(model)
    config = PredictorConfig(samples=SAMPLES, chunk=SAMPLES)
    dropout = McDropout(network)
    members = _members(model, place)
    snapshots = Ensemble(members)
    size = image.shape[-2:]
    functions = [seeded(layer) for layer in network.decoder.dropouts]
    streams = IndependentStreams([random_stream(0, STAMP_NS, sample) for sample in range(SAMPLES)])
    fixed = [_Fixed(function) for function in functions]

    def dropout_floor() -> object:
        return network.branches(network.trunk(image), fixed, streams, size)

    def snapshots_floor() -> object:
        return _decoded(members, network.encode(image), size)

    def naive() -> None:
        for _ in range(SAMPLES):
            network(image)

    runs: Runs = {
        f"{name}, one pass": partial(network, image),
        f"{name}, mc_dropout M = {SAMPLES}": partial(dropout.estimate, image, STAMP_NS, config),
        f"{name}, mc_dropout floor": dropout_floor,
        f"{name}, {SAMPLES} snapshots": partial(snapshots.estimate, image, STAMP_NS, config),
        f"{name}, snapshots floor": snapshots_floor,
    }
    if engine == "torch":
        runs[f"{name}, naive: {SAMPLES} passes"] = naive
    return runs


def _placer(engine: str, precision: str) -> Callable[[DepthNetwork], DepthNetwork]:
    if engine == "torch":
        return partial(prepare, device=CPU, precision=precision)
    compiler = make_engine(engine, precision, "cpu")
    encoders: dict[int, Compiled] = {}

    def in_engine(network: DepthNetwork) -> DepthNetwork:
        prepared = prepare(network, CPU, "fp32")
        return cast(DepthNetwork, EngineNetwork(prepared, compiler, encoders))

    return in_engine


def _members(model: DepthNetwork, place: Callable[[DepthNetwork], DepthNetwork]) -> list[Any]:
    """Return networks that share the encoder of a prepared one."""
    shared = {id(model.encoder): model.encoder}
    return [place(copy.deepcopy(model, dict(shared))) for _ in range(SAMPLES)]


def _decoded(members: list[Any], features: Any, size: Any) -> list[Any]:
    return [member.decode(features, size) for member in members]


class _Fixed:
    """A dropout whose noise is drawn once."""

    def __init__(self, dropout: Any) -> None:
        self.dropout = dropout
        self._noise: Any = None

    def noise(self, streams: Any, shape: Any) -> Any:
        if self._noise is None:
            self._noise = self.dropout.noise(streams, shape)
        return self._noise

    def __call__(self, x: torch.Tensor, streams: Any) -> torch.Tensor:
        applied: torch.Tensor = self.dropout(x, GivenNoise(self.noise(streams, x.shape[1:])))
        return applied


def _rows(seconds: Seconds) -> list[Row]:
    rows = []
    for name, durations in seconds.items():
        ratio = Spread.of(durations / seconds[PLAIN])
        rows.append(Row(name, Spread.of(1e3 * durations), ratio))
    return rows


if __name__ == "__main__":
    print(table(run()))
