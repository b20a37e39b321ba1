# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`--model FOLDER/MODULE:CLASS`: a network of one's own, by every command that scores."""

import numpy as np
import pytest

from test.conftest import summary_of
from uncertainty_depth import DepthPrediction, evaluate, predicted
from uncertainty_depth.cli.main import main

SOURCE = "synthetic:worlds=2,frames=2,width=64,height=48,dense=true"
NETWORK = """
import numpy as np
from uncertainty_depth import DepthPrediction

class {name}:
    def predict(self, image, stamp_ns=0, camera=None):
        depth_m = np.full(image.shape[:2], 3.0, np.float32)
        return {returned}

class Nothing:
    pass
"""
GOOD = "DepthPrediction(depth_m, depth_m / 10)"


class Same:
    def predict(self, image, stamp_ns=0, camera=None):
        depth_m = np.full(image.shape[:2], 3.0, np.float32)
        return DepthPrediction(depth_m, depth_m / 10)


@pytest.fixture
def write_network(tmp_path):
    """Write a module; its name is new, as Python imports a module once."""

    def write(module, returned=GOOD):
        text = NETWORK.format(name="MyNetwork", returned=returned)
        (tmp_path / f"{module}.py").write_text(text)
        return f"{tmp_path}/{module}:MyNetwork"

    return write


def test_a_class_is_scored_as_the_same_object_in_python(
    write_network, tmp_path, plots_without_pixels, monkeypatch
):
    report = tmp_path / "report"
    model = write_network("networks_scored")
    assert main(["evaluate", SOURCE, "--model", model, "--output", str(report)]) == 0
    summary = summary_of(report)
    of_python = evaluate(predicted(SOURCE, Same())).metrics.compute()
    assert summary["depth"]["mae"] == of_python["depth"]["mae"]
    assert summary["uncertainty"]["ause"] == of_python["uncertainty"]["ause"]
    assert "Depth and sigma of MyNetwork" in (report / "report.html").read_text()


@pytest.mark.parametrize(
    ("returned", "change", "options", "sentence"),
    [
        (GOOD, ("MyNetwork", "Absent"), (), "has no Absent with a method predict(image, stamp_ns"),
        (GOOD, ("MyNetwork", "Nothing"), (), "has no Nothing with a method predict(image, sta"),
        (GOOD, (":", "_elsewhere:"), (), "has no Python module networks_wrong_0_elsewhere"),
        (GOOD, ("", ""), ("--samples", "4"), "samples is 4, but "),
        (GOOD, ("", ""), ("--align", "median"), "align is 'median', an option of recorded"),
        ("(depth_m, depth_m)", ("", ""), (), "predict of MyNetwork returned tuple; expected unc"),
        (
            "DepthPrediction(depth_m[1:], depth_m)",
            ("", ""),
            (),
            "predicted depth (47, 64) and sig",
        ),
    ],
)
def test_what_is_no_network_is_one_sentence(
    returned, change, options, sentence, write_network, tmp_path, capsys, request
):
    module = f"networks_wrong_{abs(hash(request.node.name)) % 10**8}"
    model = write_network(module, returned)
    sentence = sentence.replace("networks_wrong_0", module)
    if change[0]:
        folder, _, name = model.rpartition("/")
        model = f"{folder}/{name.replace(*change)}"
    output = str(tmp_path / "report")
    assert main(["evaluate", SOURCE, "--model", model, *options, "--output", output]) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "report").exists()


def test_commands_that_need_a_model_folder_name_those_that_take_a_class(write_network, capsys):
    model = write_network("networks_elsewhere")
    assert main(["predict", "image.png", "--model", model, "--output", "out"]) == 1
    assert "which `evaluate` and `view` take" in capsys.readouterr().err
