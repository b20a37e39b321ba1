# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The models that come with the package."""

from __future__ import annotations

from pathlib import Path

MODELS = Path(__file__).parent / "models"
NAMES = ("demo", "indoor")
"""Trained on the demo's rendered rooms; and on photographs of rooms, for any camera."""
SHIPPED_MODEL = MODELS / "demo"


def model_path(folder: Path | str) -> Path:
    """Return the model folder: the shipped model of this name, unless such a folder exists."""
    path = Path(folder)
    is_here = (path / "model.json").exists()
    return MODELS / path if str(path) in NAMES and not is_here else path


def is_shipped(folder: Path) -> bool:
    """Return whether this model folder belongs to the installation."""
    return folder.resolve().parent == MODELS.resolve()
