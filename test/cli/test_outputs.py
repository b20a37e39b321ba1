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


@pytest.fixture
def refuses(run, tmp_path):
    """Expect that a command fails with these words, and changes no file."""

    def check(words, output, *sentences):
        before = content(tmp_path)
        done = run(words, output)
        assert done.returncode == 1
        for sentence in sentences:
            assert sentence in done.stderr
        assert content(tmp_path) == before

    return check


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_other_files_is_refused_before_the_work(refuses, photos, name):
    refuses(FOLDERS[name], photos, str(photos), "expected ")


@pytest.mark.parametrize("output", ["", ".", "..", "../photos/sub/.."])
@pytest.mark.parametrize(
    "name", ["evaluate", "evaluate rendered", "evaluate several", "compare", "predict"]
)
def test_the_current_folder_and_those_that_hold_it_are_refused(
    refuses, photos, monkeypatch, name, output
):
    monkeypatch.chdir(photos)
    refuses(FOLDERS[name], output, "it is the current folder or holds it")


KINDS = ["link", "broken link", "loop", "device", "pipe", "socket", "file"]
KINDS += ["below a loop", "below a file"]
COMMANDS = {name: (words, "out") for name, words in FOLDERS.items()} | FILES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_links_devices_and_files_are_refused_before_the_work(
    refuses, tmp_path, photos, name, kind
):
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
    path = output / file_name if kind.startswith("below") else output
    refuses(words, path, f"cannot write to {path}: ")
    listener.close()
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_a_files_place_is_refused_before_the_work(refuses, tmp_path, name):
    words, file_name = FILES[name]
    output = tmp_path / "folder" / file_name
    output.mkdir(parents=True)
    refuses(words, output, f"cannot write to {output}: it is a f")


@pytest.mark.parametrize(
    ("words", "output", "sentence"),
    [
        ("merge {report} --overwrite -o", "report", "it is an input"),
        ("compare {report} {report} -o", "report", "it is an input"),
        ("evaluate {photo} --model demo -o {new} --junit", "photo.jpg", "it is an input"),
        ("evaluate predictions:{maps} -o {new} --write-bag", "new", "two outputs are "),
        ("evaluate predictions:{maps} -o {new}/../new --junit", "new", "two outputs are "),
        ("evaluate predictions:{maps} -o {out} --write-bag {new} --junit", "new", "two outputs"),
        ("evaluate predictions:{maps} -o {new} --junit", "new/summary.json", "two outputs are "),
        ("merge {report} -o {new} --junit", "new", "two outputs are "),
        ("predict {photo} {maps}/photo.png --model demo -o", "out", "2 images are called photo"),
    ],
)
def test_no_output_is_an_input_or_another_output(refuses, tmp_path, words, output, sentence):
    refuses(words, tmp_path / output, sentence)


def test_a_map_is_never_written_onto_an_image(run, refuses, tmp_path):
    """Not even among our own maps, where the image has a map's name."""
    assert run("predict {photo} --model demo -o", tmp_path / "out").returncode == 0
    (tmp_path / "out" / "photo.png").write_bytes((tmp_path / "photo.jpg").read_bytes())
    words = "predict {out}/photo_plot.png {out}/photo.png --model demo -o"
    refuses(words, tmp_path / "out", "it holds the input photo_plot.png")


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


def test_a_report_of_an_earlier_version_is_refused_and_stays(command, tmp_path):
    folder = tmp_path / "report"
    report.write(Evaluation(), folder, CONTEXT, images=False)
    (folder / ".uncertainty_depth.json").unlink()
    before = content(folder)
    done = command("evaluate", "no_bag", "--model", "demo", "--overwrite", "-o", folder)
    assert done.returncode == 1
    assert "earlier versions wrote none" in done.stderr
    assert content(folder) == before
