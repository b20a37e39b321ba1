# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All that the training of one network needs to go on after it was killed: one safetensors file, replaced as a whole after every epoch.

What the networks of a model have in common is in `model.json`. No random state is stored: every
epoch draws from generators seeded by the option `seed` and the number of the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from uncertainty_depth import atomic
from uncertainty_depth.errors import ModelError
from uncertainty_depth.network.depth_network import DepthNetwork

NAME = "checkpoint"
History = list[dict[str, float]]
"""One mapping per epoch: train_loss, validation_loss, abs_rel, rmse, rmse_log."""


@dataclass(frozen=True)
class State:
    """How far the training of a network is.

    Attributes:
        history: of the epochs so far.
        trained: whether it needs no further one.
    """

    history: History
    trained: bool


def write(
    path: Path, network: DepthNetwork, optimizer: torch.optim.Optimizer, history: History
) -> None:
    """Replace the checkpoint: whoever reads it sees the old one or the new one, never a part."""
    frozen = _frozen(network)
    tensors = {
        f"network.{name}": value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if name not in frozen
    }
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{index}.{key}": value.detach().cpu().contiguous()
            for key, value in state.items()
        }
    atomic.write_bytes(path, save(tensors, {"history": json.dumps(history)}))


def close(path: Path, history: History) -> None:
    """Replace the checkpoint of a network that is trained: of its last epoch nothing but the history is needed."""
    atomic.write_bytes(path, save({}, {"history": json.dumps(history)}))


def _frozen(network: DepthNetwork) -> dict[str, Tensor]:
    """Weights that training never changes: whoever makes the network again has them."""
    return {
        name: value
        for name, value in network.state_dict().items()
        if network.encoder_is_frozen and name.startswith("encoder.")
    }


def read(path: Path) -> State:
    """What the checkpoint says, weights aside; where there is none, the network has not been begun.

    Raises:
        ModelError: the checkpoint is damaged.
    """
    if not path.exists():
        return State([], False)
    with _opened(path) as file:
        return State(_history(file.metadata()), not file.keys())


def restore(path: Path, network: DepthNetwork, optimizer: torch.optim.Optimizer) -> None:
    """Load weights and optimizer state of the checkpoint into `network` and `optimizer`.

    Raises:
        ModelError: the checkpoint is damaged.
    """
    with _opened(path) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping
    weights = {
        name.removeprefix("network."): value
        for name, value in tensors.items()
        if name.startswith("network.")
    }
    network.load_state_dict({**_frozen(network), **weights})
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )


def _history(metadata: dict[str, str]) -> History:
    """An earlier version kept the histories of all networks in one file; that of a single network is read still."""
    return (
        json.loads(metadata["history"])
        if "history" in metadata
        else json.loads(metadata["progress"])["histories"][-1]
    )


@contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path} cannot be read ({error}); expected the checkpoint of an unfinished training"
        ) from error
