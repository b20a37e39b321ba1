# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A folder that one evaluator at a time writes to: the last would replace the others' reports."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from uncertainty_depth.core.errors import SourceError


class OutputClaim:
    """The right to write to a folder, among the nodes of this user on this computer.

    It ends with the process, however that ends. The folder itself is locked while a report is
    written to it, by whoever writes; this lock is held for a run, and is a file elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        """Claim a folder, which need not exist; raise `SourceError` if another node has."""
        name = hashlib.sha256(os.path.realpath(folder).encode(errors="surrogateescape"))
        lock = f"uncertainty_depth_{os.getuid()}_{name.hexdigest()[:16]}.lock"
        path = Path(tempfile.gettempdir()) / lock
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise SourceError(
                f"another evaluator will write its report to {folder}; expected another output"
            ) from error

    def release(self) -> None:
        """Give the folder back."""
        os.close(self._descriptor)
