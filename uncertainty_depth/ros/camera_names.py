# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Launch arguments for several cameras; imports nothing from launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncertainty_depth.core.errors import ConfigError

CAMERA = "{camera}"
"""Stands for the camera's name in any launch argument."""
OUTPUT = "evaluation/{camera}"
"""Folder of a camera's report, where none is given: two evaluators cannot share one."""


def check_names(names: Sequence[str]) -> list[str]:
    """Return the names; raise `ConfigError` for a repeated one, or one that is no namespace."""
    for name in names:
        if names.count(name) > 1 or not name.replace("/", "_").isidentifier():
            raise ConfigError(
                f"cameras is {' '.join(names)!r}; expected different names of letters, digits and "
                f"_, e.g. 'front rear'; {name!r} is not"
            )
    return list(names)


def arguments_of_camera(camera: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """Return one camera's launch arguments from those of all, or raise `ConfigError`."""
    output = arguments.get("output")
    if output and CAMERA not in output:
        raise ConfigError(
            f"output is {output!r} for several cameras; expected {CAMERA} in it, e.g. "
            f"{output}/{CAMERA}"
        )
    values = dict(arguments)
    if output == "":
        values["output"] = OUTPUT
    return {name: value.replace(CAMERA, camera) for name, value in values.items()}
