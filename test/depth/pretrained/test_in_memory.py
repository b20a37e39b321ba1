# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model of Hugging Face is used by its hub id or folder wherever a model folder is."""

import logging
import os
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest

from test.conftest import summary_of
from uncertainty_depth import Predictor
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.model_folder.writing import wrap

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
    report, maps = tmp_path / "report", tmp_path / "maps"
    scored = ["evaluate", SOURCE, "--model", folder, "--output", str(report), *QUICK]
    with caplog.at_level(logging.INFO):
        assert main(scored) == 0
    assert "is wrapped in memory" in caplog.text
    model = summary_of(report)["model"]
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
    command = ["evaluate", rising, "--model", str(saved("depth_anything")), *QUICK]

    def summary(name, *options):
        main([*command, *options, "--output", str(tmp_path / name)])
        return summary_of(tmp_path / name)

    by_frame = summary("frames")
    assert by_frame["frames"]["evaluated"] == 2
    assert by_frame["depth"]["mae"] < 1
    assert by_frame["model"]["align"] == "scale_shift"
    assert by_frame["model"]["depth_type"] == "inverse_depth"
    whole = summary("source", "--align", "median", "--align-per", "source")
    assert whole["frames"]["evaluated"] == 2
    assert any("the source is aligned to its ground truth" in note for note in whole["notes"])
    capsys.readouterr()
    command = ["evaluate", SOURCE, "--model", str(saved("glpn")), *QUICK]
    summary_of_metric = [*command, "--align", "median", "--output", str(tmp_path / "no")]
    assert main(summary_of_metric) == 1
    assert "align is 'median', but" in capsys.readouterr().err
