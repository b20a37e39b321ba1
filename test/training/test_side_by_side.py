# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks trained at the same time, each in a real process of its own."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from uncertainty_depth.errors import TrainingError
from uncertainty_depth.model_folder import folder as model_folder
from uncertainty_depth.training import run
from uncertainty_depth.training.run import train

HERE = Path(__file__).parent
CHILD = """
import json, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from conftest import ListSource, wall
from uncertainty_depth.config import NetworkConfig, TrainingConfig
from uncertainty_depth.options import from_mapping
from uncertainty_depth.training.run import train

if __name__ == "__main__":
    # a shell's background jobs ignore SIGINT, and so do their children
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    network, training = json.loads(sys.argv[3])
    source = ListSource([wall(index, 0.1) for index in range(8)])
    network = from_mapping(NetworkConfig, network)
    training = from_mapping(TrainingConfig, training)
    train(source, Path(sys.argv[2]), network, training)
"""


@pytest.fixture
def curves_as_text() -> None:
    """Draw curves after all: the processes of a training do."""


def content(folder: Path) -> dict[str, bytes]:
    """Every file; how many processes made it is written down and makes no other difference."""
    described = json.loads((folder / "model.json").read_text())
    del described["training"]["options"]["processes"]
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {
        "model.json": json.dumps(described).encode()
    }


def test_a_process_that_dies_leaves_the_others_at_work(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """What is trained side by side has the bits of what is trained in sequence.

    The members share a frozen encoder, and each has a bootstrap sample. One is killed in its
    second epoch, and goes on from its checkpoint.
    """
    source, network, training = small
    training = replace(training, method="bagging", freeze_encoder=True, average_decay=0.5)
    whole = content(train(source, tmp_path / "whole", network, training))
    # Three members, an encoder, two curves of each as table and image, and model.json:
    # no checkpoint, log or frames.
    assert len(whole) == 11
    monkeypatch.syspath_prepend(HERE)
    import broken_losses

    plan = broken_losses.plan_with({0: broken_losses.killed, 1: broken_losses.refused})
    folder = tmp_path / "model"
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(run, "make_plan", plan)
        with pytest.raises(
            TrainingError,
            match=r"member_0\d was not trained: .*; see .*member_0\d.log "
            r"\(1 more failed or were not started\); --resume trains the missing networks",
        ):
            train(source, folder, network, replace(training, processes=2))
    assert "member_01 was not trained: its process was ended by SIGKILL; see" in caplog.text
    assert "member_02 was not trained: the loss has had enough; see" in caplog.text
    assert "member_03 (3/3) training in" in caplog.text  # the processes' own records arrive
    assert "ConfigError: the loss has had enough" in (folder / "member_02.log").read_text()
    # of use already: the best epoch of the one that was killed in its second
    assert set(model_folder.read(folder).members) == {"member_01", "member_03"}
    assert (folder / "checkpoint_member_01.safetensors").exists()
    assert not list(folder.glob(".*.npy"))
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*member_03.[sp]*")}
    assert content(train(source, folder, network, training, resume=True)) == whole
    assert len(before) == 3
    assert before == {
        path: path.stat().st_mtime_ns if path.exists() else before[path] for path in before
    }  # their checkpoints are gone at last


def test_ctrl_c_stops_all_and_all_go_on(small, tmp_path: Path) -> None:
    _, network, training = small
    training = replace(
        training,
        method="multi_inits",
        members=2,
        epochs=200,
        patience=200,
        batch_size=3,
        processes=2,
    )
    folder = tmp_path / "model"
    script = tmp_path / "script.py"
    script.write_text(CHILD)
    arguments = [
        sys.executable,
        str(script),
        str(HERE),
        str(folder),
        json.dumps([asdict(network), asdict(training)]),
    ]
    with (
        (tmp_path / "errors").open("w") as file,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True
        ) as child,
    ):
        while len(list(folder.glob("checkpoint_member_0?.safetensors"))) < 2:
            assert child.poll() is None
            time.sleep(0.1)
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        workers = [
            pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to every process
        child.communicate()
    errors = (tmp_path / "errors").read_text()
    assert child.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert len(workers) == 2  # the resource tracker ends a moment after its parent
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert not list(folder.glob(".*.npy"))
    assert (
        "Traceback"
        not in (folder / "member_01.log").read_text() + (folder / "member_02.log").read_text()
    )
    assert len(list(folder.glob("checkpoint_member_0?.safetensors"))) == 2
    assert set(model_folder.read(folder).members) == {"member_01", "member_02"}
