# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check the model description on `depth/model` before a report shows it."""

from __future__ import annotations

import json
from typing import Any

from uncertainty_depth import strict
from uncertainty_depth.config.prediction import HeldOutConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.options import from_mapping
from uncertainty_depth.strict import FormatError

MAX_CHARACTERS = 100_000
MAX_DEPTH = 8


def model_description(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`.

    Raises:
        MessageError: "model_description", the text is not a JSON object, too long or too deep.
    """
    try:
        content = strict.read_json(text, MAX_CHARACTERS, MAX_DEPTH)
    except FormatError as error:
        raise MessageError("model_description", f"depth/model says {error}") from error
    if not isinstance(content, dict):
        raise MessageError(
            "model_description", f"depth/model says {text[:80]!r}; expected a JSON object"
        )
    calibration = content.get("calibration")
    if not isinstance(calibration, (str, type(None))):
        content["calibration"] = json.dumps(calibration)
    return content


def held_out_rule(description: dict[str, Any]) -> HeldOutConfig | None:
    """Return which depth a model with sparse input holds out; None for image-only models.

    Raises:
        MessageError: "model_description", the entries have other types or values.
    """
    if not description.get("sparse_input"):
        return None
    fraction = description.get("held_out_fraction", 0.0)
    try:
        return from_mapping(HeldOutConfig, {"held_out_fraction": fraction})
    except ConfigError as error:
        raise MessageError("model_description", f"depth/model says {error}") from error
