# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train a model on a source and write its folder."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from uncertainty_depth.core import atomic, options
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError, ModelError, SourceError
from uncertainty_depth.depth.model_folder import writing
from uncertainty_depth.depth.model_folder.files import read_tensors
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.deployment import choose_device, has_bfloat16
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, check_network
from uncertainty_depth.depth.networks.encoder import TransformersModel
from uncertainty_depth.depth.networks.hourglass import NETWORKS, make_network
from uncertainty_depth.depth.training import checkpoint, record, schedule
from uncertainty_depth.depth.training.checkpoint import CURVES, History, write_table
from uncertainty_depth.depth.training.familiarity import add_familiarity
from uncertainty_depth.depth.training.frames import (
    TrainingFrames,
    read_frames,
    split_frames,
)
from uncertainty_depth.depth.training.objective import batches, train_epoch, validate
from uncertainty_depth.depth.training.plan import Member, make_plan, provenance, served, settle
from uncertainty_depth.frames.protocol import Source

logger = logging.getLogger(__name__)
EXAMPLES = 8


def initial_network(member: Member) -> DepthNetwork:
    """Return the network with random, pretrained or fine-tuned initial weights, as planned.

    Raises:
        ModelError: the backbone or the model folder to start from cannot be used.
        ConfigError: the backbone cannot be trained, or the encoder's weights are not its own.
    """
    if member.start:
        folder, name = member.start
        model = read_model(folder)
        network = model.build(name)
        network.load_state_dict(model.load(name).state_dict())
    else:
        torch.manual_seed(member.encoder_seed)
        name = member.network.backbone
        backbone = None if name in NETWORKS else make_backbone(name)
        if member.training.encoder_weights:
            load_encoder_weights(backbone, Path(member.training.encoder_weights))
        if member.encoder_seed != member.training.seed:
            torch.manual_seed(member.training.seed)
        network = make_network(member.network, backbone)
    if member.training.freeze_encoder:
        network.freeze_encoder()
    return network


def load_encoder_weights(backbone: TransformersModel, path: Path) -> None:
    """Load a backbone's weights from a safetensors file, ignoring further tensors, a classifier's.

    Raises `ConfigError` without the file or a tensor of the backbone, `ModelError` if damaged.
    """
    if backbone is None or not path.is_file():
        problem = "the network has no backbone" if backbone is None else "there is no such file"
        raise ConfigError(
            f"encoder_weights is {str(path)!r}, but {problem}; expected a safetensors file of the "
            "weights of --backbone"
        )
    tensors = read_tensors(path)
    expected = backbone.state_dict()
    for name, value in expected.items():
        found = tuple(tensors[name].shape) if name in tensors else "missing"
        if found != tuple(value.shape):
            raise ConfigError(
                f"{path} is not of the backbone's kind: tensor {name} is {found}; expected "
                f"{tuple(value.shape)}"
            )
    backbone.load_state_dict({name: tensors[name].to(expected[name].dtype) for name in expected})


@dataclass(frozen=True)
class ModelRun:
    """State shared by all members; each member's progress is in its checkpoint."""

    folder: Path
    plan: Sequence[Member]
    frames: TrainingFrames
    indices: Sequence[int]
    validation: Sequence[int]
    device: torch.device
    record: dict[str, Any]

    @cached_property
    def checkpoints(self) -> list[Path]:
        """The path of each member's checkpoint."""
        return checkpoints(self.folder, self.plan)

    def histories(self) -> list[History]:
        """Return the histories of all members from their checkpoints."""
        return [checkpoint.read(path).history for path in self.checkpoints]

    def describe(self, histories: Sequence[History], finished: bool = False) -> None:
        """Update `model.json`; the model can be used once it has the first weights."""
        content = self.record | record.results(self.plan, histories, finished)
        writing.set_members(
            self.folder, served(self.plan, histories), self.plan[0].training.method, content
        )


def checkpoints(folder: Path, plan: Sequence[Member]) -> list[Path]:
    """Return the path of each member's checkpoint."""
    return [folder / f"{named(checkpoint.NAME, plan, each)}.safetensors" for each in plan]


def named(stem: str, plan: Sequence[Member], member: Member) -> str:
    """Return a file's stem, with the member's name if the model has several members."""
    return stem if len(plan) == 1 else f"{stem}_{member.name}"


