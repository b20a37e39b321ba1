# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The model that comes with the package."""

from __future__ import annotations

from pathlib import Path

SHIPPED_MODEL = Path(__file__).parent / "models" / "demo"
NAME = "demo"


def model_path(folder: Path | str) -> Path:
    """Return the model folder: "demo" is the shipped model, unless such a folder exists."""
    path = Path(folder)
    is_here = (path / "model.json").exists()
    return SHIPPED_MODEL if str(path) == NAME and not is_here else path
