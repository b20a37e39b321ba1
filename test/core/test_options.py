# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every option can be set by a mapping and on the command line, and wrong values are refused."""

import argparse
import dataclasses
import importlib
import inspect
import pkgutil

import pytest

from uncertainty_depth import Evaluation, OnlineMetrics, Predictor, evaluate
from uncertainty_depth.core import config
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import LidarConfig
from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import (
    add_arguments,
    element_type,
    from_arguments,
    from_mapping,
    to_mapping,
)

SUBJECTS = [
    importlib.import_module(f"{config.__name__}.{module.name}")
    for module in pkgutil.iter_modules(config.__path__)
]
KINDS = [
    kind
    for subject in SUBJECTS
    for kind in vars(subject).values()
    if dataclasses.is_dataclass(kind) and kind.__module__ == subject.__name__
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_without_flags_and_from_a_mapping_come_the_defaults_and_numbers_have_both_ends(kind):
    assert from_mapping(kind, to_mapping(kind())) == kind()
    parser = argparse.ArgumentParser()
    add_arguments(parser, kind)
    assert from_arguments(kind, parser.parse_args([])) == kind()
    shown = " ".join(parser.format_help().split())
    for item in dataclasses.fields(kind):
        text = item.metadata["help"]
        assert text in shown or "-" in text or item.metadata["expert"], item.name
        # Nothing that is typed may ask for more memory or time than any machine has.
        if element_type(kind, item.name) in (int, float):
            assert item.metadata["limits"] is not None, item.name


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sampels": 3}, ["sampels", "samples"]),
        ({"samples": "3"}, ["samples", "'3'", "int"]),
        ({"samples": True}, ["samples", "True"]),
        ({"samples": 0}, ["samples", "0", "at least 1"]),
        ({"precision": "fp8"}, ["precision", "fp8", "bf16"]),
    ],
)
def test_invalid_values_are_named(values, words):
    with pytest.raises(ConfigError) as caught:
        from_mapping(PredictorConfig, values)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (Predictor, PredictorConfig),
        (OnlineMetrics, EvaluationConfig),
        (OnlineMetrics.__init__, EvaluationConfig),
        (Evaluation, EvaluationConfig),
        (evaluate, EvaluationConfig),
    ],
)
def test_a_function_that_takes_options_lists_them_as_keywords(function, kind):
    shown = inspect.signature(function).parameters
    for item in dataclasses.fields(kind):
        assert shown[item.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[item.name].default == item.default
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())


def test_integers_and_lists_become_what_the_field_asks_for():
    made = from_mapping(
        LidarConfig, {"lidar_to_camera": [0, 0, 1, 0, 0, 0, 1], "max_time_difference": 1}
    )
    assert made.lidar_to_camera == (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    assert isinstance(made.max_time_difference, float)


@pytest.mark.parametrize(
    ("alias", "method"), [("deep_ensemble", "multi_inits"), ("snapshot_ensemble", "multi_epochs")]
)
def test_usual_names_of_methods_mean_those_of_the_papers(alias, method):
    for kind in (TrainingConfig, PredictorConfig):
        parser = argparse.ArgumentParser()
        add_arguments(parser, kind)
        assert from_arguments(kind, parser.parse_args(["--method", alias])).method == method
        assert from_mapping(kind, {"method": alias}).method == method
        assert f"{alias} = {method}" in " ".join(parser.format_help().split())


def test_expert_options_have_a_flag_that_the_help_leaves_out():
    parser = argparse.ArgumentParser(usage="")
    add_arguments(parser, TrainingConfig)
    arguments = parser.parse_args(["--snapshots", "4", "--no-augment"])
    training = from_arguments(TrainingConfig, arguments)
    assert (training.snapshots, training.augment) == (4, False)
    assert "--snapshots" not in parser.format_help()


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:12"])
def test_a_device_may_have_a_number(device):
    parser = argparse.ArgumentParser()
    add_arguments(parser, PredictorConfig)
    arguments = parser.parse_args(["--device", device])
    assert from_arguments(PredictorConfig, arguments).device == device
    assert "{auto,cpu,cuda,cuda:N}" in parser.format_help()


@pytest.mark.parametrize("device", ["cuda:N", "cuda:", "cuda:-1", "cpu:1", "gpu", "", "cuda:1:2"])
def test_other_devices_are_refused(device):
    with pytest.raises(ConfigError, match="expected one of 'auto', 'cpu', 'cuda', 'cuda:N'"):
        from_mapping(PredictorConfig, {"device": device})
