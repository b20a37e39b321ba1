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
from uncertainty_depth.errors import SourceError
with {context}(Path(sys.argv[1])) as temporary:
    target = temporary / "new.txt" if temporary.is_dir() else temporary
    target.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(context, path):
    code = KILLED.format(context=context)
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


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


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    atomic.write_text(path, "old")
    with pytest.raises(OSError, match="disk full"):
        fail_while_writing(atomic.replacing(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    atomic.write_text(path, "old")
    killed_while_writing("atomic.replacing", path)
    assert path.read_text() == "old"


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


def test_an_exception_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "report"
    with atomic.replacing_folder(folder) as staging:
        (staging / "a").write_text("old")
    with pytest.raises(OSError, match="disk full"):
        fail_while_writing(atomic.replacing_folder(folder))
    assert (folder / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_the_old_folder_is_put_back_if_the_new_one_cannot_take_its_place(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "a").write_text("old")
    with pytest.raises(FileNotFoundError), atomic.replacing_folder(folder) as staging:
        staging.rmdir()
    assert (folder / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_a_kill_leaves_the_old_folder(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    killed_while_writing("atomic.replacing_folder", folder)
    assert visible(folder) == ["old.txt"]


def test_a_folder_that_cannot_be_replaced_is_reported_before_the_work(tmp_path):
    atomic.check_folder(tmp_path / "new" / "deep")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SourceError, match="is a file; expected a folder"):
        atomic.check_folder(tmp_path / "file")
    with pytest.raises(SourceError, match="is a file; expected a folder"):
        atomic.check_folder(tmp_path / "file" / "report")
    with pytest.raises(SourceError, match="mount point"):
        atomic.check_folder("/dev/shm")
    with pytest.raises(SourceError, match="cannot write to /proc/report"):
        atomic.check_folder("/proc/report")
