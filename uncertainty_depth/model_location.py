# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Find a model without importing torch, so that a wrong path fails fast."""

from __future__ import annotations

import re
from pathlib import Path

from uncertainty_depth.errors import ModelError

MAX_BYTES = 2**22
"""Of a `model.json`; those of the package have some 10,000."""


def check_location(model: Path) -> None:
    """Raise `ModelError` unless this can be a model: a folder of one, or a hub id."""
    if is_hugging_face(model):
        return
    if not model.is_dir():
        raise ModelError(
            f"model folder {model} does not exist; expected one, indoor or demo, or a depth model "
            "of Hugging Face: ORG/NAME, or a folder of save_pretrained"
        )
    if not (model / "model.json").is_file():
        raise ModelError(
            f"{model} is not a model folder: it has no model.json, nor the config.json of "
            "save_pretrained"
        )


def is_hugging_face(model: Path) -> bool:
    """Return whether this names a model of Hugging Face: a folder of `save_pretrained`, or an id.

    A path below an existing folder is no hub id: a mistyped path must not be asked of the hub.
    """
    if model.is_dir():
        return (model / "config.json").is_file() and not (model / "model.json").is_file()
    is_id = re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", str(model)) is not None
    return is_id and not model.parent.exists()
