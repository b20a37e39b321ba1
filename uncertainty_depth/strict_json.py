# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Strict JSON: arrays become lists, and what is not finite becomes null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uncertainty_depth import atomic


def write(path: Path, value: Any) -> None:
    """Replace the file by `value`, whole or not at all."""
    atomic.write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """Return the value as JSON gives it back: lists, mappings with string keys, null for NaN."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
