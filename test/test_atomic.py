# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files are replaced whole: through an exception, a kill, and with other people's files."""

import os
import signal
import subprocess
import sys

import pytest

from uncertainty_depth import atomic
from uncertainty_depth.errors import SourceError

KILLED = """
import os, signal, sys
from pathlib import Path
from uncertainty_depth import atomic
with atomic.{context}(Path(sys.argv[1])) as temporary:
    target = temporary / "a" if temporary.is_dir() else temporary
    target.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def fail_while_writing(replacing):
    with replacing as temporary:
        target = temporary / "a" if temporary.is_dir() else temporary
        target.write_text("half")
        raise OSError("disk full")


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_file_is_replaced_and_missing_folders_are_created(tmp_path):
    path = tmp_path / "new" / "file.txt"
    atomic.write_text(path, "one")
    atomic.write_text(path, "zwei ä")
    assert path.read_text(encoding="utf-8") == "zwei ä"
    assert [each.name for each in path.parent.iterdir()] == ["file.txt"]


def test_a_folder_is_replaced_as_a_set_and_keeps_what_belongs_to_others(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    for name in ("old.png", "summary.json", "notes of mine"):
        (folder / name).write_text("old")
    with atomic.replacing_folder(folder, ["*.png", "summary.json"]) as staging:
        (staging / "summary.json").write_text("new")
        assert visible(folder) == ["notes of mine", "old.png", "summary.json"]
    assert visible(folder) == ["notes of mine", "summary.json"]
    assert (folder / "summary.json").read_text() == "new"
    assert os.listdir(tmp_path) == ["report"]


@pytest.mark.parametrize("end", ["exception", "kill"])
@pytest.mark.parametrize("context", ["replacing", "replacing_folder"])
def test_whatever_ends_the_writing_leaves_what_was_there(tmp_path, context, end):
    path = tmp_path / "old"
    if context == "replacing_folder":
        path.mkdir()
    content = path / "a" if path.is_dir() else path
    content.write_text("old")
    if end == "kill":
        code = KILLED.format(context=context)
        done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert visible(tmp_path) == ["old"]
    else:
        with pytest.raises(OSError, match="disk full"):
            fail_while_writing(getattr(atomic, context)(path))
        assert os.listdir(tmp_path) == ["old"]
    assert content.read_text() == "old"


def test_the_old_folder_is_put_back_if_the_new_one_cannot_take_its_place(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "a").write_text("old")
    with pytest.raises(FileNotFoundError), atomic.replacing_folder(folder) as staging:
        staging.rmdir()
    assert (folder / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_a_folder_that_cannot_be_replaced_is_reported_before_the_work(tmp_path):
    atomic.check_folder(tmp_path / "new" / "deep")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("mine")
    for path, sentence in {
        tmp_path / "file": "is a file; expected a folder",
        tmp_path / "file" / "report": "is a file; expected a folder",
        "/dev/shm": "mount point",
        "/proc/report": "cannot write to /proc/report",
    }.items():
        with pytest.raises(SourceError, match=sentence):
            atomic.check_folder(path)
