# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Python classes of the message types in a bag: only generated interfaces are imported."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

MESSAGE_TYPE = re.compile(r"([a-z][a-z0-9_]*)/(?:msg/)?([A-Z][A-Za-z0-9]*)")


def message_class(name: str) -> type:
    """Return the Python class of a message type, `package/msg/Name` or ROS 1's `package/Name`.

    A bag is a stranger's file, and importing a module runs it: the package must be one that rosidl
    generated, with that message in it.

    Raises:
        ImportError: the type is not a message, or is not installed.
    """
    match = MESSAGE_TYPE.fullmatch(name)
    if match is None:
        raise ImportError(f"{name!r} is not a message type; expected package/msg/Name")
    package, message = match.groups()
    if not _is_generated(package, message):
        raise ImportError(
            f"no interface package {package!r} with message {message!r} is installed"
        )
    return getattr(import_module(f"{package}.msg"), message)


def _is_generated(package: str, message: str) -> bool:
    """Return whether rosidl generated the message's Python module; looks at files alone."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module that was made at run time
        return False
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    return any(
        (folder / "msg" / f"_{_snake_case(message)}.py").is_file()
        and any(folder.glob(f"{package}_s__rosidl_typesupport_*"))
        for folder in folders
    )


def _snake_case(name: str) -> str:
    """Return rosidl's module name of a message: PointCloud2 -> point_cloud2."""
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", words).lower()
