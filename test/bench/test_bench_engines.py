# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benches of engines, start-up and a busy machine: their tables hold what was measured."""

import subprocess
import sys

import pytest

from uncertainty_depth.bench import busy, engines, startup
from uncertainty_depth.cli.arguments import SIGNATURES
from uncertainty_depth.config import NetworkConfig


def test_every_ratio_is_to_the_plain_pass_of_its_round(monkeypatch):
    network = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(64, 48))
    monkeypatch.setattr(engines, "CANDIDATES", (("torch", "fp32"), ("missing", "fp32")))
    rows = engines.run(2, network)
    assert rows[0].label == engines.PLAIN
    assert rows[0].ratio == (1.0, 1.0, 1.0)
    for row in rows:
        assert 0 < row.ratio.minimum <= row.ratio.median <= row.ratio.maximum
    assert {row.label.partition(",")[0] for row in rows} == {"torch fp32"}
    assert engines.table(rows).count("\n") == len(rows) + 3


def test_a_frame_is_timed_beside_as_many_processes_as_cores(monkeypatch):
    monkeypatch.setattr(busy, "ENDLESS", "pass")
    rows = busy.run(2)
    assert [row.load for row in rows] == ["as it is", "every core busy"]
    for row in rows:
        assert 0 < row.wall_ms.minimum <= row.wall_ms.median <= row.wall_ms.maximum
    assert "busy / as it is" in busy.table(rows)


def test_start_up_is_timed_of_every_command():
    assert set(startup.COMMANDS) < set(SIGNATURES)
    assert startup.cpu_seconds(["-c", "pass"]) > 0
    seconds = {name: [0.1, 0.2, 3.0] for name in SIGNATURES} | {"train": [2.0]}
    assert "slower: train;" in startup.table(seconds)
    with pytest.raises(KeyError):
        startup.table({"train": [0.1]})


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from uncertainty_depth.bench.startup import COMMANDS, MISSING
from uncertainty_depth.cli.main import main
for name, arguments in COMMANDS.items():
    print(name, file=sys.stderr)
    main([name, *arguments])
"""


def test_a_missing_input_is_told_before_torch_is_imported(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=tmp_path, capture_output=True, text=True
    )
    told = ended.stderr.splitlines()
    assert ended.returncode == 0, ended.stderr
    for name in startup.COMMANDS:
        message = told[told.index(name) + 1]
        assert startup.MISSING in message, ended.stderr
