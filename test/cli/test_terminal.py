# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A terminal shows what a stranger wrote into a bag, and never obeys it."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np

from uncertainty_depth.cli.main import PrintableFormatter, main
from uncertainty_depth.messages.bag_writer import BagWriter

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x9b2J\r\u202e"


def hostile_bag(path):
    with BagWriter(path) as writer:
        writer.image(f"/camera/{TITLE}image", 0, CLEAR, np.zeros((4, 4, 3), np.uint8))
        writer.cloud(f"/lidar/{CLEAR}", 0, TITLE, np.ones((4, 4), np.float32))
    return path


def test_no_name_in_a_bag_reaches_the_terminal_as_a_command(tmp_path, capfd):
    assert main(["info", str(hostile_bag(tmp_path / f"{TITLE}bag"))]) == 1
    out, err = capfd.readouterr()
    assert r"/camera/\x1b]0;owned\x07image" in out
    assert err.startswith("uncertainty-depth: ")
    log = PrintableFormatter().format(logging.makeLogRecord({"msg": "%s", "args": (CLEAR,)}))
    assert not set(f"{out}{err}{log}") & {*"\x1b\x07\x9b\r\u202e"}


def test_a_reader_that_leaves_ends_a_command_without_a_word(tmp_path):
    command = [sys.executable, "-m", "uncertainty_depth", "info"]
    with subprocess.Popen(
        [*command, str(hostile_bag(tmp_path / "bag"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_name_that_the_terminal_cannot_write_is_escaped(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.cloud("/lidar/vorwärts", 0, "lidar", np.ones((4, 4), np.float32))
    result = subprocess.run(
        [sys.executable, "-m", "uncertainty_depth", "info", str(tmp_path / "bag")],
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert rb"/lidar/vorw\xe4rts" in result.stdout
    assert b"Traceback" not in result.stderr
