# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A killed run leaves nothing in the temporary folder for longer than until the next one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from uncertainty_depth.report.evaluation import Evaluation
evaluation = Evaluation()
print("begun", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path):
    """Start an evaluation that waits for its standard input to close."""
    begun = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        begun.append(process)
        assert process.stdout.readline() == "begun\n"
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def scratch(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("my")}


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(start, tmp_path):
    for name in ("uncertainty_depth_scratch_mine", "uncertainty_depth_scratch_12345678", "my"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text("mine")
    foreign = scratch(tmp_path)
    (tmp_path / "my" / ".lock").touch()
    (tmp_path / "uncertainty_depth_scratch_87654321").symlink_to(tmp_path / "my")
    foreign.add("uncertainty_depth_scratch_87654321")
    living = start()
    killed = start()
    assert len(scratch(tmp_path) - foreign) == 2, "the other is at work"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(scratch(tmp_path) - foreign) == 2
    last = start()
    assert len(scratch(tmp_path) - foreign) == 2, "that of the killed run is gone"
    for process in (living, last):
        process.stdin.close()
        assert process.wait() == 0
    assert scratch(tmp_path) == foreign
    for name in foreign | {"my"}:
        assert (tmp_path / name / "notes").read_text() == "mine"
