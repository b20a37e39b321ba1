# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks trained at the same time, each in a real process of its own."""

from __future__ import annotations

import fcntl
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
import torch

from uncertainty_depth.config import TrainingConfig
from uncertainty_depth.errors import TrainingError
from uncertainty_depth.model_folder import folder as model_folder
from uncertainty_depth.model_folder import writing
from uncertainty_depth.training import run
from uncertainty_depth.training.frames import TrainingFrames, read_frames
from uncertainty_depth.training.member_run import ModelRun
from uncertainty_depth.training.plan import make_plan, settle
from uncertainty_depth.training.run import train
from uncertainty_depth.training.side_by_side import processes_for

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


def test_side_by_side_and_in_sequence_give_the_same_bits(small, tmp_path: Path) -> None:
    """Two that share a frozen encoder, each with a bootstrap sample."""
    source, network, training = small
    training = replace(training, method="bagging", members=2, freeze_encoder=True)
    one_by_one = content(train(source, tmp_path / "one_by_one", network, training))
    both = content(train(source, tmp_path / "both", network, replace(training, processes=2)))
    assert both == one_by_one
    # Two members, an encoder, two curves of each as table and image, and model.json:
    # no checkpoint, log or frames.
    assert len(both) == 8
    assert source.reads == 2


def test_a_process_that_dies_leaves_the_others_at_work(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    source, network, training = small
    training = replace(training, method="multi_inits", members=3)
    whole = content(train(source, tmp_path / "whole", network, training))
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
    assert set(model_folder.read(folder).members) == {"member_03"}  # of use already
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


def test_what_learns_from_a_network_that_failed_is_not_begun(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two networks, and one that learns from the first: it waits for both, then is not begun."""
    source, network, training = small
    monkeypatch.syspath_prepend(HERE)
    import broken_losses

    def plan(network, training):
        first, second = broken_losses.plan_with({0: broken_losses.refused})(network, training)
        learned = replace(first, name="learned", targets=broken_losses.refused)
        return [first, second, learned]

    monkeypatch.setattr(run, "make_plan", plan)
    training = replace(training, method="multi_inits", members=2, processes=2)
    with pytest.raises(
        TrainingError,
        match=r"member_01 was not trained: the loss has had enough; see .* "
        r"\(1 more failed or were not started\)",
    ):
        train(source, tmp_path / "model", network, training)
    assert set(model_folder.read(tmp_path / "model").members) == {"member_02"}
    assert not (tmp_path / "model" / "learned.log").exists()


@pytest.mark.parametrize(
    ("method", "wanted", "expected"),
    [
        ("multi_inits", 2, 2),
        ("multi_inits", 9, 3),
        ("multi_inits", 0, 1),
        ("learned_error", 2, 1),
        ("multi_epochs", 4, 1),
    ],
)
def test_no_more_processes_than_there_is_work_for(
    method: str, wanted: int, expected: int, network, tmp_path: Path
) -> None:
    plan = make_plan(*settle(network, TrainingConfig(method=method, members=3)))
    model = ModelRun(tmp_path, plan, TrainingFrames(), [], [], torch.device("cpu"), {})
    assert processes_for(model, range(len(plan)), wanted) == expected


def test_one_process_at_a_time_changes_the_model(
    small, make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_members = writing.set_members
    held = []

    def watched(folder: Path, names, method, training) -> None:
        with (folder / ".lock").open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(training["finished"])
        set_members(folder, names, method, training)

    monkeypatch.setattr(writing, "set_members", watched)
    make(small, tmp_path / "model", "multi_inits", members=2, epochs=1)
    assert held == [False, False]  # once it is finished there is but one process


def test_frames_are_shared_through_files(source, tmp_path: Path) -> None:
    frames = read_frames(source, (64, 64))
    frames.save(tmp_path)
    mapped = TrainingFrames.mapped(tmp_path)
    assert mapped.fingerprint() == frames.fingerprint()
    assert not mapped.images.flags.writeable
    assert all(
        torch.equal(*pair)
        for pair in zip(mapped.batch([3, 1])[:1], frames.batch([3, 1])[:1], strict=True)
    )
