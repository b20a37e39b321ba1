# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A metric model becomes a model folder without training, and is served like any other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from test.depth.pretrained.conftest import METRIC, metres
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.depth.model_folder.writing import wrap
from uncertainty_depth.depth.predictor import Predictor

PLAIN = NetworkConfig(input_size=(64, 64), depth_range=(1e-3, 1e4), head="none")


@pytest.mark.parametrize("metric", METRIC)
def test_a_wrapped_model_predicts_what_the_model_predicts(metric, saved, tmp_path):
    width, height = {
        "depth_anything_metric": (224, 112),
        "depth_pro": (128, 128),
    }.get(metric, (96, 64))
    config = replace(PLAIN, backbone=str(saved(metric)), input_size=(width, height))
    wrapped = wrap(tmp_path / "model", config)
    image = np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)
    expected = metres(metric, torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255)[0]
    predictor = Predictor(wrapped, PredictorConfig(method="deterministic", device="cpu"))
    np.testing.assert_allclose(predictor.predict(image).depth_m, expected.numpy(), rtol=1e-4)


@pytest.mark.parametrize(
    ("family", "options", "method", "sentence"),
    [
        ("glpn", {}, "bagging", "method is 'bagging', which needs training; expected one of det"),
        ("glpn", {"dropout": 0.0}, "mc_dropout", "method is 'mc_dropout', but dropout is 0"),
        ("glpn", {"head": "laplace"}, "", "head is 'laplace', which needs training"),
        (
            "dpt",
            {},
            "",
            "expected a metric depth model, or `uncertainty-depth train SOURCE --backbone",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused(family, options, method, sentence, saved, tmp_path):
    config = replace(PLAIN, backbone=str(saved(family)), **options)
    with pytest.raises((ConfigError, ModelError), match=sentence):
        wrap(tmp_path / "model", config, *filter(None, [method]))
    assert not (tmp_path / "model").exists()


def test_the_command_needs_a_hub_id(saved, tmp_path, capsys):
    output = str(tmp_path / "model")
    with pytest.raises(SystemExit):
        main(["wrap", "--output", output])
    assert "required: HUB_ID" in capsys.readouterr().err
    assert main(["wrap", str(saved("glpn")), "--output", output, "--method", "deterministic"]) == 0
    assert Predictor(output, PredictorConfig(device="cpu", samples=2)).method == "deterministic"


def test_a_folder_with_a_model_is_left_alone(saved, tmp_path):
    config = replace(PLAIN, backbone=str(saved("glpn")))
    before = (wrap(tmp_path / "model", config) / "model.json").read_bytes()
    with pytest.raises(ModelError, match="already holds a model"):
        wrap(tmp_path / "model", config)
    assert (tmp_path / "model" / "model.json").read_bytes() == before


@pytest.mark.parametrize("metric", ["glpn", "zoedepth"])
def test_a_runtime_computes_any_number_of_samples_of_a_wrapped_model(metric, saved, tmp_path):
    """Its graph is traced with two samples, and decoders join the encoder's maps to each."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    wrapped = wrap(tmp_path / "model", replace(PLAIN, backbone=str(saved(metric)), dropout=0.2))
    image = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    by_torch, by_runtime = (
        Predictor(wrapped, samples=3, device="cpu", engine=engine).predict(image)
        for engine in ("torch", "onnxruntime")
    )
    np.testing.assert_allclose(by_runtime.depth_m, by_torch.depth_m, rtol=1e-3)
    np.testing.assert_allclose(by_runtime.sigma_m, by_torch.sigma_m, rtol=1e-2)
