# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Temporary folders that go with their process, however it ends."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

PREFIX = "uncertainty_depth_scratch_"
LOCK = ".lock"
_NAME = re.compile(rf"{PREFIX}\w{{8}}")


class ScratchFolder(tempfile.TemporaryDirectory):
    """A temporary folder, removed with this object; raises `OSError` if it cannot be made.

    A killed process no longer holds its folder's lock, and the next one removes the folder.
    """

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        super().__init__(prefix=PREFIX)
        lock = Path(self.name) / LOCK
        new = lock.with_name("new")  # only a locked file gets the name
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT)
        weakref.finalize(self, os.close, descriptor)
        with suppress(OSError):  # without locks, nobody removes it
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        new.rename(lock)


def _remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders of this user that no process holds."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not _NAME.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError):  # another's, or in use
                descriptor = os.open(f"{entry.path}/{LOCK}", os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(descriptor)
