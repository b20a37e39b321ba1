# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Find a model folder without importing torch, so that a wrong path fails fast."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.errors import ModelError


def check_location(folder: Path) -> None:
    """Raise `ModelError` unless the path is a model folder."""
    if not folder.is_dir():
        raise ModelError(f"model folder {folder} does not exist")
    if not (folder / "model.json").is_file():
        raise ModelError(f"{folder} is not a model folder: it has no model.json")
