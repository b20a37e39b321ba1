# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Files for rerun, read back by rerun itself."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "rerun", reason="rerun-sdk is not installed: its wheel has 170 MB, pyarrow 55 (the extra view)"
)

from uncertainty_depth.cli.main import main
from uncertainty_depth.contrib.rerun_view import Recorder
from uncertainty_depth.core.config.nodes import ColorConfig
from uncertainty_depth.core.records import DepthPrediction, Frame

CHUNK = re.compile(r"with (\d+) rows .*? - (/\S+)")
MAPS = ("image", "depth", "sigma", "error")


def rows_of(path: Path) -> Counter[str]:
    """Count each entity's rows in a file."""
    command = [sys.executable, "-m", "rerun", "rrd", "print", "-vvv", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows: Counter[str] = Counter()
    for count, entity in CHUNK.findall(printed):
        rows[entity] += int(count)
    return rows


def test_the_command_writes_every_part_of_each_frame(tmp_path, capsys):
    path = tmp_path / "run.rrd"
    source = "synthetic:worlds=1,frames=4,width=80,height=60,seed=20000"
    options = ["--model", "demo", "--samples", "2", "--max-frames", "2"]
    assert main(["view", source, *options, "--save", str(path)]) == 0
    assert f"2 frames shown; {path}" in capsys.readouterr().out
    rows = rows_of(path)
    scores = (
        "/coverage/coverage_68_laplace",
        "/coverage/nominal_95",
        "/scores/abs_rel",
        "/scores/rmse",
    )
    for entity in (*(f"/maps/{name}" for name in MAPS), "/world/trusted_points", *scores):
        assert rows[entity] == 2, entity


def test_what_a_frame_lacks_is_not_in_the_file(tmp_path):
    path = tmp_path / "run.rrd"
    recorder = Recorder(ColorConfig(), path)
    depth = np.full((6, 8), 3, np.float32)
    recorder.add(
        Frame(1, "1", prediction=DepthPrediction(depth, depth / 15)),
        {"rmse": 0.5, "auce": float("nan")},
    )
    recorder.close()
    rows = rows_of(path)
    assert rows["/scores/rmse"] == rows["/maps/depth"] == 1
    assert not {"/maps/image", "/maps/error", "/scores/auce", "/world/camera"} & rows.keys()
