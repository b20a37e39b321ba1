# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the NYU experiment trains and where it finds its frames."""

import os
import shlex
from dataclasses import replace

import pytest

from experiments import nyu_methods
from experiments.data_folders import NYU, Subset, first_frames
from experiments.nyu_methods import (
    FULL,
    PRETRAINED,
    PRETRAINING,
    ROWS,
    TRAINING_FREE,
    VARIANTS,
    load,
    model_name,
    open_splits,
    options,
    plan,
    prediction,
    train_models,
)
from uncertainty_depth.cli.arguments import build_parser
from uncertainty_depth.cli.main import COMMANDS
from uncertainty_depth.core.config.training import NetworkConfig, TrainingConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.options import from_arguments
from uncertainty_depth.core.records import Frame

COMMAND = (
    "train nyu:DIR:train --output MODEL --backbone tiny --decoder-width 64 "
    "--depth-range 0.5 10.5 --epochs 50 --patience 50 --head none"
)
ARGUMENTS = {
    "multi_epochs": "--method multi_epochs",
    "multi_epochs_laplace": "--method multi_epochs --head laplace",
    "multi_inits": "--method multi_inits --members 5",
    "multi_inits_laplace": "--method multi_inits --head laplace --members 5",
    "bagging": "--method bagging --members 5",
    "multi_networks": "--method multi_networks --backbone tiny,tiny18,tiny34",
    "learned_error": "--method learned_error",
    "self_teaching": "--method self_teaching --head laplace",
    "multi_epochs_laplace_long": "--head laplace --epochs 150 --patience 150",
    "pretraining": (
        "--head laplace --method mc_dropout --epochs 30 --final-learning-rate 0.05 "
        "--canonical-focal-length 0.936"
    ),
    "multi_epochs_laplace_pretrained": "--head laplace --canonical-focal-length 0.936",
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [0, 2])
def test_a_full_training_is_that_of_its_command_line(variant, seed):
    arguments = build_parser(COMMANDS).parse_args(
        shlex.split(f"{COMMAND} {ARGUMENTS[variant]} --seed {seed}")
    )
    assert options(variant, seed, FULL) == (
        from_arguments(NetworkConfig, arguments),
        from_arguments(TrainingConfig, arguments),
    )


def test_train_gets_every_training_of_the_plan_once(tmp_path, monkeypatch, tiny_settings):
    calls = []
    monkeypatch.setattr(
        nyu_methods, "train", lambda *arguments, **keywords: calls.append((arguments, keywords))
    )
    train_models(tmp_path, "a source", plan(3), tiny_settings)
    assert [arguments[1] for arguments, _ in calls] == [
        tmp_path / model_name(*training) for training in plan(3)
    ]
    for (variant, seed), (arguments, keywords) in zip(plan(3), calls, strict=True):
        network, training = options(variant, seed, tiny_settings)
        if variant == PRETRAINED:
            training = replace(training, from_model=str(tmp_path / "pretraining-0"))
        if variant == PRETRAINING:
            assert arguments[0].name.startswith("synthetic:")
        else:
            assert arguments[0] == "a source"
        assert arguments[2:] == (network, training)
        assert keywords == {"resume": True}


def test_one_network_is_trained_for_every_seed_and_several_once():
    trainings = plan(3)
    assert len(set(trainings)) == len(trainings) == 19
    assert trainings[0] == (PRETRAINING, 0)
    for row in ROWS.values():
        seeds = [seed for variant, seed in trainings if variant == row.variant]
        assert seeds == ([0, 1, 2] if row.cheap else [0])
    assert {variant for variant, _ in trainings} == set(VARIANTS)


@pytest.mark.parametrize("name", TRAINING_FREE)
def test_methods_without_training_share_the_networks_of_multi_epochs(name):
    headless = ROWS[name]
    with_head = ROWS[f"{name}_laplace"]
    assert headless.variant == ROWS["multi_epochs"].variant
    assert with_head.variant == ROWS["multi_epochs_laplace"].variant
    assert headless.cheap
    assert with_head.cheap
    assert prediction(headless) == prediction(with_head)


def test_a_training_of_other_options_is_not_overwritten(nyu_models, nyu_like, tiny_settings):
    other = replace(tiny_settings, training=replace(tiny_settings.training, epochs=3))
    with pytest.raises(ConfigError, match="epochs"):
        train_models(
            nyu_models / "models", open_splits(nyu_like, 10).train, [("multi_epochs", 0)], other
        )


@pytest.mark.parametrize(
    ("row", "passes"),
    [
        ("multi_epochs", 2),
        ("mc_dropout", 8),
        ("log_likelihood", 1),
        ("learned_error", 1),
        ("post", 2),
        ("tta_laplace", 8),
        ("inference_dropout", 8),
        ("feature_noise_laplace", 8),
    ],
)
def test_a_row_is_served_raw_by_its_own_method(nyu_models, row, passes):
    described = load(nyu_models / "models", ROWS[row]).describe()
    assert (described["method"], described["calibration"], described["samples"]) == (
        prediction(ROWS[row]).method,
        "off",
        passes,
    )


def test_the_first_frames_are_those_of_the_source(nyu_like):
    whole = open_splits(nyu_like).train
    first = open_splits(nyu_like, 5).train
    assert isinstance(first, Subset)
    for _ in range(2):
        assert [frame.name for frame in first] == [frame.name for frame in whole][:5]
    assert (len(first), len(first_frames(whole, 100)), len(whole)) == (5, 12, 12)
    assert all(isinstance(frame, Frame) for frame in first)
    assert first.notes == []


def test_a_missing_data_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("UNCERTAINTY_DEPTH_DATA", str(tmp_path))
    with pytest.raises(SourceError, match=r"no NYU Depth v2: .*nyuv2 is missing; expected"):
        NYU.find(None)
    (tmp_path / "nyuv2").mkdir()
    assert NYU.find(None) == tmp_path / "nyuv2"
    assert NYU.find(tmp_path) == tmp_path / "nyuv2"
    monkeypatch.delenv("UNCERTAINTY_DEPTH_DATA")
    with pytest.raises(
        SourceError,
        match=r"neither --data nor UNCERTAINTY_DEPTH_DATA is given; expected --data DIR",
    ):
        NYU.find(None)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match="nowhere"):
        open_splits(tmp_path / "nowhere")


@pytest.mark.skipif(
    "UNCERTAINTY_DEPTH_DATA" not in os.environ, reason="UNCERTAINTY_DEPTH_DATA is not set"
)
def test_the_real_splits():
    splits = open_splits(NYU.find(None), FULL.train_frames, FULL.test_frames)
    assert (len(splits.train), len(splits.test)) == (795, 654)
