# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Train a model on a source and write its folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ModelError, SourceError
from uncertainty_depth.core.options import to_mapping, validate
from uncertainty_depth.depth.networks.deployment import choose_device
from uncertainty_depth.depth.networks.depth_network import check_network
from uncertainty_depth.depth.training import record
from uncertainty_depth.depth.training.familiarity import add_familiarity
from uncertainty_depth.depth.training.frames import (
    read_frames,
    split_frames,
    warn_of_sparse_ground_truth,
)
from uncertainty_depth.depth.training.member_run import (
    MemberRun,
    ModelRun,
    clean,
    create,
    initial_network,
)
from uncertainty_depth.depth.training.plan import make_plan, provenance, settle
from uncertainty_depth.depth.training.record import OriginalRun
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.sigma.sparse_depth import parse

logger = logging.getLogger(__name__)


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

    Args:
        source: read once; frames without any depth are counted and left out.
        output: the model folder; must not exist, or be empty, unless `resume`.
        network: the architecture and its input size.
        training: the method and how its networks are trained.
        resume: continue the training in `output`, or start it if nothing has been written yet.
        source_options: how the source was opened, recorded in `model.json` for --resume.

    Returns:
        `output`.

    Raises:
        ConfigError: options contradict each other or differ from the resumed training's.
        SourceError: the source cannot be read, has fewer than two frames with depth, or is not the
            resumed training's source; or `output` is not empty, or cannot be written to.
        ModelError: a backbone or the model to distill cannot be used, a checkpoint is damaged, or
            `output` holds something other than a training.
    """
    validate(training)
    check_network(network)
    network, training = settle(network, training)
    plan = make_plan(network, training)
    before = _before(output, {**to_mapping(network), **to_mapping(training)}, resume)
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
    warn_of_sparse_ground_truth(frames.depths_m, parse(network.sparse_input))
    indices, validation = split_frames(len(frames), training.validation_fraction, training.seed)
    described = record.start(source.name, frames, network, training, indices, validation)
    described |= provenance(plan)
    described["source_options"] = to_mapping(source_options or SourceConfig())
    if before is not None and before.fingerprint not in ("", described["fingerprint"]):
        raise SourceError(
            f"the frames of {source.name} are not those the training in {output} was started "
            "with; expected the same source"
        )
    model = ModelRun(output, plan, frames, indices, validation, device, described)
    with torch.random.fork_rng():
        create(model)
        for number in model.unfinished():
            MemberRun(model, number).run()
        model.finish()
        try:
            add_familiarity(output, frames, training.device)
        except (SourceError, ModelError) as error:
            logger.warning("the model cannot detect unfamiliar frames: %s", error)
    return output


def _before(output: Path, options: dict[str, Any], resume: bool) -> OriginalRun | None:
    """Return the record of the training in `output`; None if there is none."""
    record.check_output(output, resume)
    if (before := record.read_begun(output)) is None:
        return None
    defaults = {**to_mapping(NetworkConfig()), **to_mapping(TrainingConfig())}
    record.refuse_other_options({**defaults, **before.options}, options, output)
    return before
