# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks and frames of `samples`, and the size of its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import image_tensor, resize_image
from uncertainty_depth.records import Frame

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Settings:
    """Size of a run: scored frames, samples of the reference, frames before a drive's scores."""

    frames: int = 12
    reference: int = 256
    before: int = 16


class Scene(NamedTuple):
    """A frame, and the image as the network takes it."""

    frame: Frame
    pixels: Tensor


def load_network(folder: Path) -> DepthNetwork:
    """Return the last member of a model, prepared for the CPU in float32."""
    model = read(folder)
    return prepare(model.load(model.members[-1]), CPU, "fp32")


def load_members(folder: Path) -> list[DepthNetwork]:
    """Return all members of a model, prepared for the CPU in float32; a shared encoder is one."""
    model = read(folder)
    return [prepare(network, CPU, "fp32") for network in model.load_all(model.members)]


def mean_network(folder: Path) -> DepthNetwork:
    """Return the network of the members' mean weights, prepared for the CPU in float32.

    Stochastic weight averaging (Izmailov et al. 2018): for snapshots of one training only.
    """
    model = read(folder)
    networks = model.load_all(model.members)
    mean = AveragedModel(networks[0], use_buffers=True)
    for network in networks:
        mean.update_parameters(network)
    return prepare(cast(DepthNetwork, mean.module), CPU, "fp32")


def worlds(number: int, frames: int, rate_hz: float) -> str:
    """Return the source of `frames` frames in each of `number` worlds that no model saw."""
    size = f"worlds={max(number, 1)},frames={frames},rate={rate_hz}"
    return f"synthetic:{size},seed=20000,test_objects=true,dense=true"


def scenes(network: DepthNetwork, source: str, number: int) -> list[Scene]:
    """Return `number` frames of a source, evenly spread."""
    opened = open_source(source, SourceConfig())
    step = max(len(opened) // number, 1)
    selection: list[Scene] = []
    for index, record in enumerate(opened):
        if index % step == 0 and isinstance(record, Frame) and len(selection) < number:
            image = resize_image(record.need_image(), network.config.input_size)
            selection.append(Scene(record, image_tensor(image[None])))
    return selection


def drives(network: DepthNetwork, source: str, frames: int) -> Iterator[list[Scene]]:
    """Yield the frames of each world."""
    of_all = scenes(network, source, 10**9)
    for start in range(0, len(of_all), frames):
        yield of_all[start : start + frames]
