# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Replace files and folders atomically, even if the process or the machine fails."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from uncertainty_depth.errors import SourceError


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`, with its ending, that replaces it on leaving.

    The content is on the disk before the name is, so no reader and no crash ever meets a part.
    Left with an exception, the temporary file is removed and `path` is as before.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _sibling(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
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


@contextmanager
def replacing_folder(folder: Path | str, owned: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a new folder beside `folder` that replaces it on leaving, by two renames.

    Args:
        folder: need not exist.
        owned: file name patterns of what the new files stand for, e.g. "*.png". Everything else in
            `folder` belongs to others, and stays in its place.

    Raises:
        OSError: the files cannot be written, or `folder` cannot be renamed (a mount point).
    """
    folder = Path(folder).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = _sibling(folder)
    before = _sibling(folder)
    staging.mkdir()
    try:
        yield staging
        for path in staging.rglob("*"):
            _sync(path)
        if folder.exists():
            folder.rename(before)
        try:
            staging.rename(folder)
        except OSError:
            if before.exists():
                before.rename(folder)
            raise
        for path in before.iterdir() if before.exists() else ():  # what belongs to others returns
            is_replaced = any(fnmatch(path.name, pattern) for pattern in owned)
            if not is_replaced and not (folder / path.name).exists():
                path.rename(folder / path.name)
        shutil.rmtree(before, ignore_errors=True)
        _sync(folder.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_folder(folder: Path | str) -> None:
    """Raise `SourceError` unless `replacing_folder` can replace this folder; call it early."""
    folder = Path(folder).absolute()
    try:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        if os.path.ismount(folder):
            raise OSError(errno.EBUSY, "a mount point cannot be renamed; expected a folder in it")
        existing = next(parent for parent in folder.parents if parent.exists())
        for writable in (existing, folder) if folder.exists() else (existing,):
            probe = _sibling(writable / "probe")
            probe.mkdir()
            probe.rmdir()
    except NotADirectoryError as error:
        raise SourceError(
            f"cannot write to {folder}: {error.filename} is a file; expected a folder or a new "
            "path"
        ) from error
    except OSError as error:
        raise SourceError(f"cannot write to {folder}: {error.strerror}") from error


def _sibling(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(4)}.{path.name}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