def clean(folder: Path, plan: Sequence[Member]) -> None:
    """Remove checkpoints, and what killed processes left of them and of the model's files."""
    for path in (unfinished := checkpoints(folder, plan)):
        path.unlink(missing_ok=True)
    for path in (*unfinished, *folder.iterdir()):
        atomic.remove_unfinished(path)


class MemberRun:
    """Training of one member; all its state is saved after every epoch."""

    def __init__(self, model: ModelRun, number: int) -> None:
        """Prepare the member `number`, from 0."""
        self.model = model
        self.number = number
        self.member = model.plan[number]
        self.training = self.member.training
        self.indices = self.member.frames(model.indices)
        self.objective = self.member.objective
        if self.member.targets is not None:  # the members that it learns from are in the folder
            targets = self.member.targets(model.folder, model.device)
            self.objective = replace(self.objective, targets=targets)
        self.curves = named(CURVES, model.plan, self.member)
        self.checkpoint = model.checkpoints[number]
        self.label = (
            "" if len(model.plan) == 1 else f"{self.member.name} ({number + 1}/{len(model.plan)}) "
        )
        self.network = initial_network(self.member)
        # channels last: 1.2 times as fast in a measured training step
        channels_last: Any = {"memory_format": torch.channels_last}  # not in torch's stubs
        self.network.to(model.device, **channels_last)
        self.optimizer = make_optimizer(self.network, self.training)
        self.history = checkpoint.read(self.checkpoint).history
        if not self.history:
            self._start()
        self.average: AveragedModel | None = None
        if self.training.average_decay:
            # It lies nearer the middle of a wide minimum than the last step does, which serves
            # images unlike the training's (Izmailov et al. 2018; Arpit et al. 2022).
            follow = get_ema_multi_avg_fn(self.training.average_decay)
            self.average = AveragedModel(self.network, multi_avg_fn=follow, use_buffers=True)
        if self.history:
            checkpoint.restore(self.checkpoint, self.network, self.optimizer, self.average)
            epochs = len(self.errors)
            logger.info("%sresuming %s after epoch %d", self.label, model.folder, epochs)

    @property
    def result(self) -> DepthNetwork:
        """The network that is validated and saved: the running average if there is one."""
        return self.network if self.average is None else cast("DepthNetwork", self.average.module)

    @property
    def errors(self) -> list[float]:
        """Validation error of each finished epoch."""
        return schedule.validation_errors(self.history)

    def run(self) -> None:
        """Train until the schedule ends it."""
        steps = len(batches(self.indices, self.training.batch_size))
        with tqdm(
            total=self.training.epochs * steps, initial=len(self.errors) * steps, unit="batch"
        ) as bar:
            while not schedule.is_finished(self.errors, self.training):
                self.one_epoch(bar)
            bar.total = bar.n
        checkpoint.close(self.checkpoint, self.history)
        if schedule.plateau(self.errors, self.training.patience) is None:
            logger.warning(
                "%sepoch %d of %d has the lowest validation error, and fewer than %d epochs "
                "(patience) followed it; train again with more --epochs",
                self.label,
                1 + self.errors.index(min(self.errors)),
                len(self.errors),
                self.training.patience,
            )

    def one_epoch(self, bar: tqdm) -> None:
        """Train, validate, write the weights if the schedule says so, and save."""
        model = self.model
        epoch = len(self.errors)
        bar.set_description(f"{self.label}epoch {epoch + 1}/{self.training.epochs}")
        self.network.train()
        for group in self.optimizer.param_groups:
            group["lr"] = group["first_lr"] * schedule.fraction_of_rate(epoch, self.training)
        train_loss = train_epoch(
            self.network, self.optimizer, self.objective, model.frames, self.indices,
            self.training, epoch, bar, self.average,
        )  # fmt: skip
        batch_size = self.training.batch_size
        errors = validate(self.result, self.objective, model.frames, model.validation, batch_size)
        self.history.append({"train_loss": train_loss, **errors})
        bar.set_postfix(
            loss=f"{train_loss:.3f}",
            abs_rel=f"{errors['abs_rel']:.3f}",
            rmse=f"{errors['rmse']:.3f} m",
        )
        self._save(epoch)

    def _start(self) -> None:
        if not self.member.start:
            self.network.start_from_constant(*self.member.guess(self.model.frames))
            self.network.align(self._examples)
        logger.info(
            "%straining in %s",
            self.label,
            "bfloat16 (autocast)" if has_bfloat16(self.model.device) else "float32",
        )

    def _examples(self) -> tuple[Tensor, Tensor]:
        """Return some training images, evenly spaced, and their targets."""
        images, depth_m = self.model.frames.batch(
            self.indices[:: math.ceil(len(self.indices) / EXAMPLES)], self.model.device
        )
        return images, self.objective.targets(images, depth_m)

    def _save(self, epoch: int) -> None:
        """Write weights and tables, then the checkpoint: a killed epoch writes the same again."""
        folder = self.model.folder
        if schedule.keeps(self.errors, self.training):
            writing.write_member(
                folder, schedule.member_name(epoch, self.training, self.member.name), self.result
            )
            histories = self.model.histories()
            histories[self.number] = self.history
            self.model.describe(histories)
        write_table(folder, self.curves, self.history)
        checkpoint.write(self.checkpoint, self.network, self.optimizer, self.history, self.average)


