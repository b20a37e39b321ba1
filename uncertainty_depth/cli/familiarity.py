# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `familiarity` command: measure the training frames, so that unlike frames are detected."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from uncertainty_depth.config import SourceConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.model_location import is_hugging_face
from uncertainty_depth.options import current_names, from_arguments, from_mapping
from uncertainty_depth.shipped_model import model_path


def familiarity(arguments: argparse.Namespace) -> None:
    """Compute the familiarity of a model from its training frames; new models have it already."""
    from uncertainty_depth.frames.joined_source import open_sources
    from uncertainty_depth.frames.source import NAME_SEPARATOR
    from uncertainty_depth.model_folder.folder import read
    from uncertainty_depth.training.familiarity import add_familiarity
    from uncertainty_depth.training.frames import read_frames, split

    _check_not_shipped(arguments.model)
    model = read(arguments.model)
    notation = NAME_SEPARATOR.join(arguments.source) or model.training.get("source")
    if not notation:
        raise ConfigError(
            f"{arguments.model} does not say what it was trained on; expected SOURCE too"
        )
    training = _training_options(model.training.get("options", {}))
    options = from_arguments(SourceConfig, arguments, model.training.get("source_options"))
    frames = read_frames(
        open_sources(notation.split(NAME_SEPARATOR), options),
        model.network.input_size,
        training.max_frames,
        model.network.canonical_focal_length,
    )
    indices, held_out = split(len(frames), training.validation_fraction, training.seed)
    score = add_familiarity(arguments.model, frames, indices, held_out, training.device)
    print(
        f"familiarity of {arguments.model} fitted to {len(indices)} frames of {notation}; 99 % of "
        f"the {len(held_out)} held-out frames are within a distance of {score.threshold:.1f}"
    )


def _check_not_shipped(model: Path) -> None:
    if is_hugging_face(
        model
    ):  # a published model folder lies in the Hub's cache, not to be changed
        raise ConfigError(
            f"{model} has no folder of its own to write to; expected `hf download {model} "
            "--local-dir MODEL` first"
        )
    shipped = model_path(model)
    if shipped != model:
        raise ConfigError(f"{model} is shipped with the package; expected a copy of {shipped}")


def _training_options(recorded: Mapping[str, Any]) -> TrainingConfig:
    """Return the options of a training by its record, which holds those of the network too."""
    current = current_names(recorded, TrainingConfig)
    names = [field.name for field in fields(TrainingConfig)]
    return from_mapping(TrainingConfig, {name: current[name] for name in names if name in current})
