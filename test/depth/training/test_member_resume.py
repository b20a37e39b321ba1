# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model of several networks, killed at any moment, goes on in its last member and epoch."""

import json
import os
from dataclasses import replace

import pytest

from test.depth.training.conftest import Killed, content, counted_writes
from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.training.run import MemberRun, train


def test_killed_in_member_two_of_three_it_goes_on_there(small, tmp_path, monkeypatch):
    source, network, training = small
    training = replace(training, method="bagging", patience=5)
    whole = content(train(source, tmp_path / "whole", network, training))
    one_epoch = MemberRun.one_epoch
    trained = []

    def dying(run: MemberRun, bar) -> None:
        if len(trained) == 3:
            raise Killed
        trained.append(run.member.name)
        one_epoch(run, bar)

    with monkeypatch.context() as patch:
        patch.setattr(MemberRun, "one_epoch", dying)
        with pytest.raises(Killed):
            train(source, tmp_path / "killed", network, training)
        assert trained == ["member_01", "member_01", "member_02"]
        members = set(model_folder.read_model(tmp_path / "killed").members)
        assert members == {"member_01", "member_02"}  # of use already
    trained.clear()

    def noting(run: MemberRun, bar) -> None:
        trained.append(run.member.name)
        one_epoch(run, bar)

    monkeypatch.setattr(MemberRun, "one_epoch", noting)
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole
    assert trained == ["member_02", "member_03", "member_03"]


def test_dying_at_any_write_of_two_members_loses_nothing(small, tmp_path, monkeypatch):
    source, network, training = small
    source.records = source.records[:4]
    training = replace(training, method="multi_inits", members=2, epochs=1)
    with monkeypatch.context() as patch:
        writes = counted_writes(patch)
        whole = content(train(source, tmp_path / "whole", network, training))
    assert len(writes) > 10
    for write in range(1, len(writes) + 1):
        folder = tmp_path / f"killed at {write}"
        with monkeypatch.context() as patch:
            counted_writes(patch, killed_at=write)
            with pytest.raises(Killed):
                train(source, folder, network, training)
        assert content(train(source, folder, network, training, resume=True)) == whole, write


def test_a_training_of_before_an_option_was_invented_is_complete(small, make, tmp_path):
    folder = make(small, tmp_path / "model", "multi_epochs")
    described = json.loads((folder / "model.json").read_text())
    for name in ("members", "distill"):
        del described["training"]["options"][name]
    (folder / "model.json").write_text(json.dumps(described))
    source, network, training = small
    usual = replace(training, members=TrainingConfig().members)
    assert train(source, folder, network, usual, resume=True) == folder


def test_a_finished_training_removes_what_a_kill_left_and_no_file_of_others(small, make, tmp_path):
    folder = make(small, tmp_path / "model", "multi_epochs")
    before = set(os.listdir(folder))
    foreign = {".settings.of.mine.json", "checkpoint_of_mine.safetensors", ".unfinished_.csv"}
    for name in foreign | {".unfinished_0a1b2c3d.model.json"}:
        (folder / name).write_text("{}")
    source, network, training = small
    train(source, folder, network, replace(training, method="multi_epochs"), resume=True)
    assert set(os.listdir(folder)) == before | foreign