def make_optimizer(network: DepthNetwork, training: TrainingConfig) -> torch.optim.AdamW:
    """Return AdamW over the encoder and the rest, each group with its rate of the first epoch.

    Pretrained weights would forget what they learnt at the rate that random weights need.
    """
    encoder = [weight for weight in network.encoder.parameters() if weight.requires_grad]
    of_encoder = set(map(id, encoder))
    others = [
        weight
        for weight in network.parameters()
        if weight.requires_grad and id(weight) not in of_encoder
    ]
    encoder_rate = training.encoder_learning_rate or training.learning_rate
    groups = [
        {"params": weights, "lr": rate, "first_lr": rate}
        for weights, rate in ((encoder, encoder_rate), (others, training.learning_rate))
        if weights
    ]
    return torch.optim.AdamW(groups, weight_decay=training.weight_decay)


def train(
    source: Source,
    output: Path,
    network: NetworkConfig,
    training: TrainingConfig,
    resume: bool = False,
    source_options: SourceConfig | None = None,
) -> Path:
    """Train the networks of a method on a source and write the model folder `output`.

    After a kill at any moment, a call with `resume` continues after the last finished epoch. On
    the CPU the result is bit for bit the same.

    Frames without any depth are counted and left out. `output` must not exist, or be empty, unless
    `resume`; it is returned. `source_options` are recorded in `model.json` for --resume.

    Raises:
        ConfigError: options contradict each other or differ from the resumed training's.
        SourceError: the source cannot be read, has fewer than two frames with depth, or is not the
            resumed training's source; or `output` is not empty, or cannot be written to.
        ModelError: a backbone or the model to distill cannot be used, a checkpoint is damaged, or
            `output` holds something other than a training.
    """
    options.validate(training)
    check_network(network)
    network, training = settle(network, training)
    plan = make_plan(network, training)
    record.check_output(output, resume)
    before = record.read_begun(output)
    if before is not None:
        defaults = {**options.to_mapping(NetworkConfig()), **options.to_mapping(TrainingConfig())}
        given = {**options.to_mapping(network), **options.to_mapping(training)}
        record.refuse_other_options({**defaults, **before.options}, given, output)
    if before is not None and before.finished:
        clean(output, plan)
        logger.info("the training in %s is complete", output)
        return output
    with torch.random.fork_rng():  # a damaged encoder is reported before training
        for member in {(member.network, member.start): member for member in plan}.values():
            initial_network(member)
    device = choose_device(training.device)
    frames = read_frames(
        source, network.input_size, training.max_frames, network.canonical_focal_length
    )
    indices, validation = split_frames(len(frames), training.validation_fraction, training.seed)
    described = record.start(source.name, frames, network, training, indices, validation)
    described |= provenance(plan)
    described["source_options"] = options.to_mapping(source_options or SourceConfig())
    if before is not None and before.fingerprint not in ("", described["fingerprint"]):
        raise SourceError(
            f"the frames of {source.name} are not those the training in {output} was started "
            "with; expected the same source"
        )
    model = ModelRun(output, plan, frames, indices, validation, device, described)
    with torch.random.fork_rng():
        if not (output / "model.json").exists():
            writing.create(output, initial_network(plan[0]), described)
        for number, path in enumerate(model.checkpoints):
            if not checkpoint.read(path).trained:
                MemberRun(model, number).run()
        model.describe(model.histories(), finished=True)
        clean(output, plan)
        try:
            add_familiarity(output, frames, training.device)
        except (SourceError, ModelError) as error:
            logger.warning("the model cannot detect unfamiliar frames: %s", error)
    return output
