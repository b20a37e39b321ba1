# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read, check and write files of tensors: safetensors, never a pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from uncertainty_depth import atomic
from uncertainty_depth.errors import ModelError


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a file.

    Raises:
        ModelError: the file is missing or damaged.
    """
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; model.json names it") from error
    except (SafetensorError, OSError) as error:
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
    content = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
    atomic.write_bytes(path, content)
    return path
