# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands `train` and `wrap`, which write a model folder."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.cli.calibrate import learn_sigma
from uncertainty_depth.core.config import (
    NetworkConfig,
    PredictionTopics,
    SourceConfig,
    TrainingConfig,
)
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import from_hub, is_hugging_face
from uncertainty_depth.core.options import from_arguments
from uncertainty_depth.core.output import EmptyFolder

if TYPE_CHECKING:
    from uncertainty_depth.depth.training.record import OriginalRun

logger = logging.getLogger(__name__)


def train(arguments: argparse.Namespace) -> None:
    """Train or fine-tune (--from) a model on sources; --resume continues a training."""
    from uncertainty_depth.depth.training.record import check_output, read_begun
    from uncertainty_depth.frames.notation import has_recorded
    from uncertainty_depth.stream.job import Job
    from uncertainty_depth.stream.opening import place_of
    from uncertainty_depth.stream.stream import Stream

    topics = PredictionTopics(arguments.depth_topic)
    if any(has_recorded(name, topics) for name in arguments.source):
        learn_sigma(arguments)
        return
    check_output(arguments.output, arguments.resume, map(place_of, arguments.source))
    before = read_begun(arguments.output) if arguments.resume else None
    recorded = before.source_options if before else None
    source_options = from_arguments(SourceConfig, arguments, recorded)
    sources = _sources(arguments.source, before)
    stream = Stream.open(Job(sources=sources, reading=source_options))

    # Imported here, after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.depth.training.plan import without_effect
    from uncertainty_depth.depth.training.run import train as train_model

    defaults = _default_options(arguments, before)
    network = from_arguments(NetworkConfig, arguments, defaults)
    training = from_arguments(TrainingConfig, arguments, defaults)
    if warning := without_effect(training, vars(arguments)):
        logger.warning(warning)
    model = train_model(
        stream,
        arguments.output,
        network,
        training,
        resume=arguments.resume,
        source_options=source_options,
    )
    print(f"model written to {model}")


def _sources(notations: list[str], before: OriginalRun | None) -> tuple[str, ...]:
    """Return the sources; with --resume and no source, the original run's."""
    from uncertainty_depth.frames.protocol import NAME_SEPARATOR

    notations = notations or (before.source.split(NAME_SEPARATOR) if before else [])
    if not notations:
        raise ConfigError(
            "SOURCE is missing; only --resume takes it from the training that it continues"
        )
    return tuple(notations)


def _default_options(arguments: argparse.Namespace, before: OriginalRun | None) -> dict[str, Any]:
    """Return defaults of the options: of the resumed run, the model to fine-tune, or the usual."""
    from uncertainty_depth.depth.model_folder.folder import read
    from uncertainty_depth.depth.networks.backbone import own_options
    from uncertainty_depth.depth.training.plan import defaults_of

    recorded = before.options if before else {}
    user_options = {**recorded, **vars(arguments)}
    network = from_arguments(NetworkConfig, arguments, recorded)
    training = from_arguments(TrainingConfig, arguments, recorded)
    if training.from_model:
        if is_hugging_face(from_hub(Path(training.from_model))):
            raise ConfigError(
                f"{training.from_model} is a depth model of Hugging Face, which --backbone takes; "
                "expected a model folder of this package after --from"
            )
        defaults = defaults_of(read(training.from_model), user_options)
    else:
        defaults = own_options(network.backbone)
    return defaults | recorded


def wrap(arguments: argparse.Namespace) -> None:
    """Write a pretrained metric depth model to a model folder, untrained."""
    from uncertainty_depth.depth.model_folder.wrapping import wrap as wrap_model
    from uncertainty_depth.depth.networks.backbone import own_options

    backbone = from_arguments(NetworkConfig, arguments).backbone
    EmptyFolder(arguments.output).check([Path(backbone)])
    defaults = {**own_options(backbone), "head": "none"}
    config = from_arguments(NetworkConfig, arguments, defaults)
    model = wrap_model(arguments.output, config, arguments.method)
    print(f"model written to {model}")
