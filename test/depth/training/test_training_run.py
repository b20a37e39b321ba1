# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.

import csv
import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save

from test.depth.training.conftest import Killed, content, counted_writes
from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.core.errors import ConfigError, ModelError, SourceError
from uncertainty_depth.depth.model_folder import folder as model_folder
from uncertainty_depth.depth.training.run import MemberRun, train


@pytest.fixture
def brief(source, network, training):
    """Two short epochs of a network with head: the runs differ only in when they are killed."""
    source.records = source.records[:6]
    return (
        source,
        replace(network, head="laplace", input_size=(32, 32)),
        replace(training, epochs=2, snapshots=1, batch_size=3),
    )


def curves(folder: Path) -> list[dict[str, str]]:
    with (folder / "curves.csv").open() as rows:
        return list(csv.DictReader(rows))


def test_a_model_folder_is_made(source, network, training, tmp_path):
    folder = train(source, tmp_path / "new" / "model", network, training)
    assert source.reads == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "curves.csv",
        "epoch_0002.safetensors",
        "epoch_0003.safetensors",
        "model.json",
    ]
    model = model_folder.read_model(folder)
    assert model.method == "multi_epochs"
    assert set(model.members) == {"epoch_0002", "epoch_0003"}
    record = model.training
    assert record["frames"] == {"training": 12, "validation": 4, "skipped": {}}
    assert record["finished"]
    assert record["options"]["seed"] == training.seed
    assert record["kept_epochs"] == [2, 3]
    assert len(curves(folder)) == 3


def test_training_beats_the_best_constant(more_frames, network, training, tmp_path):
    """Depth is a function of brightness: the error must fall well below the best constant's."""
    longer = replace(
        training, epochs=6, method="mc_dropout", batch_size=3, learning_rate=3e-3, augment=False
    )
    folder = train(
        more_frames,
        tmp_path / "model",
        replace(network, head="laplace", dropout=0.1, decoder_width=64),
        longer,
    )
    best = min(float(row["abs_rel"]) for row in curves(folder))
    truths = np.stack([record.ground_truth_m for record in more_frames.records])
    everything = truths[np.isfinite(truths)]
    assert best < 0.6 * np.mean(np.abs(everything - np.median(everything)) / everything)
    assert model_folder.read_model(folder).members == ("best",)


def test_the_seed_alone_decides(brief, tmp_path):
    source, network, training = brief
    torch.manual_seed(1)
    first = content(train(source, tmp_path / "a", network, training))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert content(train(source, tmp_path / "b", network, training)) == first
    assert torch.equal(torch.get_rng_state(), state)
    other = content(train(source, tmp_path / "c", network, replace(training, seed=1)))
    assert other["epoch_0002.safetensors"] != first["epoch_0002.safetensors"]


def test_the_saved_weights_are_the_running_average(source, network, training, tmp_path):
    """One batch per epoch: the average after two is 0.7 first + 0.3 second."""
    two = replace(training, epochs=2, snapshots=2, batch_size=16)
    last = train(source, tmp_path / "last", network, two)
    averaging = replace(two, average_decay=0.7)
    averaged = load_file(
        train(source, tmp_path / "averaged", network, averaging) / "epoch_0002.safetensors"
    )
    first, second = (load_file(last / f"epoch_000{epoch}.safetensors") for epoch in (1, 2))
    for name, value in averaged.items():
        if value.is_floating_point():
            torch.testing.assert_close(value, 0.7 * first[name] + 0.3 * second[name])
    assert not torch.allclose(averaged["decoder.final.weight"], second["decoder.final.weight"])


def test_an_existing_folder_is_refused(source, network, training, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SourceError, match="is not empty; expected a new folder, or --resume"):
        train(source, tmp_path, network, training)
    with pytest.raises(
        ModelError, match=r"holds no model.json; expected the folder of a training"
    ):
        train(source, tmp_path, network, training, resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def interrupted(brief, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        counted_writes(patch, killed_at=6)
        with pytest.raises(Killed):
            train(brief[0], folder, *brief[1:])


OTHERS = {"learning_rate": 0.1, "epochs": 9, "backbone": "resnet10", "head": "gaussian"}


def test_resuming_with_other_options_or_from_another_source_is_refused(
    brief, tmp_path, monkeypatch
):
    source, network, training = brief
    interrupted(brief, tmp_path / "model", monkeypatch)
    for name, value in OTHERS.items():
        changed = [
            replace(config, **{name: value}) if hasattr(config, name) else config
            for config in (network, training)
        ]
        sentence = f"{name} is .* but the training in .* was started with"
        with pytest.raises(ConfigError, match=sentence):
            train(source, tmp_path / "model", *changed, resume=True)
    source.records = source.records[::-1]
    with pytest.raises(SourceError, match=r"are not those the training in .* was started with"):
        train(source, tmp_path / "model", network, training, resume=True)


def test_what_the_user_hides_in_the_folder_stays(brief, tmp_path):
    (tmp_path / "model" / ".git").mkdir(parents=True)
    (tmp_path / "model" / ".gitattributes").write_text("*.safetensors filter=lfs")
    for _ in range(2):
        train(*brief[:1], tmp_path / "model", *brief[1:], resume=True)
    assert {path.name for path in (tmp_path / "model").glob(".*")} == {".git", ".gitattributes"}


def test_a_damaged_checkpoint_gets_one_sentence(brief, tmp_path, monkeypatch):
    interrupted(brief, tmp_path / "model", monkeypatch)
    path = tmp_path / "model" / "checkpoint.safetensors"
    content = path.read_bytes()
    tensors = load_file(path)
    name = next(name for name in tensors if name.startswith("network.decoder"))
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    faults = {
        "": content[:1000],
        "network.decoder": save({**tensors, name: tensors[name] + torch.nan}, metadata),
        "size mismatch": save({**tensors, name: torch.zeros(7)}, metadata),
        "not one of epochs": save(tensors, {"history": "[1]"}),
        "more than 32 levels": save(tensors, {"history": "[" * 10**5}),
        "unpack": save({**tensors, "optimizer.0": torch.zeros(7)}, metadata),
    }
    for sentence, damaged in faults.items():
        path.write_bytes(damaged)
        with pytest.raises(
            ModelError, match=rf"checkpoint.safetensors cannot be read .*{sentence}"
        ):
            train(brief[0], tmp_path / "model", *brief[1:], resume=True)


def test_a_loss_that_is_not_finite_ends_the_training_with_one_sentence(
    source, network, training, tmp_path
):
    """Each step multiplies the weights by 1 - 10 * 10, until they overflow."""
    diverging = replace(training, epochs=60, learning_rate=10.0, weight_decay=10.0)
    sentence = "the training loss became nan; expected a learning_rate below"
    with pytest.raises(ConfigError, match=sentence):
        train(source, tmp_path / "model", network, diverging)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_an_error(brief, tmp_path):
    source, network, training = brief
    with pytest.raises(ConfigError, match="finds no CUDA device"):
        train(source, tmp_path / "model", network, replace(training, device="cuda"))
    assert source.reads == 0  # a long recording takes minutes to read


def test_a_training_that_ended_too_early_is_reported(source, network, training, tmp_path, caplog):
    training = replace(training, epochs=4, patience=50, learning_rate=0.3)
    with caplog.at_level(logging.WARNING):
        folder = train(source, tmp_path / "model", network, training)
    errors = [float(row["rmse_log"]) for row in curves(folder)]
    best = 1 + errors.index(min(errors))
    assert (
        f"epoch {best} of 4 has the lowest validation error, and fewer than 50 epochs (patience) "
        "followed it; train again with more --epochs" in caplog.messages
    )


def test_a_depth_range_that_holds_no_ground_truth_is_refused(brief, tmp_path):
    source, network, training = brief
    network = replace(network, depth_range=(50.0, 80.0))
    sentence = "depth_range is 50 to 80 m, and no ground truth of list lies in it"
    with pytest.raises(ConfigError, match=sentence):
        train(source, tmp_path / "model", network, training)
    assert not (tmp_path / "model").exists()


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
