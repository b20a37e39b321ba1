# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train `indoor` further, with views of other cameras and rendered places beside photographs.

python -m experiments.indoor NYU_DIR --from MODEL --output DIR

Of each batch of eight, two are photographs of NYU as `train` varies them, three are photographs as
another camera would see them from the same place (turned, rolled, a longer or a shorter lens), two
are rendered homes, bare halls and corridors, one is a rendered table-top or a low robot's view.
The loss is the Laplace likelihood, and the error of each image's shape whatever its scale. A call
with the same output goes on after the last finished epoch, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.training.familiarity import add_familiarity
from uncertainty_depth.depth.training.frames import (
    TrainingFrames,
    augment,
    change_light,
    change_sensor,
    read_frames,
    split_frames,
)
from uncertainty_depth.depth.training.objective import laplace_nll
from uncertainty_depth.stream.opening import open_source

logger = logging.getLogger(__name__)

EPOCHS = 12
SEED = 44
NYU_SIZE = (320, 240)
NYU_MATRIX = np.array([[259.43, 0.0, 162.79], [0.0, 259.73, 126.87], [0.0, 0.0, 1.0]])
WORLDS = {"near": 320, "indoors": 640}
"""Rendered frames, each of a world of its own, by the module of `experiments.worlds`."""
WORLD_SEED = 40
SELECTION_SEED = 41
SELECTION_WORLDS = 60
VALIDATION_FRACTION = 0.05  # that of the training of the first `indoor`
PLAIN, SEEN, NEAR, INDOORS = 2, 3, 1, 2
"""Frames of each kind in a batch."""
ENCODER_RATE = 1.5e-4
RATE = 7e-4
FIRST_RATE = 0.5  # of the first epoch, in which Adam knows no gradients yet, as a fraction
FINAL_RATE = 0.02
AVERAGE_DECAY = 0.995
SHAPE = 0.5
"""Weight of the shape's error in the loss."""
ZOOMS = (0.85, 2.2)
STRETCH = 1.2
"""Largest ratio of the focal lengths of width and height, either way."""
Batch = tuple[Tensor, Tensor]
"""Images (B, 3, h, w) in [0, 1], and canonical depth (B, 1, h, w) in metres, NaN for unknown."""


class Lens(NamedTuple):
    """Other cameras at the places of photographs.

    Attributes:
        turned: (B, 3, 3), directions of the photograph's camera to those of the other.
        zoom: (B,) focal length over that of the photograph.
        ratio: (B,) horizontal over vertical focal length.
        is_mirrored: (B,) left to right.
    """

    turned: Tensor
    zoom: Tensor
    ratio: Tensor
    is_mirrored: Tensor


def rotation(yaw: Tensor, pitch: Tensor, roll: Tensor) -> Tensor:
    """Return (B, 3, 3) rotations of an optical frame: yaw, then pitch, then roll, radians."""
    zero = torch.zeros_like(yaw)
    one = torch.ones_like(yaw)

    def matrix(*entries: Tensor) -> Tensor:
        return torch.stack(entries, dim=1).reshape(-1, 3, 3)

    about_y = matrix(yaw.cos(), zero, yaw.sin(), zero, one, zero, -yaw.sin(), zero, yaw.cos())
    about_x = matrix(
        one, zero, zero, zero, pitch.cos(), -pitch.sin(), zero, pitch.sin(), pitch.cos()
    )
    about_z = matrix(roll.cos(), -roll.sin(), zero, roll.sin(), roll.cos(), zero, zero, zero, one)
    return about_z @ about_x @ about_y


def draw_lens(count: int, generator: torch.Generator) -> Lens:
    """Draw cameras that look at some part of the photograph, through a lens that fits it."""

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator, dtype=torch.float64)

    def normal(deviation: float) -> Tensor:
        return deviation * torch.randn(count, generator=generator, dtype=torch.float64)

    zoom = uniform(math.log(ZOOMS[0]), math.log(ZOOMS[1])).exp()
    ratio = uniform(-math.log(STRETCH), math.log(STRETCH)).exp()
    room = (1 - 1 / zoom).clamp_min(0.05)
    half_width, half_height = (math.atan(160 / 259.4), math.atan(120 / 259.7))
    yaw = uniform(-1, 1) * room * half_width + normal(0.03)
    pitch = uniform(-1, 1) * room * half_height + normal(math.radians(4))
    turned = rotation(yaw, pitch, normal(math.radians(5)))
    return Lens(turned, zoom, ratio, torch.rand(count, generator=generator) < 0.5)


