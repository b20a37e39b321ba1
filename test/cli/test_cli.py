# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The command line as a person meets it: one sentence per error, nothing lost."""

import json
import logging
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from uncertainty_depth.cli.arguments import build_parser
from uncertainty_depth.cli.main import COMMANDS, PrintableFormatter, exit_code_of, main
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.depth.training import run as training_run
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.protocol import NAME_SEPARATOR
from uncertainty_depth.sigma.calibration import run as calibration_run


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        build_parser(COMMANDS).parse_args([command, "--help"])
    assert ended.value.code == 0
    example = f"uncertainty-depth {command} {COMMANDS[command].example}"
    assert example in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_help_all_describes_the_rare_options_that_help_names(command, capsys):
    shown = {}
    for words in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            main([command, words])
        assert ended.value.code == 0
        shown[words] = capsys.readouterr().out
    usual, epilog = shown["--help"].split("rare options, see --help-all:")
    rare = [f"--{name}" for name in re.findall(r"--([\w-]+)", epilog.replace("-\n", "-"))]
    assert rare
    for flag in rare:
        assert not re.search(rf"^  {flag}\b", usual, re.MULTILINE)
        assert re.search(rf"^  {flag}\b.*\n? +\w", shown["--help-all"], re.MULTILINE)


EVALUATED = "--model no/model --output {tmp}/report"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (f"evaluate no/such/bag {EVALUATED}", "no such bag.*no/such/bag"),
        (f"evaluate nyu:no/such {EVALUATED}", "no/such"),
        (f"evaluate kitti:no/such {EVALUATED}", "no/such"),
        (f"evaluate synthetic:wrlds=2 {EVALUATED}", "wrlds.*worlds"),
        ("predict no.jpg --model no/model --output {tmp}/maps", "no/model"),
        ("train no/such/bag --output {tmp}/model", "no such bag"),
        ("train synthetic: -o {tmp}/model --input-size 320", "input_size.*expected 2 values"),
        ("convert kitti:no/such/drive {tmp}/bag", "no/such/drive"),
        ("convert synthetic:worlds=1,frames=1 {tmp}", "exist"),
        ("convert my_bag {tmp}/bag", "'my_bag'.*kitti:DRIVE_DIR.*synthetic:"),
        ("convert ./my_bag {tmp}/bag", r"'\./my_bag'.*kitti:DRIVE_DIR"),
        ("convert json:my_bag {tmp}/bag", "'json:my_bag'.*write_bag"),
        ("info synthetic:worlds=1,frames=1 --output {tmp}/plot", "file that ends in .png"),
        ("info synthetic:worlds=1,frames=1 --output {tmp}/plot.jpg", "file that ends in .png"),
        ("calibrate no/model no/such/bag --output {tmp}/report", "no/"),
        (f"evaluate synthetic: {EVALUATED}", "no/model.*neither a folder"),
        (
            "evaluate synthetic: --model demo --output {tmp}/report --require ause.rsme<=0.2",
            "unknown metric 'ause.rsme'.*ause.rmse",
        ),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_1_and_leaves_nothing(
    arguments, words, tmp_path, command
):
    done = command(*arguments.format(tmp=tmp_path).split())
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("uncertainty-depth: ")
    assert re.search(words, last)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a" * 10_000, "/".join(["a" * 200] * 50)])
@pytest.mark.parametrize(
    "words",
    [
        "info {}",
        "evaluate {} --model demo -o {tmp}/out",
        "evaluate no_bag --model demo -o {}",
        "evaluate no_bag --model {} -o {tmp}/out",
        "compare {} {} -o {tmp}/out",
        "predict {} --model demo -o {tmp}/out",
        "train no_bag -o {}",
        "convert kitti:{} {tmp}/out",
        "calibrate demo {} --dry-run",
        "info no_bag --max-frames {}",
        "info no_bag {}",
    ],
)
def test_a_very_long_word_is_not_repeated_whole(words, path, tmp_path, capsys):
    try:
        code = main(words.format(path, path, tmp=tmp_path).split())
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    last = capsys.readouterr().err.splitlines()[-1]
    assert path[:50] in last
    assert path[-50:] in last
    assert len(last) < 1000
    assert not list(tmp_path.iterdir())


def test_an_interrupted_training_says_how_to_go_on(monkeypatch, capsys):
    def interrupted(command):
        raise KeyboardInterrupt

    for command, arguments in (
        ("train", ["my_bag", "--output", "my_model"]),
        ("convert", ["synthetic:", "my_bag"]),
    ):
        monkeypatch.setattr(COMMANDS[command], "run", interrupted)
        assert main([command, *arguments]) == 130
        assert ("--resume" in capsys.readouterr().err) == (command == "train")


