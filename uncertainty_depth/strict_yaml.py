# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""YAML of unknown origin, read within limits: no aliases, which let a few bytes stand for many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from uncertainty_depth.errors import UncertaintyDepthError

MAX_DEPTH = 16


class YamlError(UncertaintyDepthError):
    """A text is no YAML, or is beyond the limits."""


def read_file(path: Path, max_bytes: int) -> Any:
    """Return the lists and mappings in a YAML file; every scalar is a string.

    Args:
        path: the file, UTF-8.
        max_bytes: the longest file that is read.

    Raises:
        YamlError: the file is longer, nested more than `MAX_DEPTH` levels, has an alias, or is
            no YAML.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise YamlError(f"it is longer than {max_bytes} bytes")
    try:
        text = content.decode("utf-8")
        _check_events(text)
        return yaml.load(text, yaml.BaseLoader)  # it constructs no objects
    except UnicodeDecodeError as error:
        raise YamlError(f"it is not UTF-8 ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise YamlError(f"it is not YAML ({str(error).splitlines()[0]})") from error


def _check_events(text: str) -> None:
    """Raise `YamlError` for what would be built of the text, before it is built."""
    depth = 0
    for event in yaml.parse(text, yaml.BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise YamlError(f"it has the alias *{event.anchor}; expected none")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise YamlError(f"it is nested more than {MAX_DEPTH} levels deep")