def view(images: Tensor, depth_m: Tensor, lens: Lens, size: Sequence[int]) -> Batch:
    """Return what other cameras see from the same places, and the depth along their axes.

    Outside the photograph the image is mirrored, and depth unknown.

    Args:
        images: (B, 3, 240, 320) of NYU.
        depth_m: (B, 1, 240, 320) of NYU's canonical camera, NaN for unknown.
        lens: the cameras.
        size: width and height of the views.
    """
    width, height = size
    focal_x = lens.zoom * lens.ratio.sqrt() * NYU_MATRIX[0, 0] * width / NYU_SIZE[0]
    focal_y = lens.zoom / lens.ratio.sqrt() * NYU_MATRIX[1, 1] * height / NYU_SIZE[1]
    v, u = torch.meshgrid(
        torch.arange(height, dtype=torch.float64),
        torch.arange(width, dtype=torch.float64),
        indexing="ij",
    )
    across = (u[None] - (width - 1) / 2) / focal_x[:, None, None]
    down = (v[None] - (height - 1) / 2) / focal_y[:, None, None]
    rays = torch.stack([across, down, torch.ones_like(across)], dim=-1)
    seen = torch.einsum("bij,bhwi->bhwj", lens.turned, rays)  # the transpose turns back
    along = seen[..., 2].clamp_min(0.2)
    x = NYU_MATRIX[0, 0] * (seen[..., 0] / along) + NYU_MATRIX[0, 2]
    y = NYU_MATRIX[1, 1] * (seen[..., 1] / along) + NYU_MATRIX[1, 2]
    grid = torch.stack([(2 * x + 1) / NYU_SIZE[0] - 1, (2 * y + 1) / NYU_SIZE[1] - 1], dim=-1)
    grid = grid.float()
    pictures = functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    depths = functional.grid_sample(
        depth_m, grid, mode="nearest", padding_mode="border", align_corners=False
    )
    depths = torch.where((grid.abs() > 1).any(-1)[:, None], torch.nan, depths)
    # A ray whose z is 1 in the new camera has `along` in the old one, and a longer lens'
    # canonical depth is smaller.
    depths = depths / (along * lens.zoom[:, None, None])[:, None].float()
    mask = lens.is_mirrored[:, None, None, None]
    return (
        torch.where(mask, pictures.flip(-1), pictures),
        torch.where(mask, depths.flip(-1), depths),
    )


def shape_error(depth_m: Tensor, truth_m: Tensor) -> Tensor:
    """Return the mean over images of the mean |ln d - ln g - its mean|."""
    valid = torch.isfinite(truth_m)
    difference = torch.where(valid, depth_m.log() - torch.where(valid, truth_m, 1.0).log(), 0.0)
    count = valid.sum((1, 2, 3), keepdim=True).clamp_min(1)
    mean = difference.sum((1, 2, 3), keepdim=True) / count
    error = torch.where(valid, (difference - mean).abs(), 0.0)
    return (error.sum((1, 2, 3), keepdim=True) / count).mean()


