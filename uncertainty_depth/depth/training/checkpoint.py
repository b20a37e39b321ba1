# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files written after every epoch of a network's training: checkpoint and table.

What a model's networks share is in `model.json`. No random state is stored: every epoch draws from
generators seeded by the option `seed` and the epoch's number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.strict import FormatError
from uncertainty_depth.depth.model_folder.files import TensorFile, packed
from uncertainty_depth.depth.networks.depth_network import DepthNetwork

NAME = "checkpoint"
MAX_HISTORY_BYTES = 2**26
History = list[dict[str, float]]
"""One mapping per epoch: train_loss, validation_loss, abs_rel, rmse, rmse_log."""


@dataclass(frozen=True)
class State:
    """One network's training progress; `trained` if it needs no further epoch."""

    history: History
    trained: bool


def write(
    path: Path,
    network: DepthNetwork,
    optimizer: torch.optim.Optimizer,
    history: History,
    average: AveragedModel | None = None,
) -> None:
    """Replace the checkpoint atomically."""
    frozen = _frozen(network)
    tensors = {
        f"network.{name}": value
        for name, value in network.state_dict().items()
        if name not in frozen
    }
    if average is not None:
        tensors |= {f"average.{name}": value for name, value in average.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": value for key, value in state.items()}
    atomic.write_bytes(path, packed(tensors, {"history": json.dumps(history)}))


def close(path: Path, history: History) -> None:
    """Replace a trained network's checkpoint with its history alone."""
    atomic.write_bytes(path, packed({}, {"history": json.dumps(history)}))


def _frozen(network: DepthNetwork) -> dict[str, Tensor]:
    """Return a frozen encoder's weights, which a checkpoint need not hold."""
    return {
        name: value
        for name, value in network.state_dict().items()
        if network.encoder_is_frozen and name.startswith("encoder.")
    }


def read(path: Path) -> State:
    """Return the progress, without weights, or the start; raise `ModelError` if it is damaged."""
    if not path.exists():
        return State([], False)
    with _opened(path) as file:
        history = strict.read_json(file.metadata["history"], MAX_HISTORY_BYTES, allow_nan=True)
        if not isinstance(history, list) or not all(isinstance(epoch, dict) for epoch in history):
            raise ValueError("its history is not one of epochs")
        return State(history, not file.entries)


def restore(
    path: Path,
    network: DepthNetwork,
    optimizer: torch.optim.Optimizer,
    average: AveragedModel | None = None,
) -> None:
    """Load weights, optimizer and running average, or raise `ModelError` if it is damaged."""
    with _opened(path) as file:
        tensors = file.tensors()
        for name, value in tensors.items():
            if not bool(value.isfinite().all()):
                raise ValueError(f"NaN or infinity in {name}: it is damaged")

        def part(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): value
                for name, value in tensors.items()
                if name.startswith(prefix)
            }

        network.load_state_dict({**_frozen(network), **part("network.")})
        if average is not None:
            average.load_state_dict(part("average."))
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in part("optimizer.").items():
            index, key = name.split(".")
            state.setdefault(int(index), {})[key] = value
        optimizer.load_state_dict(
            {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
        )


@contextmanager
def _opened(path: Path) -> Iterator[TensorFile]:
    try:
        yield TensorFile.open(path)
    except (FormatError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        # A RuntimeError is torch's, if the tensors do not fit the network.
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{path} cannot be read ({reason}); expected the checkpoint of an unfinished training"
        ) from error


CURVES = "curves"


def write_table(folder: Path, name: str, history: Sequence[dict[str, float]]) -> None:
    """Write NAME.csv: one row per epoch, counted from 1."""
    names = list(history[0])
    lines = [",".join(["epoch", *names])]
    for epoch, row in enumerate(history, 1):
        values = [f"{row[name]:.6g}" for name in names]
        lines.append(",".join([str(epoch), *values]))
    atomic.write_text(folder / f"{name}.csv", "\n".join(lines) + "\n")
