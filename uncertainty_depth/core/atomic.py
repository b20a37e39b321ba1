# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Replace files atomically, even if the process or the machine fails."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`, with its ending, that replaces it on leaving.

    The content is on the disk before the name is, so neither readers nor crashes ever meet a part.
    Left with an exception, the temporary file is removed and `path` is as before.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{UNFINISHED}{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        is_of_the_system = error.errno is not None  # else its own message says more
        if is_of_the_system and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write bytes to a file atomically; missing parent folders are created."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path | str, text: str) -> None:
    """Write UTF-8 text to a file atomically; missing parent folders are created."""
    write_bytes(path, text.encode())


UNFINISHED = ".unfinished_"
"""Begins the names of what is being written, before eight hexadecimal digits."""


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes left of this file, beside it."""
    pattern = re.compile(rf"{re.escape(UNFINISHED)}[0-9a-f]{{8}}\.{re.escape(path.name)}")
    for sibling in path.parent.iterdir():
        if pattern.fullmatch(sibling.name):
            sibling.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Return once the content of a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
