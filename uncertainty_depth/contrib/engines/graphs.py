# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The two ONNX graphs of a network: the shared trunk, and the branch that every sample repeats.

The trunk maps an image to tensors, the branches map these to depth and scale. With dropout the
branches also take the noise, so that every engine drops the same units as torch does.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput

OPSET = 17
SAMPLES = "samples"
"""Name of the noise's free dimension."""


class Graph(NamedTuple):
    """An ONNX graph; `free` are the inputs with one row a sample, with a row's shape."""

    onnx: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    free: dict[str, tuple[int, ...]]


class GraphPair(NamedTuple):
    """Trunk and branches of a network.

    Attributes:
        trunk: image, (1, 3, h, w) float32 RGB in [0, 1], to `shared_0` ...
        branches: `shared_0` ..., and `noise_0` ... if there is dropout, to `depth_m` and, with a
            variance head, `scale_m`, (M, 1, h, w) metres.
        noise_shapes: (C, h, w) of the maps that each dropout acts on; none without dropout.
    """

    trunk: Graph
    branches: Graph
    noise_shapes: tuple[tuple[int, ...], ...]


def trace(network: DepthNetwork, dropouts: Sequence[Any] = ()) -> GraphPair:
    """Return the graphs for a prepared float32 network on the CPU, by `dropouts` if it has any."""
    width, height = network.config.input_size
    image = torch.zeros(1, 3, height, width)

    def shared_part(image: Tensor) -> Any:
        return network.trunk(image)[1] if dropouts else network.encode(image)

    with torch.no_grad():
        shared = shared_part(image)
        shapes = network.noise_shapes(shared) if dropouts else []
        noise = [torch.ones(2, *shape[1:], shape[0], dtype=torch.uint8) for shape in shapes]
        leaves, structure = pytree.tree_flatten(shared)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        shared_names = tuple(f"shared_{number}" for number in range(len(tensors)))
        trunk = _export(_Trunk(network, shared_part), (image,), ("image",), shared_names)
        branches = _Branches(network, dropouts, leaves, structure)
        noise_names = tuple(f"noise_{number}" for number in range(len(noise)))
        outputs = ("depth_m",) if network.config.head == "none" else ("depth_m", "scale_m")
        pair = _export(
            branches, (*tensors, *noise), (*shared_names, *noise_names), outputs, noise_names
        )
    return GraphPair(trunk, pair, tuple(shapes))


class _Trunk(nn.Module):
    def __init__(self, network: DepthNetwork, compute_trunk: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.network = network
        self.compute_trunk = compute_trunk

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        leaves, _ = pytree.tree_flatten(self.compute_trunk(image))
        return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))


class _Branches(nn.Module):
    def __init__(
        self,
        network: DepthNetwork,
        dropouts: Sequence[Any],
        leaves: Sequence[Any],
        structure: Any,
    ) -> None:
        super().__init__()
        self.network = network
        self.dropouts = dropouts
        self.leaves = leaves
        self.structure = structure

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        remaining = iter(tensors)
        leaves = [next(remaining) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        shared = pytree.tree_unflatten(leaves, self.structure)
        width, height = self.network.config.input_size
        if self.dropouts:
            noise = list(remaining)
            output = self.network.branches(shared, self.dropouts, noise, (height, width))
        else:
            output = self.network.decode(shared, (height, width))
        return tuple(maps for maps in output if maps is not None)


def _export(
    module: nn.Module,
    example: tuple[Tensor, ...],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    free: Sequence[str] = (),
) -> Graph:
    """Return a module's graph; the first dimension of `free` inputs and so of outputs is free."""
    axes = {name: {0: SAMPLES} for name in (*free, *(outputs if free else ()))}
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # traced sizes are constants: the input has one size
        torch.onnx.export(
            module.eval(),
            example,
            content,  # type: ignore[arg-type]  # a buffer is taken, says the documentation
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    rows = {
        name: tuple(value.shape[1:])
        for name, value in zip(inputs, example, strict=True)
        if name in free
    }
    return Graph(content.getvalue(), inputs, outputs, rows)


def output_of(maps: Sequence[Any]) -> NetworkOutput:
    """Return an engine's maps in the form of a network's maps."""
    tensors = [torch.from_numpy(values) for values in maps]
    return NetworkOutput(tensors[0], tensors[1] if len(tensors) > 1 else None)
