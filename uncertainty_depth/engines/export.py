# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a model's graphs as ONNX files, with what a program needs to run them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from uncertainty_depth import atomic
from uncertainty_depth.engines.graphs import GraphPair, input_channels, trace
from uncertainty_depth.engines.loading import check_method
from uncertainty_depth.engines.runtimes import require_onnx
from uncertainty_depth.model_folder.files import read_json
from uncertainty_depth.model_folder.folder import ModelFolder, read
from uncertainty_depth.network.deployment import prepare
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty import ESTIMATORS, McDropout
from uncertainty_depth.uncertainty.mc_dropout import SeededDropout, seeded

FILE = "graphs.json"
FORMAT = 1
VARIANCE_OF_SQUARED_SCALE = {"laplace": 2.0, "gaussian": 1.0}


def export(folder: Path | str, output: Path, method: str = "") -> list[Path]:
    """Write the ONNX graphs of a model, in float32, and `graphs.json` beside them.

    A trunk that several members share is written once. `graphs.json` says which files to run on
    which tensors, and how to draw the noise.

    Args:
        folder: the model.
        output: folder to write; it is made.
        method: uncertainty method; empty takes the model's own.

    Returns:
        The files.

    Raises:
        ConfigError: the package `onnx` is not installed, or no graph serves the method.
        ModelError: the folder is not a model, or cannot be run with the method.
    """
    require_onnx()
    model = read(folder)
    method = method or model.method
    check_method(method, "onnx")
    estimator: Any = ESTIMATORS[method].load(
        model, lambda network: prepare(network, torch.device("cpu"), "fp32")
    )
    networks: list[DepthNetwork] = estimator.networks
    dropouts: list[SeededDropout] = []
    if isinstance(estimator, McDropout):
        dropouts = [seeded(layer) for layer in networks[0].decoder.dropouts]
    names = model.members[-len(networks) :]
    graphs = _graphs(dict(zip(names, networks, strict=True)), dropouts)
    description = {
        "format": FORMAT,
        "model": model.name,
        "method": method,
        **_input(model, input_channels(networks[-1])),
        "depth_range_m": list(model.network.depth_range),
        "members": graphs.members,
        "noise": graphs.noise,
        "calibration": read_json(model.path).get("calibration", {}).get(method),
    }
    files = graphs.files | {FILE: json.dumps(description, indent=2).encode()}
    output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        atomic.write_bytes(output / name, content)
    return [output / name for name in files]


class _Graphs(NamedTuple):
    """The graphs of all members: files by name, and the content of `graphs.json`."""

    files: dict[str, bytes]
    members: list[dict[str, Any]]
    noise: list[dict[str, Any]]


def _graphs(networks: Mapping[str, DepthNetwork], dropouts: Sequence[SeededDropout]) -> _Graphs:
    """Return the graphs of networks by name; a trunk that several share is in one file."""
    graphs = _Graphs({}, [], [])
    trunks: dict[int, str] = {}
    for name, network in networks.items():
        suffix = f"_{name}" if len(networks) > 1 else ""
        pair = trace(network, dropouts)
        trunk = trunks.setdefault(id(network.encoder), f"trunk{suffix}.onnx")
        branches = f"branches{suffix}.onnx"
        graphs.files.setdefault(trunk, pair.trunk.onnx)
        graphs.files[branches] = pair.branches.onnx
        graphs.members.append(_member(name, trunk, branches, pair, network))
        shapes = zip(dropouts, pair.noise_shapes, strict=True)
        graphs.noise[:] = [_noise(dropout, shape) for dropout, shape in shapes]
    return graphs


def _input(model: ModelFolder, channels: int) -> dict[str, Any]:
    width, height = model.network.input_size
    meanings = ["red, 0 to 1", "green", "blue", "depth, metres, 0 where unknown"]
    return {
        "image": {"name": "image", "shape": [1, channels, height, width]},
        "channels": meanings[:channels],
    }


def _member(
    name: str, trunk: str, branches: str, pair: GraphPair, network: DepthNetwork
) -> dict[str, Any]:
    return {
        "name": name,
        "trunk": trunk,
        "branches": branches,
        "shared": list(pair.trunk.outputs),
        "outputs": list(pair.branches.outputs),
        "variance_m2": {"of": "scale_m", "factor": VARIANCE_OF_SQUARED_SCALE[network.config.head]}
        if network.config.head != "none"
        else None,
    }


def _noise(dropout: SeededDropout, shape: tuple[int, ...]) -> dict[str, Any]:
    channels, height, width = shape
    return {
        "shape": ["samples", height, width, channels],
        "law": "0 where a unit is dropped, else 1",
        "type": "uint8",
        "rate": dropout.rate,
    }
