# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check the model description on `depth/model` before a report shows it."""

from __future__ import annotations

import json
from typing import Any

from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.options import from_mapping

MAX_CHARACTERS = 100_000
MAX_DEPTH = 8


def model_description(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`.

    Raises:
        MessageError: "model_description", the text is not a JSON object, too long or too deep.
    """
    if len(text) > MAX_CHARACTERS:
        raise MessageError(
            "model_description",
            f"depth/model has {len(text)} characters; expected at most {MAX_CHARACTERS}",
        )
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(
            "model_description", f"depth/model says {text[:80]!r}; expected a JSON object"
        ) from error
    if not isinstance(content, dict) or _depth(content) > MAX_DEPTH:
        raise MessageError(
            "model_description",
            f"depth/model says {text[:80]!r}; "
            f"expected a JSON object of at most {MAX_DEPTH} levels",
        )
    calibration = content.get("calibration")
    if not isinstance(calibration, (str, type(None))):
        content["calibration"] = json.dumps(calibration)
    return _encodable(content)


def held_out_rule(description: dict[str, Any]) -> HeldOutConfig | None:
    """Return which depth a model with sparse input holds out; None for image-only models.

    Raises:
        MessageError: "model_description", the entries have other types or values.
    """
    if not description.get("sparse_input"):
        return None
    names = ("held_out_fraction", "held_out_by")
    options = {name: description[name] for name in names if name in description}
    try:
        return from_mapping(HeldOutConfig, {"held_out_fraction": 0.0, **options})
    except ConfigError as error:
        raise MessageError("model_description", f"depth/model says {error}") from error


def _depth(value: Any) -> int:
    """Return the number of levels of objects and lists, without recursion."""
    level = [value]
    depth = 0
    while level:
        depth += 1
        nested = [part for part in level if isinstance(part, (dict, list))]
        level = []
        for part in nested:
            level.extend(part.values() if isinstance(part, dict) else part)
    return depth


def _encodable(value: Any) -> Any:
    """Replace lone surrogates by "?": no UTF-8 file can hold them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    return value
