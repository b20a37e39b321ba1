# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands `train` and `wrap`, which write a model folder."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.cli.arguments import SOURCE, Command, flag, positional, written
from uncertainty_depth.core.config.predictor import UNTRAINED_METHODS
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import from_hub, is_hugging_face
from uncertainty_depth.core.options import from_arguments, from_mapping
from uncertainty_depth.core.output import EmptyFolder
from uncertainty_depth.frames.protocol import NAME_SEPARATOR
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import place_of

if TYPE_CHECKING:
    from uncertainty_depth.depth.training.record import OriginalRun

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train or fine-tune (--from) a model on sources; --resume continues a training."""

    example = (
        "my_bag another_bag --output my_model --backbone microsoft/resnet-50 --depth-range 0.5 80"
    )
    source: list[str] = positional(
        nargs="*",
        metavar="SOURCE",
        help=f"one or more sources, each {SOURCE}; with --resume the recorded ones",
    )
    output: Path = written("MODEL", "model folder to write")
    resume: bool = flag(
        action="store_true",
        help="continue the training in the output folder, with its sources and options",
    )
    training: TrainingConfig
    network: NetworkConfig
    reading: SourceConfig

    def _run(self) -> None:
        from uncertainty_depth.depth.training.record import check_output, read_begun
        from uncertainty_depth.stream.stream import Stream

        check_output(self.output, self.resume, map(place_of, self.source))
        before = read_begun(self.output) if self.resume else None
        recorded = before.source_options if before else None
        source_options = from_arguments(SourceConfig, self.given, recorded)
        sources = _sources(self.source, before)
        stream = Stream.open(Job(sources=sources, reading=source_options))

        # Imported here, after the paths are checked: torch takes seconds to import.
        from uncertainty_depth.depth.training.plan import without_effect
        from uncertainty_depth.depth.training.run import train as train_model

        defaults = _default_options(self.given, before)
        network = from_arguments(NetworkConfig, self.given, defaults)
        training = from_arguments(TrainingConfig, self.given, defaults)
        if warning := without_effect(training, vars(self.given)):
            logger.warning(warning)
        model = train_model(
            stream,
            self.output,
            network,
            training,
            resume=self.resume,
            source_options=source_options,
        )
        print(f"model written to {model}")


def _sources(notations: list[str], before: OriginalRun | None) -> tuple[str, ...]:
    """Return the sources; with --resume and no source, the original run's."""
    notations = notations or (before.source.split(NAME_SEPARATOR) if before else [])
    if not notations:
        raise ConfigError(
            "SOURCE is missing; only --resume takes it from the training that it continues"
        )
    return tuple(notations)


def _default_options(arguments: argparse.Namespace, before: OriginalRun | None) -> dict[str, Any]:
    """Return defaults of the options: of the resumed run, the model to fine-tune, or the usual."""
    from uncertainty_depth.depth.model_folder.folder import read_model
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
        defaults = defaults_of(read_model(training.from_model), user_options)
    else:
        defaults = own_options(network.backbone)
    return defaults | recorded


@dataclass(frozen=True, kw_only=True)
class Wrap(Command):
    """Write a pretrained metric depth model to a model folder, untrained."""

    example = "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf --output my_model"
    backbone: str = positional(
        metavar="HUB_ID",
        help="metric depth model: hub id, or a folder with its config and .safetensors",
    )
    output: Path = written("MODEL", "model folder to write")
    dropout: float | None = flag(
        type=float, help="dropout rate in the head; 0: no dropout, depth only (default: 0.2)"
    )
    method: str = flag(
        default="",
        choices=("", *UNTRAINED_METHODS),
        help="uncertainty method; empty is mc_dropout, or deterministic without dropout",
    )
    input_size: list[int] | None = flag(
        type=int,
        nargs=2,
        help="width and height of the network input, pixels (default: the model's own)",
    )
    depth_range: list[float] | None = flag(
        type=float,
        nargs=2,
        help="minimum and maximum depth, metres (default: the model's own)",
    )

    def _run(self) -> None:
        from uncertainty_depth.depth.model_folder.writing import wrap
        from uncertainty_depth.depth.networks.backbone import own_options

        given = {
            "backbone": self.backbone,
            "dropout": self.dropout,
            "input_size": self.input_size,
            "depth_range": self.depth_range,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        backbone = from_mapping(NetworkConfig, chosen).backbone
        EmptyFolder(self.output).check([Path(backbone)])
        defaults = {**own_options(backbone), "head": "none"}
        config = from_arguments(NetworkConfig, argparse.Namespace(**chosen), defaults)
        model = wrap(self.output, config, self.method)
        print(f"model written to {model}")
