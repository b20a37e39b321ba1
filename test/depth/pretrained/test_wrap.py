# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A metric model is served as any other, without training: wrapped in a folder or in memory."""

import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from test.conftest import evaluated, summary_of
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


SOURCE = "synthetic:worlds=1,frames=2,width=64,height=48"
QUICK = ["--samples", "2", "--device", "cpu"]


@pytest.mark.parametrize("metric", ["depth_pro", "glpn"])
def test_a_saved_model_predicts_what_it_does_wrapped(metric, saved, tmp_path):
    folder = saved(metric)
    found = Predictor(folder, device="cpu", samples=2)
    wrapped = Predictor(wrap(tmp_path / "w", found.model.network), device="cpu", samples=2)
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    prediction, expected = found.predict(image), wrapped.predict(image)
    np.testing.assert_array_equal(prediction.depth_m, expected.depth_m)
    np.testing.assert_array_equal(prediction.sigma_m, expected.sigma_m)
    assert (found.method, found.depth_range) == (wrapped.method, wrapped.depth_range)


def test_commands_take_a_folder_of_save_pretrained(saved, tmp_path, capsys, caplog):
    folder = str(saved("depth_anything_metric"))
    photo = tmp_path / "photo.png"
    cv2.imwrite(str(photo), np.full((48, 64, 3), 90, np.uint8))
    maps = tmp_path / "maps"
    with caplog.at_level(logging.INFO):
        model = evaluated(tmp_path / "report", SOURCE, "--model", folder, *QUICK)["model"]
    assert "is wrapped in memory" in caplog.text
    assert (model["name"], model["method"]) == ("depth_anything_metric", "mc_dropout")
    assert main(["predict", str(photo), "--model", folder, "--output", str(maps), *QUICK]) == 0
    assert (maps / "photo_sigma.tiff").exists()
    assert main(["info", folder]) == 0
    assert "mc_dropout" in capsys.readouterr().out
    assert main(["calibrate", folder, SOURCE]) == 1
    message = capsys.readouterr().err
    assert f"`uncertainty-depth wrap {folder} --output MODEL` first, or --dry-run" in message


def test_a_hub_id_is_found_in_the_local_cache(saved, tmp_path):
    snapshot = tmp_path / "cache" / "models--acme--depth" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    shutil.move(saved("glpn"), snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(snapshot.name)
    done = subprocess.run(
        [sys.executable, "-m", "uncertainty_depth", "info", "acme/depth"],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "acme/depth" in done.stdout


@pytest.mark.parametrize(
    ("family", "words"),
    [("dpt", "does not give depth in metres"), ("no_depth", "is a 'resnet' model")],
)
def test_what_gives_no_metres_is_refused(family, words, saved, tmp_path):
    if family == "no_depth":
        (tmp_path / "config.json").write_text('{"model_type": "resnet"}')
    folder = tmp_path if family == "no_depth" else saved(family)
    with pytest.raises(ModelError, match=words):
        Predictor(folder)


def test_without_preprocessing_imagenets_is_taken_and_said_once(saved, caplog):
    folder = saved("glpn")
    (folder / "preprocessor_config.json").unlink()
    model = Predictor(folder).model
    said = [text for text in caplog.messages if "preprocessor_config.json" in text]
    assert said == [
        f"{folder} has no readable preprocessor_config.json: its images are normalised with "
        "ImageNet's mean and standard deviation"
    ]
    encoder = model.load("best").encoder
    assert encoder.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert encoder.std.flatten().tolist() == pytest.approx([0.229, 0.224, 0.225])


def test_a_relative_network_becomes_metres_by_measurements(saved, tmp_path):
    folder = saved("depth_anything")
    rising = f"{SOURCE},seed=1"  # in it the random network rises with inverse depth

    def summary(count):
        out = tmp_path / str(count)
        options = ["--measurements", f"random:{count}", "--output", str(out), *QUICK]
        code = main(["evaluate", rising, "--model", str(folder), *options])
        return code, summary_of(out)

    code, many = summary(200)
    assert code == 0
    falls = many["frames"]["skipped"].get("alignment_failed", 0)  # as a random network may
    assert many["frames"]["evaluated"] == 2 - falls > 0
    assert many["depth"]["mae"] < 1
    assert "align" not in many["model"]
    assert not any("aligned to its ground truth" in note for note in many["notes"])
    _, few = summary(8)
    assert few["frames"]["evaluated"] == 0
    assert few["frames"]["skipped"] == {"too_few_points_to_align": 2}


def test_a_relative_network_is_aligned_to_the_ground_truth(saved, tmp_path, capsys):
    rising = f"{SOURCE},seed=1"  # in it the random network rises with inverse depth
    command = [rising, "--model", saved("depth_anything"), *QUICK]
    by_frame = evaluated(tmp_path / "frames", *command)
    assert by_frame["frames"]["evaluated"] == 2
    assert by_frame["depth"]["mae"] < 1
    assert by_frame["model"]["align"] == "scale_shift"
    assert by_frame["model"]["depth_type"] == "inverse_depth"
    as_whole = ["--align", "median", "--align-per", "source"]
    whole = evaluated(tmp_path / "source", *command, *as_whole)
    assert whole["frames"]["evaluated"] == 2
    assert any("the source is aligned to its ground truth" in note for note in whole["notes"])
    capsys.readouterr()
    command = ["evaluate", SOURCE, "--model", str(saved("glpn")), *QUICK]
    summary_of_metric = [*command, "--align", "median", "--output", str(tmp_path / "no")]
    assert main(summary_of_metric) == 1
    assert "align is 'median', but" in capsys.readouterr().err