class Data:
    """All frames of a training.

    Attributes:
        photographs: of NYU, at the network's size.
        wide: the same at their own size.
        rendered: frames of each kind of worlds.
        indices: the photographs to train on.
        held_out: the others, which have chosen the epoch of the first `indoor` too.
    """

    def __init__(self, nyu: str, size: tuple[int, int], canonical: float) -> None:
        """Read the photographs; `render` renders."""
        self.size = size
        self.canonical = canonical
        source = open_source(f"nyu:{nyu}:train", SourceConfig())
        self.wide = read_frames(source, NYU_SIZE, 0, canonical)
        self.photographs = read_frames(source, size, 0, canonical)
        self.indices, self.held_out = split_frames(len(self.photographs), VALIDATION_FRACTION, 0)

    def render(self) -> None:
        """Render the worlds to train on."""
        self.rendered = {
            name: self._rendered(name, worlds, WORLD_SEED) for name, worlds in WORLDS.items()
        }

    def selection(self) -> dict[str, Batch]:
        """Return the sets that choose a model, of which no table is made."""
        images, depths = self.wide.batch(self.held_out)
        count = len(images)
        generator = torch.Generator().manual_seed(9)
        ones = torch.ones(count, dtype=torch.float64)
        never = torch.zeros(count, dtype=torch.bool)
        sets = {"photographs": self.photographs.batch(self.held_out)}
        for zoom, tilt in ((1.2, 0.0), (1.8, 0.1)):
            angles = torch.randn(3, count, generator=generator, dtype=torch.float64)
            turned = rotation(0.05 * angles[0], tilt + 0.05 * angles[1], 0.07 * angles[2])
            lens = Lens(turned, zoom * ones, ones, never)
            sets[f"a lens {zoom} times as long"] = view(images, depths, lens, self.size)
        for name in WORLDS:
            frames = self._rendered(name, SELECTION_WORLDS, SELECTION_SEED)
            sets[f"rendered, {name}"] = frames.batch(range(len(frames)))
        return sets

    def batches(self, generator: torch.Generator) -> Iterator[Batch]:
        """Yield the batches of an epoch, each photograph once."""
        photographs = _shuffled(self.indices, generator)
        near = _shuffled(range(len(self.rendered["near"])), generator)
        indoors = _shuffled(range(len(self.rendered["indoors"])), generator)
        each = PLAIN + SEEN
        for step in range(len(photographs) // each):
            mine = photographs[each * step : each * step + each]
            parts = [
                self._varied(self.photographs, mine[:PLAIN], generator),
                self._varied(self.rendered["near"], near[step : step + NEAR], generator),
                self._varied(
                    self.rendered["indoors"],
                    indoors[INDOORS * step : INDOORS * step + INDOORS],
                    generator,
                ),
            ]
            lens = draw_lens(SEEN, generator)
            images, depths = view(*self.wide.batch(mine[PLAIN:]), lens, self.size)
            parts.append((change_light(change_sensor(images, generator), generator), depths))
            pictures, truths = (torch.cat(part) for part in zip(*parts, strict=True))
            yield pictures.contiguous(memory_format=torch.channels_last), truths

    def _varied(
        self, frames: TrainingFrames, numbers: Sequence[int], generator: torch.Generator
    ) -> Batch:
        return augment(*frames.batch(numbers), generator, other_cameras=True)

    def _rendered(self, name: str, worlds: int, seed: int) -> TrainingFrames:
        width, height = self.size
        source = open_source(
            f"synthetic:scenes=experiments.worlds.{name},worlds={worlds},frames=1,seed={seed},"
            f"dense=true,width={width},height={height}",
            SourceConfig(),
        )
        return read_frames(source, self.size, 0, self.canonical)


def _shuffled(numbers: Sequence[int], generator: torch.Generator) -> list[int]:
    order = torch.randperm(len(numbers), generator=generator).tolist()
    return [numbers[place] for place in order]


class Run:
    """A training, whose state is saved after every epoch."""

    def __init__(self, start: str, output: Path, data: Data) -> None:
        """Begin at the weights of a model folder, or where the training in `output` was left."""
        self.data = data
        self.network = read_model(start).load("best")
        self.network.requires_grad_(True)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        encoder = list(self.network.encoder.parameters())
        decoder = list(self.network.decoder.parameters())
        self.optimizer = torch.optim.AdamW(
            [
                {"params": weights, "lr": rate, "first_lr": rate}
                for weights, rate in ((encoder, ENCODER_RATE), (decoder, RATE))
            ],
            weight_decay=read_model(start).training["options"]["weight_decay"],
        )
        follow = get_ema_multi_avg_fn(AVERAGE_DECAY)
        self.average = AveragedModel(self.network, multi_avg_fn=follow, use_buffers=True)
        self.parts: dict[str, Any] = {
            "network": self.network,
            "average": self.average,
            "optimizer": self.optimizer,
        }
        self.path = output / "checkpoint.pt"
        self.epoch = 0
        if self.path.exists():
            state = torch.load(self.path, weights_only=True)
            for name, part in self.parts.items():
                part.load_state_dict(state[name])
            self.epoch = state["epoch"] + 1

    @property
    def result(self) -> DepthNetwork:
        """The running average of the weights."""
        return cast("DepthNetwork", self.average.module)

    def train_epoch(self) -> float:
        """Train on each photograph once, save, and return the mean loss."""
        seed = int(np.random.SeedSequence([SEED, self.epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)  # dropout
        fall = (1 + math.cos(math.pi * self.epoch / (EPOCHS - 1))) / 2
        fraction = FINAL_RATE + (1 - FINAL_RATE) * fall if self.epoch else FIRST_RATE
        for group in self.optimizer.param_groups:
            group["lr"] = group["first_lr"] * fraction
        self.network.train()
        losses = []
        for images, truth_m in self.data.batches(generator):
            output = self.network(images)
            loss = laplace_nll(output.depth_m, output.scale_m, truth_m)
            loss = loss + SHAPE * shape_error(output.depth_m, truth_m)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.average.update_parameters(self.network)
            losses.append(loss.item())
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "epoch": self.epoch}, self.path.with_suffix(".tmp"))
        os.replace(self.path.with_suffix(".tmp"), self.path)
        self.epoch += 1
        return float(np.mean(losses))


@torch.inference_mode()
def scores(network: DepthNetwork, sets: dict[str, Batch]) -> dict[str, dict[str, float]]:
    """Return, for each set, the mean over its frames of MAE, a1, and the 95 % interval's share."""
    network.eval()
    found = {}
    for name, (images, truths) in sets.items():
        rows = []
        for image, truth_m in zip(images.split(1), truths.split(1), strict=True):
            output = network(image)
            known = torch.isfinite(truth_m)
            depth_m, scale_m, true_m = (
                maps[known] for maps in (output.depth_m, output.scale_m, truth_m)
            )
            error_m = (depth_m - true_m).abs()
            is_right = (depth_m / true_m).log().abs() < math.log(1.25)
            is_covered = error_m < -math.log(0.05) * scale_m
            rows.append([float(each.float().mean()) for each in (error_m, is_right, is_covered)])
        means = np.nanmean(rows, axis=0).round(4).tolist()
        found[name] = dict(zip(("MAE (m)", "a1", "95 %"), means, strict=True))
    return found


def write(run: Run, start: str, folder: Path, epoch_scores: dict[str, dict[str, float]]) -> None:
    """Write the model folder, in half precision to `folder`, in full beside it."""
    model = read_model(start)
    full = folder.with_name(folder.name + "_full")
    record = dict(model.training)
    record["epochs"] = EPOCHS
    record["kept_epochs"] = [EPOCHS]
    record["started_from"] = {"model": start, "sources": [model.training["source"]]}
    record["rendered"] = {
        name: {"worlds": worlds, "seed": WORLD_SEED} for name, worlds in WORLDS.items()
    }
    record["selection"] = epoch_scores
    record.pop("last_epoch", None)
    writing.create(full, run.result, record)
    writing.write_member(full, "best", run.result)
    writing.set_members(full, ["best"], model.method, record)
    add_familiarity(full, run.data.photographs)
    writing.export_half(full, folder)


def main() -> None:
    """Train and write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nyu", help="folder of NYU Depth v2")
    parser.add_argument("--from", dest="start", default="uncertainty_depth/models/indoor")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.output.mkdir(parents=True, exist_ok=True)
    network = read_model(options.start).network
    width, height = network.input_size
    data = Data(options.nyu, (width, height), network.canonical_focal_length)
    data.render()
    sets = data.selection()
    run = Run(options.start, options.output, data)
    print("before", json.dumps(scores(read_model(options.start).load("best"), sets)), flush=True)
    while run.epoch < EPOCHS:
        loss = run.train_epoch()
        print(run.epoch, f"{loss:.4f}", json.dumps(scores(run.result, sets)), flush=True)
    write(run, options.start, options.output / "indoor", scores(run.result, sets))


if __name__ == "__main__":
    main()
