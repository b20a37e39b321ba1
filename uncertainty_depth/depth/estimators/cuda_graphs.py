# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""CUDA graphs: a network's hundreds of launches become one.

Networks of this size wait for launches, not for arithmetic, on every card.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from uncertainty_depth.core.device_errors import is_out_of_memory
from uncertainty_depth.core.errors import first_line

logger = logging.getLogger(__name__)

CALLS_BEFORE = 2
"""Calls of a function on a thread without a graph. They choose kernels, which cuDNN keeps for each
thread, and make workspaces; and what is called so rarely is not worth one."""
MAX_GRAPHS = 32
"""Kept; what is called later goes without. Each keeps its inputs and outputs in memory."""
_capture = threading.Lock()


class Recorded(NamedTuple):
    """A graph, with the memory it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    outputs: Any


class CudaGraphs:
    """Runs functions of CUDA tensors, from the third call on as graphs; one thread at a time.

    Graphs share memory: outputs hold until the next call of the same function, or of one that was
    recorded before it.
    """

    are_on = True

    def __init__(self) -> None:
        self._calls: Counter[Hashable] = Counter()
        self._recorded: dict[Hashable, Recorded | None] = {}  # None: it cannot be
        self._own: set[int] = set()  # addresses of outputs, which need no copy as inputs
        self._pool: Any = None
        self._has_warned = False

    def run(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Return `function(*inputs)`; inputs are tensors, what is hashed, and tuples of both."""
        leaves, structure = pytree.tree_flatten(inputs)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        key = (function, *map(_description, leaves))
        if key not in self._recorded:
            call = (threading.get_ident(), key)
            self._calls[call] += 1
            is_early = self._calls[call] <= CALLS_BEFORE
            if not self.are_on or is_early or len(self._recorded) >= MAX_GRAPHS:
                return function(*inputs)
            self._recorded[key] = None  # if memory runs out
            own = [each if each.data_ptr() in self._own else each.clone() for each in tensors]
            remaining = iter(own)
            fixed = [next(remaining) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
            self._recorded[key] = self._record(function, pytree.tree_unflatten(fixed, structure))
        recorded = self._recorded[key]
        if recorded is None:
            return function(*inputs)
        for own_input, given in zip(recorded.inputs, tensors, strict=True):
            if own_input.data_ptr() != given.data_ptr():
                own_input.copy_(given)
        recorded.graph.replay()
        return recorded.outputs

    def __len__(self) -> int:
        """Return how many functions were recorded, or could not be."""
        return len(self._recorded)

    def forget(self) -> None:
        """Give back the graphs and their memory."""
        self._recorded.clear()
        self._own.clear()
        self._pool = None

    def _record(self, function: Callable[..., Any], inputs: Any) -> Recorded | None:
        tensors = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, Tensor)]
        device = tensors[0].device
        try:
            with _capture, torch.cuda.device(device):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(
                    graph,
                    self._pool,
                    torch.cuda.Stream(device),
                    capture_error_mode="thread_local",
                ):
                    outputs = function(*inputs)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "the network cannot be recorded as a CUDA graph, so every frame takes longer, "
                    "with the same result: %s",
                    first_line(error),
                )
            return None
        self._pool = graph.pool()
        leaves = pytree.tree_leaves(outputs)
        self._own.update(leaf.data_ptr() for leaf in leaves if isinstance(leaf, Tensor))
        return Recorded(graph, tensors, outputs)


def _description(leaf: Any) -> Hashable:
    return (leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf
