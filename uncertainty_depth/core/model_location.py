# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Find a model without importing torch, so that a wrong path fails fast."""

from __future__ import annotations

import re
from pathlib import Path

from uncertainty_depth.core.errors import ModelError, first_line

MODELS = Path(__file__).parents[1] / "models"
NAMES = ("demo", "indoor")
"""Trained on the demo's rendered rooms; and on photographs of rooms, for any camera."""
SHIPPED_MODEL = MODELS / "demo"


def model_path(folder: Path | str) -> Path:
    """Return the model folder: the shipped model of this name, unless such a folder exists."""
    path = Path(folder)
    is_here = (path / "model.json").exists()
    return MODELS / path if str(path) in NAMES and not is_here else path


MAX_BYTES = 2**22
"""Largest `model.json`; those in the package have some 10,000."""
HUB_FILES = ("model.json", "*.safetensors")
"""What of a model folder is published, and downloaded again; never a pickle."""
HUB_TIMEOUT_S = 10.0


def is_own_class(model: Path | str) -> bool:
    """Return whether this names a Python class of the user's own, `FOLDER/MODULE:CLASS`."""
    is_class = re.fullmatch(r"(.*/)?[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(model)) is not None
    return is_class and not Path(model).exists()


def check_location(model: Path) -> None:
    """Raise `ModelError` unless this can be a model: a folder of one, or a hub id."""
    if is_own_class(model):
        raise ModelError(
            f"model is {model}, a class of your own, which `evaluate` and `view` take; expected a "
            "model folder, indoor, demo or ORG/NAME"
        )
    if is_hugging_face(model):
        return
    if not model.is_dir():
        raise ModelError(
            f"model folder {model} does not exist; expected one, indoor or demo, or a depth model "
            "of Hugging Face: ORG/NAME, or a folder of save_pretrained; or FOLDER/MODULE:CLASS of "
            "your own"
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


def from_hub(model: Path) -> Path:
    """Return the local copy if this model folder was published on the Hub; else the path itself.

    A transformers network stays a hub id, which its own loader finds. So does what the Hub does
    not answer for: the loader says why.

    Raises `ModelError`: the Hub has the model folder and does not give it.
    """
    if model.is_dir() or not is_hugging_face(model):
        return model
    from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache

    name = str(model)
    cached = try_to_load_from_cache(name, "model.json")
    if not isinstance(cached, str):
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return model
        try:
            files = HfApi().model_info(name, timeout=HUB_TIMEOUT_S).siblings or []
        except Exception:  # whatever the Hub's library raises: the loader retries and reports
            return model
        if "model.json" not in {file.rfilename for file in files}:
            return model
    try:
        # What is in the cache is used as it is: a robot starts without a network.
        return Path(
            snapshot_download(
                name, allow_patterns=list(HUB_FILES), local_files_only=isinstance(cached, str)
            )
        )
    except Exception as error:
        raise ModelError(
            f"the hub has the model folder {name} and did not give it: {first_line(error)}"
        ) from error
