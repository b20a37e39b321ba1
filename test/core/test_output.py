# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Outputs are replaced whole, and none loses what a run of ours did not write."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncertainty_depth.core import atomic
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.output import OutputFolder, remove
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation

CONTEXT = report.Context("a test", {"method": "mc_dropout"})
WRITING = """
import os, signal, sys
from pathlib import Path
from uncertainty_depth.core import atomic, output
path = Path(sys.argv[1])
with {opened} as staging:
    (staging / "index" if staging.is_dir() else staging).write_text("half")
    {end}
"""
OPENED = {
    "file": "atomic.replacing(path)",
    "folder": "output.OutputFolder(path, 'test').replacing('index')",
}
ENDS = {
    "raise OSError('disk full')": 1,
    "os.kill(os.getpid(), signal.SIGKILL)": -signal.SIGKILL,
}


def content(folder):
    """Return every file below a folder, by its path and inode, so that a move is seen too."""
    return {
        path.relative_to(folder): (path.stat().st_ino, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def visible(folder):
    """Return its content without what has a hidden name, or is in a folder of one."""
    of_all = content(folder).items()
    return {path: it for path, it in of_all if not any(part[0] == "." for part in path.parts)}


def test_what_others_add_during_the_work_stays_and_so_does_the_work(tmp_path):
    folder = tmp_path / "report"
    report.check_output(folder, overwrite=False)
    folder.mkdir()
    (folder / "state.npz").write_text("of others")
    with pytest.raises(
        SourceError, match=r"holds a state\.npz that no run.*new files are in "
    ) as it:
        report.write(Evaluation(), folder, CONTEXT, images=False)
    assert (folder / "state.npz").read_text() == "of others"
    kept = Path(str(it.value).rpartition(" ")[2])
    assert (kept / "summary.json").exists()
    assert (kept / "state.npz").exists()


def test_a_check_leaves_nothing_behind(tmp_path):
    OutputFolder(tmp_path / "new" / "deep", "test").check()
    assert os.listdir(tmp_path) == []
    with pytest.raises(SourceError, match="cannot write to /proc/report: "):
        OutputFolder(Path("/proc/report"), "test").check()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", OPENED)
def test_whatever_ends_the_writing_leaves_what_was_there(tmp_path, kind, end):
    output = OutputFolder(tmp_path / "output", "test")
    if kind == "file":
        output.path.write_text("old")
    else:
        with output.replacing("index") as staging:
            (staging / "index").write_text("old")
            (staging / "more").write_text("old")
    before = visible(tmp_path)
    code = WRITING.format(opened=OPENED[kind], end=end)
    done = subprocess.run(
        [sys.executable, "-c", code, output.path], capture_output=True, text=True, check=False
    )
    assert done.returncode == ENDS[end], done.stderr
    assert ("disk full" in done.stderr) == (ENDS[end] == 1)
    assert visible(tmp_path) == before
    if kind == "folder":
        with output.replacing("index") as staging:
            (staging / "index").write_text("new")
        assert sorted(os.listdir(output.path)) == [".uncertainty_depth.json", "index"]
    elif ENDS[end] == 1:
        assert os.listdir(tmp_path) == ["output"]


def test_a_file_is_replaced_and_missing_folders_are_created(tmp_path):
    path = tmp_path / "new" / "file.txt"
    atomic.write_text(path, "one")
    atomic.write_text(path, "zwei ä")
    assert path.read_text(encoding="utf-8") == "zwei ä"
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize(
    "made",
    ["../photos", "..", "%2E%2E", ".", "", "/etc", "%2fetc", "sub/c.png", 3, ["a.png"], None],
    ids=repr,
)
def test_a_forged_marker_reaches_nothing_outside_its_folder(photos, made):
    (photos / ".uncertainty_depth.json").write_text(
        json.dumps({"format": 1, "kind": "test", "made": [made]})
    )
    before = content(photos.parent)
    with pytest.raises(SourceError, match="that cannot be read"):
        OutputFolder(photos, "test").check()
    assert content(photos.parent) == before


NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]) | st.just("\udce9"),
    min_size=1,
    max_size=60,
).filter(lambda name: name not in (".", ".."))


@given(names=st.sets(NAMES, max_size=5))
@example({"caf\udce9_plot.png", "%41", "A", "%", "100 %.png", "\N{SNOWMAN}"})
def test_names_of_any_encoding_are_ours_again(names):
    with tempfile.TemporaryDirectory() as parent:
        output = OutputFolder(Path(parent) / "out", "test")
        output.claim(names)
        assert set(output.made()) == names
        for name in names:
            (output.path / name).touch()
        output.check(names=sorted(names))
        remove(output.path)
        assert os.listdir(parent) == []


def test_hidden_files_of_others_stay_in_a_folder_that_is_otherwise_empty(tmp_path):
    (tmp_path / ".gitkeep").write_text("mine")
    output = OutputFolder(tmp_path, "test")
    output.check()
    for _ in range(2):
        with output.replacing("index") as staging:
            (staging / "index").write_text("new")
    assert set(os.listdir(tmp_path)) == {".gitkeep", ".uncertainty_depth.json", "index"}
    assert (tmp_path / ".gitkeep").read_text() == "mine"


def test_two_runs_write_to_a_folder_one_after_the_other(tmp_path):
    """What the first has begun is neither removed nor mixed with the second's."""
    output = OutputFolder(tmp_path / "out", "test")
    first_is_in = threading.Event()
    second_begins = threading.Event()

    def first():
        with output.replacing("index") as staging:
            first_is_in.set()
            assert second_begins.wait(10)
            for name in ("index", "of the first"):
                (staging / name).write_text("first")

    def second():
        assert first_is_in.wait(10)
        second_begins.set()
        with output.replacing("index") as staging:
            (staging / "index").write_text("second")

    with ThreadPoolExecutor(2) as pool:
        for future in (pool.submit(first), pool.submit(second)):
            future.result(20)
    assert (output.path / "index").read_text() == "second"
    assert set(os.listdir(output.path)) == {".uncertainty_depth.json", "index"}
