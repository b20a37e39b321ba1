"""All a training needs to go on after it was killed: one safetensors file, replaced as a whole after every epoch.

No random state is stored: every epoch draws from generators seeded by the option `seed` and the number of the epoch.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from uncertainty_depth.errors import ConfigError, ModelError

FILE = "checkpoint.safetensors"


@dataclass(frozen=True)
class Progress:
    """What is known after some epochs, as plain values.

    Attributes:
        options: every option of the network and the training.
        frames: fingerprint of the training frames.
        histories: of each member begun, the last one under way, one mapping per epoch: train_loss, validation_loss, abs_rel, rmse, rmse_log.
    """

    options: dict[str, Any]
    frames: str
    histories: list[list[dict[str, float]]]

    @property
    def history(self) -> list[dict[str, float]]:
        """Of the member under way."""
        return self.histories[-1]


def write(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Replace the checkpoint in `folder`: whoever reads it sees the old one or the new one, never a part."""
    tensors = {f"network.{name}": value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": value.detach().cpu().contiguous() for key, value in state.items()}
    replace_file(folder / FILE, save(tensors, {"progress": json.dumps(vars(progress))}))


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that is either there as a whole or not at all, even when the process or the machine dies."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_progress(folder: Path) -> Progress:
    """The plain values of the checkpoint in `folder`.

    Raises:
        ModelError: the checkpoint is damaged.
    """
    return _read(folder)[0]


def restore(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Load weights and optimizer state of the checkpoint in `folder` into `network` and `optimizer`.

    Raises:
        ModelError: the checkpoint is damaged.
    """
    progress, tensors = _read(folder)
    network.load_state_dict({name.removeprefix("network."): value for name, value in tensors.items() if name.startswith("network.")})
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return progress


def _read(folder: Path) -> tuple[Progress, dict[str, Tensor]]:
    try:
        with safe_open(folder / FILE, "pt") as file:
            return Progress(**json.loads(file.metadata()["progress"])), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / FILE} cannot be read ({error}); expected the checkpoint of an unfinished training") from error


def refuse_other_options(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raise `ConfigError` for the first option that differs from those the training in `folder` was started with."""
    for name in sorted(before.keys() | now.keys()):
        then, value = before.get(name), now.get(name)
        if value != then:
            raise ConfigError(f"{name} is {value!r} but the training in {folder} was started with {then!r}; expected the same options to resume it")
