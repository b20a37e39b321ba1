# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""No command deletes, moves or replaces what a run of ours did not write."""

import os
import shutil
import socket
from pathlib import Path

import cv2
import numpy as np
import pytest

from test.conftest import save_maps
from test.core.test_output import CONTEXT, content
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation

MAPS = "predictions:{maps}"
FOLDERS = {
    "evaluate": f"evaluate {MAPS} --overwrite -o",
    "evaluate rendered": "evaluate synthetic:worlds=1,frames=2 --model demo -o",
    "evaluate several": f"evaluate {MAPS} {MAPS}/ --overwrite -o",
    "merge": "merge {report} --overwrite -o",
    "compare": "compare {report} {report} -o",
    "predict": "predict {photo} --model demo -o",
    "write-bag": f"evaluate {MAPS} -o {{new}} --write-bag",
    "convert": "convert synthetic:worlds=1,frames=1",
    "train": "train no_bag -o",
    "wrap": "wrap no/model -o",
}
FILES = {
    "junit": (f"evaluate {MAPS} -o {{new}} --junit", "out.xml"),
    "junit of merge": ("merge {report} -o {new} --junit", "out.xml"),
    "map": (f"calibrate {MAPS} --confidence-type sigma -o", "out.json"),
    "plot": ("info no_bag -o", "out.png"),
    "recording": (f"view {MAPS} --save", "out.rrd"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Small inputs of every kind."""
    folder = tmp_path_factory.mktemp("inputs")
    random = np.random.default_rng(1)
    truth = random.uniform(1, 9, (12, 16)).astype(np.float32)
    depth = truth + random.normal(0, 0.1, truth.shape).astype(np.float32)
    sigma = np.full_like(truth, 0.1)
    for index in range(40):
        save_maps(folder / "maps", f"{index}", depth=depth, confidence=sigma, ground_truth=truth)
    report.write(Evaluation(), folder / "report", CONTEXT, images=False)
    cv2.imwrite(str(folder / "photo.jpg"), np.full((20, 30, 3), 99, np.uint8))
    return folder


@pytest.fixture
def run(command, inputs, tmp_path):
    """Run a command on a copy of the inputs."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    places = {name: tmp_path / name for name in ("maps", "report", "new", "out")}
    places["photo"] = tmp_path / "photo.jpg"

    def run(words, output):
        return command(*words.format(**places).split(), output)

    return run


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_other_files_is_refused_before_the_work(run, tmp_path, photos, name):
    before = content(tmp_path)
    done = run(FOLDERS[name], photos)
    assert done.returncode == 1
    assert str(photos) in done.stderr
    assert "expected " in done.stderr
    assert content(tmp_path) == before


@pytest.mark.parametrize("output", ["", ".", "..", "../photos/sub/.."])
@pytest.mark.parametrize(
    "name", ["evaluate", "evaluate rendered", "evaluate several", "compare", "predict"]
)
def test_the_current_folder_and_those_that_hold_it_are_refused(
    run, tmp_path, photos, monkeypatch, name, output
):
    monkeypatch.chdir(photos)
    before = content(tmp_path)
    done = run(FOLDERS[name], output)
    assert done.returncode == 1
    assert "it is the current folder or holds it" in done.stderr
    assert content(tmp_path) == before


KINDS = ["link", "broken link", "loop", "device", "pipe", "socket", "file"]
KINDS += ["below a loop", "below a file"]
COMMANDS = {name: (words, "out") for name, words in FOLDERS.items()} | FILES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_links_devices_and_files_are_refused_before_the_work(run, tmp_path, photos, name, kind):
    words, file_name = COMMANDS[name]
    output = tmp_path / file_name
    listener = socket.socket(socket.AF_UNIX)
    if kind == "pipe":
        os.mkfifo(output)
    elif kind == "socket":
        listener.bind(str(output))
    elif kind.endswith("file"):
        output.write_text("of others")
    elif kind == "device":
        if output.suffix in (".png", ".rrd"):
            pytest.skip("its name does not end as it must")
        output = Path("/dev/null")
    else:
        targets = {"link": photos, "broken link": tmp_path / "nothing"}
        output.symlink_to(targets.get(kind, output))
    before = content(tmp_path)
    path = output / file_name if kind.startswith("below") else output
    done = run(words, path)
    listener.close()
    assert done.returncode == 1
    assert f"cannot write to {path}: " in done.stderr
    assert content(tmp_path) == before
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_a_files_place_is_refused_before_the_work(run, tmp_path, photos, name):
    words, file_name = FILES[name]
    output = tmp_path / "folder" / file_name
    output.mkdir(parents=True)
    before = content(tmp_path)
    done = run(words, output)
    assert done.returncode == 1
    assert f"cannot write to {output}: it is a f" in done.stderr
    assert content(tmp_path) == before


def test_an_input_is_never_the_output(run, tmp_path):
    before = content(tmp_path)
    for words in ("merge {report} --overwrite -o", "compare {report} {report} -o"):
        done = run(words, tmp_path / "report")
        assert done.returncode == 1
        assert "it is an input" in done.stderr
    done = run("evaluate {photo} --model demo -o {new} --junit", tmp_path / "photo.jpg")
    assert done.returncode == 1
    assert "it is an input" in done.stderr
    assert content(tmp_path) == before


def test_a_map_is_never_written_onto_an_image(run, tmp_path):
    """Not even in a folder of maps, where the image has the name of one of ours."""
    assert run("predict {photo} --model demo -o", tmp_path / "out").returncode == 0
    (tmp_path / "out" / "photo.png").write_bytes((tmp_path / "photo.jpg").read_bytes())
    before = content(tmp_path)
    words = "predict {new}/../out/photo_plot.png {new}/../out/photo.png --model demo -o"
    (tmp_path / "new").mkdir()
    done = run(words, tmp_path / "out")
    assert done.returncode == 1
    assert "it holds the input photo_plot.png" in done.stderr
    assert content(tmp_path) == before


def test_two_images_of_one_name_would_have_the_same_maps(run, tmp_path):
    done = run("predict {photo} {maps}/photo.png --model demo -o", tmp_path / "out")
    assert done.returncode == 1
    assert "2 images are called photo" in done.stderr


def test_what_we_wrote_is_replaced_and_said(run, tmp_path, caplog):
    caplog.set_level("INFO")
    for words, name in (FILES["junit"], FILES["map"], (FOLDERS["predict"], "out")):
        output = tmp_path / name
        for message in ("", "replaced "):
            caplog.clear()
            overwrite = " --overwrite" * words.startswith("evaluate")
            done = run(words.replace(" -o", f"{overwrite} -o"), output)
            assert done.returncode in (0, 3), done.stderr
            said = [text for text in caplog.messages if str(output) in text and "repl" in text]
            assert bool(said) == bool(message)


@pytest.mark.parametrize(
    "words",
    [
        "evaluate predictions:{maps} -o {new} --write-bag",
        "evaluate predictions:{maps} -o {new}/../new --junit",
        "evaluate predictions:{maps} -o {out} --write-bag {new} --junit",
        "merge {report} -o {new} --junit",
    ],
)
def test_two_outputs_are_never_the_same(run, tmp_path, words):
    before = content(tmp_path)
    done = run(words, tmp_path / "new")
    assert done.returncode == 1
    assert "two outputs are " in done.stderr
    assert content(tmp_path) == before


def test_a_junit_file_is_no_file_of_the_report(run, tmp_path):
    before = content(tmp_path)
    done = run("evaluate predictions:{maps} -o {new} --junit", tmp_path / "new" / "summary.json")
    assert done.returncode == 1
    assert "two outputs are " in done.stderr
    assert content(tmp_path) == before


def test_a_report_of_an_earlier_version_is_refused_and_stays(command, tmp_path):
    folder = tmp_path / "report"
    report.write(Evaluation(), folder, CONTEXT, images=False)
    (folder / ".uncertainty_depth.json").unlink()
    before = content(folder)
    done = command("evaluate", "no_bag", "--model", "demo", "--overwrite", "-o", folder)
    assert done.returncode == 1
    assert "earlier versions wrote none" in done.stderr
    assert content(folder) == before
