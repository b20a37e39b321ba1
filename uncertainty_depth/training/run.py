"""From a source of frames to a model folder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.data.source import Source
from uncertainty_depth.errors import ConfigError, ModelError, SourceError
from uncertainty_depth.network.hourglass import Hourglass, check_network
from uncertainty_depth.network.inference import choose_device
from uncertainty_depth.options import check, to_mapping
from uncertainty_depth.training import checkpoint, record
from uncertainty_depth.training.checkpoint import Progress
from uncertainty_depth.training.frames import TrainingFrames, read_frames, split
from uncertainty_depth.training.member_run import MemberRun, ModelRun
from uncertainty_depth.training.plan import Member, make_plan, settle

logger = logging.getLogger(__name__)


def train(source: Source, output: Path, network: NetworkConfig, training: TrainingConfig, resume: bool = False) -> Path:
    """Train a method's networks, one after the other, on the frames of a source and write them to the model folder `output`.

    Killed at any moment, a call with `resume` goes on after the last finished epoch; on the CPU the result is then the same, bit for bit.

    Args:
        source: read once; frames without any depth are counted and left out.
        output: the model folder; must not exist, or be empty, unless `resume`.
        network: the architecture and its input size.
        training: the method and how its networks are trained.
        resume: go on with the training in `output`; start it where nothing has been written yet.

    Returns:
        `output`.

    Raises:
        ConfigError: options contradict each other or differ from those of the training to resume, or `output` exists.
        SourceError: the source cannot be read, has fewer than two frames with depth, or is not the one the training to resume was started with.
        ModelError: a backbone or the model to distill cannot be used, the checkpoint is damaged, or `output` holds something else than a training.
    """
    check(training)
    check_network(network)
    network, training = settle(network, training)
    plan = make_plan(network, training)
    before = _progress_before(output, {**to_mapping(network), **to_mapping(training)}, resume)
    if before is None:
        logger.info("the training in %s is complete", output)
        return output
    _try_architectures(plan)
    frames = read_frames(source, network.input_size, training.max_frames)
    progress = _progress_with(frames, before, source.name, output)
    indices, held_out = split(len(frames), training.validation_share, training.seed)
    described = record.start(source.name, frames, network, training, len(indices), len(held_out))
    model = ModelRun(output, plan, frames, indices, held_out, choose_device(training.device), progress, described)
    with torch.random.fork_rng():
        for number in range(model.under_way, len(plan)):
            MemberRun(model, number).run()
    model.finish()
    return output


def _progress_before(output: Path, options: dict[str, Any], resume: bool) -> Progress | None:
    """What has been done before this call, None when all is."""
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; expected a new folder for the model")
    content = [path.name for path in output.iterdir() if not path.name.startswith(".")] if output.is_dir() else []
    if content and not resume:
        raise ConfigError(f"{output} exists and is not empty; expected a new folder, or --resume to go on with the training in it")
    if not content:
        return Progress(options, "", [])
    if checkpoint.FILE in content:
        before = checkpoint.read_progress(output)
        checkpoint.refuse_other_options(_with_defaults(before.options), options, output)
        return before
    if "model.json" not in content:
        raise ModelError(f"{output} holds neither a checkpoint nor a model; expected the folder of a training to resume")
    checkpoint.refuse_other_options(_with_defaults(record.options_of(output)), options, output)
    return None


def _try_architectures(plan: Sequence[Member]) -> None:
    """Build every network once that is not like the first: an encoder that is missing is found now, not after hours."""
    with torch.random.fork_rng():
        for network in dict.fromkeys(member.network for member in plan if member.network != plan[0].network):
            Hourglass(network)


def _with_defaults(options: dict[str, Any]) -> dict[str, Any]:
    """A training started before an option was invented had its default."""
    return {**to_mapping(NetworkConfig()), **to_mapping(TrainingConfig()), **options}


def _progress_with(frames: TrainingFrames, before: Progress, source: str, output: Path) -> Progress:
    fingerprint = frames.fingerprint()
    if before.frames not in ("", fingerprint):
        raise SourceError(f"the frames of {source} are not those the training in {output} was started with; expected the same source")
    return Progress(before.options, fingerprint, before.histories)
