# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The two kinds of files in a model folder: `model.json`, and safetensors, never a pickle."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.model_location import MAX_BYTES, check_location
from uncertainty_depth.depth.model_folder.tensor_files import (
    TensorFile,
    TensorFileError,
    packed,
)
from uncertainty_depth.depth.networks.architectures import ARCHITECTURES

FORMAT = 1
KEYS: dict[str, type] = {
    "architecture": str,
    "network": dict,
    "backbone": dict,
    "method": str,
    "members": list,
    "shared_encoder": bool,
    "training": dict,
}


def write_json(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `model.json`, whole or not at all."""
    text = json.dumps({"format": FORMAT, **content}, indent=2)
    atomic.write_text(folder / "model.json", text + "\n")


def read_json(folder: Path) -> dict[str, Any]:
    """Return the content of `model.json`, which has all of `KEYS`.

    Raises:
        ModelError: the folder or the file is missing, broken, of a newer format or of an unknown
            architecture.
    """
    check_location(folder)
    path = folder / "model.json"
    try:
        content = strict.read_json_file(path, MAX_BYTES)
    except (strict.FormatError, OSError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    number = content.get("format") if isinstance(content, dict) else None
    if type(number) is not int:
        raise ModelError(f"{path} has format {reprlib.repr(number)}; expected {FORMAT}")
    if number > FORMAT:
        raise ModelError(
            f"{path} has format {number}, newer than {FORMAT}, the newest this version reads; "
            "update uncertainty_depth"
        )
    for key, value_type in KEYS.items():
        if not isinstance(content.get(key), value_type):
            raise ModelError(
                f"{path} has {key} = {reprlib.repr(content.get(key))}; "
                f"expected a {value_type.__name__}"
            )
    if content["architecture"] not in ARCHITECTURES:
        raise ModelError(
            f"{path} has architecture {reprlib.repr(content['architecture'])}; "
            f"expected {' or '.join(map(repr, ARCHITECTURES))}"
        )
    return content


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors in a file; raise `ModelError` if it is missing or damaged."""
    try:
        return TensorFile.open(path).tensors()
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; model.json names it") from error
    except (TensorFileError, OSError) as error:
        raise ModelError(f"{path} is truncated or damaged: {error}") from error


def check_tensors(path: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise `ModelError` for the first tensor that is not as expected, or not finite."""
    for name in (*expected, *tensors):
        if name not in tensors:
            raise ModelError(
                f"{path} is of another architecture than model.json: it lacks tensor {name}"
            )
        if name not in expected:
            raise ModelError(
                f"{path} is of another architecture than model.json: "
                f"it has an unknown tensor {name}"
            )
        if tensors[name].shape != expected[name].shape:
            raise ModelError(
                f"{path} is of another architecture than model.json: tensor {name} has shape "
                f"{tuple(tensors[name].shape)}, expected {tuple(expected[name].shape)}"
            )
        if not bool(tensors[name].isfinite().all()):
            raise ModelError(
                f"{path} has NaN or infinity in tensor {name}: the file is damaged; "
                "expected finite weights"
            )


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write the tensors to a file, whole or not at all; returns its path."""
    atomic.write_bytes(path, packed(tensors))
    return path
