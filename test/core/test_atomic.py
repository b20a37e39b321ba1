# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files are replaced whole: through an exception and a kill."""

import os
import signal
import subprocess
import sys

import pytest

from uncertainty_depth.core import atomic

KILLED = """
import os, signal, sys
from pathlib import Path
from uncertainty_depth.core import atomic
with atomic.replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def fail_while_writing(path):
    with atomic.replacing(path) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_file_is_replaced_and_missing_folders_are_created(tmp_path):
    path = tmp_path / "new" / "file.txt"
    atomic.write_text(path, "one")
    atomic.write_text(path, "zwei ä")
    assert path.read_text(encoding="utf-8") == "zwei ä"
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("end", ["exception", "kill"])
def test_whatever_ends_the_writing_leaves_what_was_there(tmp_path, end):
    path = tmp_path / "old"
    path.write_text("old")
    if end == "kill":
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert visible(tmp_path) == ["old"]
    else:
        with pytest.raises(OSError, match="disk full"):
            fail_while_writing(path)
        assert os.listdir(tmp_path) == ["old"]
    assert path.read_text() == "old"