@pytest.mark.parametrize("name", ["demo", "indoor"])
def test_a_shipped_model_has_a_name_unless_a_model_lies_there(
    name, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    done = command("info", name)
    assert done.returncode == 0, done.stderr
    assert "input_size" in done.stdout
    done = command("calibrate", name, "no_bag")
    assert done.returncode == 1
    assert "shipped with the package" in done.stderr


@pytest.fixture
def trainings(monkeypatch):
    """What the command hands to a training, instead of running it."""
    calls = []
    monkeypatch.setattr(
        training_run, "train", lambda *given, **options: calls.append((*given, options))
    )
    return calls


def test_resume_alone_goes_on_with_what_the_training_was_started_with(trainings, tmp_path):
    options = {"method": "mc_dropout", "epochs": 3, "patience": 7}
    begun = {
        "network": {"backbone": "tiny", "input_size": [64, 48]},
        "training": {
            "source": "synthetic:worlds=1,frames=2,seed=0",
            "source_options": {"image_topic": "/left/image", "max_time_difference": 0.2},
            "options": options,
        },
    }
    (tmp_path / "model.json").write_text(json.dumps(begun))
    again = ["train", "--output", str(tmp_path), "--resume"]
    assert main(again) == 0
    assert main([*again, "--epochs", "5", "--image-topic", "/right"]) == 0
    for (source, *_, given), topic in zip(trainings, ("/left/image", "/right"), strict=True):
        read = given["source_options"]
        assert source.name == "synthetic:worlds=1,frames=2,seed=0"
        assert (read.image_topic, read.max_time_difference) == (topic, 0.2)
    (_, _, network, training, _), (*_, changed, _) = trainings
    assert (network.backbone, network.input_size) == ("tiny", (64, 48))
    assert {name: getattr(training, name) for name in options} == options
    assert (changed.epochs, changed.patience) == (5, 7)
    assert main(["train", "--output", str(tmp_path / "new"), "--resume"]) == 1


WORLDS = ["synthetic:worlds=1,frames=2,seed=1", "synthetic:worlds=1,frames=3,seed=2"]


def test_train_reads_several_sources_as_one(trainings, tmp_path):
    assert main(["train", *WORLDS, "--output", str(tmp_path / "model")]) == 0
    ((stream, *_),) = trainings
    assert len(stream) == 5
    assert [part.name for part in stream.parts] == stream.name.split(NAME_SEPARATOR)
    assert [len(part) for part in stream.parts] == [2, 3]


def test_calibrate_leaves_several_sources_apart(monkeypatch, capsys):
    def fit(sources, *others):
        raise ConfigError(f"sources of {[len(source) for source in sources]} frames")

    monkeypatch.setattr(calibration_run, "calibrate", fit)
    assert main(["calibrate", "demo", *WORLDS, "--dry-run"]) == 1
    assert "sources of [2, 3] frames" in capsys.readouterr().err


MISSING = "missing_input"
ENDING_AT_THEIR_INPUT = {
    "train": (MISSING, "--output", "out"),
    "evaluate": (MISSING, "--model", "demo", "--output", "out"),
    "predict": ("image.png", "--model", MISSING, "--output", "out"),
    "calibrate": (MISSING, MISSING),
    "convert": (f"kitti:{MISSING}", "out"),
    "info": (MISSING,),
    "compare": (MISSING, MISSING, "--output", "out"),
    "merge": (MISSING, "--output", "out"),
}
WITHOUT_TORCH = f"""
import os, sys
sys.modules["torch"] = sys.modules["transformers"] = None
from uncertainty_depth.cli.main import main
for name, arguments in {ENDING_AT_THEIR_INPUT}.items():
    print(name, file=sys.stderr)
    main([name, *arguments])
print(os.environ["OMP_WAIT_POLICY"])
"""


def test_a_missing_input_is_told_before_torch_is_imported(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"},
    )
    told = ended.stderr.splitlines()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[-1] == "passive", "waiting threads sleep"
    for name in ENDING_AT_THEIR_INPUT:
        assert MISSING in told[told.index(name) + 1], ended.stderr


TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x9b2J\r\u202e"


def hostile_bag(path):
    with BagWriter(path) as writer:
        writer.image(f"/camera/{TITLE}image", 0, CLEAR, np.zeros((4, 4, 3), np.uint8))
        writer.cloud(f"/lidar/{CLEAR}", 0, TITLE, np.ones((4, 4), np.float32))
    return path


def test_no_name_in_a_bag_reaches_the_terminal_as_a_command(tmp_path, capfd):
    assert main(["info", str(hostile_bag(tmp_path / f"{TITLE}bag"))]) == 1
    out, err = capfd.readouterr()
    assert r"/camera/\x1b]0;owned\x07image" in out
    assert err.startswith("uncertainty-depth: ")
    log = PrintableFormatter().format(logging.makeLogRecord({"msg": "%s", "args": (CLEAR,)}))
    assert not set(f"{out}{err}{log}") & {*"\x1b\x07\x9b\r\u202e"}


def test_a_reader_that_leaves_ends_a_command_without_a_word(tmp_path):
    command = [sys.executable, "-m", "uncertainty_depth", "info"]
    with subprocess.Popen(
        [*command, str(hostile_bag(tmp_path / "bag"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_name_that_the_terminal_cannot_write_is_escaped(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.cloud("/lidar/vorwärts", 0, "lidar", np.ones((4, 4), np.float32))
    result = subprocess.run(
        [sys.executable, "-m", "uncertainty_depth", "info", str(tmp_path / "bag")],
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert rb"/lidar/vorw\xe4rts" in result.stdout
    assert b"Traceback" not in result.stderr


def test_memory_that_ran_out_is_one_sentence(capsys):
    assert exit_code_of("program", lambda: np.empty(2**47, np.uint8), "") == 1
    sentence = capsys.readouterr().err
    assert sentence.startswith("program: no memory is left: Unable to allocate 128. TiB")
    assert sentence.count("\n") == 1
