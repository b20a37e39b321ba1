# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Launch arguments of several cameras: what each of them is started with. No launch needed."""

from __future__ import annotations

from collections.abc import Mapping

CAMERA = "{camera}"
"""Stands for the camera's name in any launch argument."""
OUTPUT = "evaluation/{camera}"
"""Folder of a camera's report, where none is given: two evaluators cannot share one."""


def camera_names(text: str) -> list[str]:
    """Return the names in a list with blanks or commas.

    Raises:
        ValueError: a name is given twice, or is no name of a namespace.
    """
    names = text.replace(",", " ").split()
    for name in names:
        if names.count(name) > 1 or not name.replace("/", "_").isidentifier():
            raise ValueError(
                f"cameras is {text!r}; expected different names of letters, digits and _, "
                f"e.g. 'front rear'; {name!r} is not"
            )
    return names


def arguments_of_camera(camera: str, arguments: Mapping[str, str]) -> dict[str, str]:
    """Return the launch arguments that differ for this camera.

    Args:
        camera: its name.
        arguments: those of all cameras, `CAMERA` in some.

    Raises:
        ValueError: the cameras would write their reports to one folder.
    """
    output = arguments.get("output")
    if output and CAMERA not in output:
        raise ValueError(
            f"output is {output!r} for several cameras; expected {CAMERA} in it, e.g. "
            f"{output}/{CAMERA}"
        )
    values = dict(arguments)
    if output == "":
        values["output"] = OUTPUT
    return {
        name: value.replace(CAMERA, camera) for name, value in values.items() if CAMERA in value
    }
