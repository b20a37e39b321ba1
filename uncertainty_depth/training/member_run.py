"""A model under way, and the training of the member whose turn it is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from uncertainty_depth.network import folder as model_folder
from uncertainty_depth.network.backbone import make_backbone
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.training import checkpoint, record, schedule
from uncertainty_depth.training.checkpoint import Progress
from uncertainty_depth.training.curves import CURVES, write_picture, write_table
from uncertainty_depth.training.epoch import batches_per_epoch, train_epoch, validate
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.objective import has_bfloat16
from uncertainty_depth.training.plan import Member, served
from uncertainty_depth.training.start import start_from_constant

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelRun:
    """What all members have in common, and what is done of them.

    Attributes:
        folder: the model folder.
        plan: the members in the order they are trained in.
        frames: training and validation frames.
        indices: the training frames.
        held_out: the validation frames, the same for all members.
        device: where to train.
        progress: changed with every epoch.
        record: what `model.json` says about the training, results aside.
    """

    folder: Path
    plan: Sequence[Member]
    frames: TrainingFrames
    indices: Sequence[int]
    held_out: Sequence[int]
    device: torch.device
    progress: Progress
    record: dict[str, Any]

    @property
    def under_way(self) -> int:
        """Number of the member whose turn it is, from 0."""
        return max(len(self.progress.histories) - 1, 0)

    def describe(self, finished: bool = False) -> None:
        """Bring `model.json` up to date: with the first weights kept the model is of use."""
        histories = self.progress.histories
        content = self.record | record.results(self.plan, histories, finished)
        model_folder.set_members(self.folder, served(self.plan, histories), self.plan[0].training.method, content)

    def finish(self) -> None:
        """Complete `model.json`; without a checkpoint the training counts as complete."""
        self.describe(finished=True)
        for left in (self.folder / checkpoint.FILE, *self.folder.glob(".*")):  # hidden: what a kill left half written
            left.unlink(missing_ok=True)


class MemberRun:
    """The training of one member: all its state, saved after every epoch."""

    def __init__(self, model: ModelRun, number: int) -> None:
        self.model, self.member = model, model.plan[number]
        self.training, self.indices = self.member.training, self.member.frames(model.indices)
        self.objective = self.member.objective_in(model.folder, model.device, len(self.indices))
        self.curves = CURVES if len(model.plan) == 1 else f"{CURVES}_{self.member.name}"
        self.label = "" if len(model.plan) == 1 else f"{self.member.name} ({number + 1}/{len(model.plan)}) "
        self.network = _make_network(self.member)
        start_from_constant(self.network, *self.member.guess(model.frames))
        self.network.to(model.device, memory_format=torch.channels_last)  # 1.2 times as fast in a measured training step
        weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, self.training.learning_rate, weight_decay=self.training.weight_decay)
        self._start() if len(model.progress.histories) == number else self._restore()

    @property
    def errors(self) -> list[float]:
        """Validation error of each epoch so far."""
        return schedule.validation_errors(self.model.progress.history)

    def run(self) -> None:
        """Train until the schedule says that it is enough."""
        steps = batches_per_epoch(len(self.indices), self.training.batch_size)
        with tqdm(total=self.training.epochs * steps, initial=len(self.errors) * steps, unit="batch") as bar:
            while not schedule.is_finished(self.errors, self.training):
                self.one_epoch(bar)
            bar.total = bar.n
        write_picture(self.model.folder, self.curves, self.model.progress.history, schedule.kept_epochs(self.errors, self.training))
        if schedule.plateau(self.errors, self.training.patience) is None:
            logger.warning(
                "%sthe validation error had not stopped improving after %d epochs; a new training with more --epochs would help",
                self.label,
                len(self.errors),
            )

    def one_epoch(self, bar: tqdm) -> None:
        """Train, validate, keep the weights where the schedule says so, save."""
        model, epoch = self.model, len(self.errors)
        bar.set_description(f"{self.label}epoch {epoch + 1}/{self.training.epochs}")
        self.network.train()
        train_loss = train_epoch(self.network, self.optimizer, self.objective, model.frames, self.indices, self.training, epoch, bar)
        errors = validate(self.network, self.objective, model.frames, model.held_out, self.training.batch_size)
        model.progress.history.append({"train_loss": train_loss, **errors})
        bar.set_postfix(loss=f"{train_loss:.3f}", abs_rel=f"{errors['abs_rel']:.3f}", rmse=f"{errors['rmse']:.3f} m")
        self._save(epoch)

    def _start(self) -> None:
        model = self.model
        model.folder.mkdir(parents=True, exist_ok=True)
        model.progress.histories.append([])
        checkpoint.write(model.folder, self.network, self.optimizer, model.progress)
        self._create()
        logger.info("%straining in %s", self.label, "bfloat16 (autocast)" if has_bfloat16(model.device) else "float32")

    def _restore(self) -> None:
        checkpoint.restore(self.model.folder, self.network, self.optimizer)
        self._create()
        logger.info("%sresuming %s after epoch %d", self.label, self.model.folder, len(self.errors))

    def _create(self) -> None:
        """With the first member, or where a kill came before it."""
        if not (self.model.folder / "model.json").exists():
            model_folder.create(self.model.folder, self.network, self.model.record)

    def _save(self, epoch: int) -> None:
        """The checkpoint last: a kill before it repeats the epoch, which writes the same files again."""
        folder, progress = self.model.folder, self.model.progress
        if schedule.keeps(self.errors, self.training):
            model_folder.write_member(folder, schedule.member_name(epoch, self.training, self.member.name), self.network)
            self.model.describe()
        write_table(folder, self.curves, progress.history)
        checkpoint.write(folder, self.network, self.optimizer, progress)


def _make_network(member: Member) -> Hourglass:
    """With its initial weights; a pretrained backbone has its own."""
    torch.manual_seed(member.encoder_seed)
    backbone = make_backbone(member.network.backbone)
    if member.encoder_seed != member.training.seed:
        torch.manual_seed(member.training.seed)
    network = Hourglass(member.network, backbone)
    if member.training.freeze_encoder:
        network.freeze_encoder()
    return network
