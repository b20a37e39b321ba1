# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read the record of the run that --resume continues; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncertainty_depth import strict_json
from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError, ModelError
from uncertainty_depth.model_location import MAX_BYTES
from uncertainty_depth.options import current_names
from uncertainty_depth.training import domain

FREE = {"processes"}
"""Options that may differ between the original run and --resume."""


@dataclass(frozen=True)
class OriginalRun:
    """Record of a training, finished or not.

    Attributes:
        options: of the network and of the training.
        fingerprint: of the frames; empty where an earlier version has written none.
        finished: whether all its networks are trained.
        source: name of what it is trained on.
        source_options: how the source was opened; empty in folders of earlier versions.
        has_domain: whether it says what the training data were like; earlier versions did not.
    """

    options: dict[str, Any]
    fingerprint: str
    finished: bool
    has_domain: bool
    source: str = ""
    source_options: dict[str, Any] = field(default_factory=dict)


def read_begun(folder: Path) -> OriginalRun | None:
    """Return the record of the training in `folder`; None before its first write.

    Raises:
        ModelError: `model.json` is damaged or names no options.
    """
    return read(folder) if (folder / "model.json").exists() else None


def read(folder: Path) -> OriginalRun:
    """Return the record of the training in `folder`.

    Raises:
        ModelError: `model.json` is damaged or names no options.
    """
    try:
        content = strict_json.read_file(folder / "model.json", MAX_BYTES)
        training = content["training"]
        return OriginalRun(
            current_names(
                {**content["network"], **training["options"]}, NetworkConfig, TrainingConfig
            ),
            training.get("fingerprint", ""),
            training.get("finished", False),
            all(key in training for key in domain.KEYS),
            training.get("source", ""),
            training.get("source_options", {}),
        )
    except (OSError, strict_json.JsonError, KeyError, TypeError) as error:
        raise ModelError(
            f"{folder / 'model.json'} does not say how the model was trained; expected the folder "
            "of a training"
        ) from error


def refuse_other_options(original: dict[str, Any], options: dict[str, Any], folder: Path) -> None:
    """Raise `ConfigError` for the first option that differs from the original run."""
    for name in sorted((original.keys() | options.keys()) - FREE):
        original_value = original.get(name)
        value = options.get(name)
        if value != original_value:
            raise ConfigError(
                f"{name} is {value!r} but the training in {folder} was started with "
                f"{original_value!r}; expected the same options to resume it"
            )
