# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.__main__ import main
from experiments.registry import EXPERIMENTS
from uncertainty_depth.core.errors import ConfigError


def test_every_registered_experiment_can_be_run(tmp_path, monkeypatch):
    for name, experiment in EXPERIMENTS.items():
        module = __import__(f"experiments.{experiment.module}", fromlist=["run"])
        called = []
        monkeypatch.setattr(
            module, "run", lambda *arguments, called=called: called.append(arguments)
        )
        experiment.run(tmp_path / name)
        experiment.run(str(tmp_path / name), quick=True)
        experiment.run(tmp_path / name, seeds=7)
        assert called == [
            (tmp_path / name, experiment.seeds, False),
            (tmp_path / name, experiment.quick_seeds, True),
            (tmp_path / name, 7, False),
        ]


def test_a_data_folder_goes_to_the_experiment_that_reads_one_and_is_refused_elsewhere(
    tmp_path, monkeypatch
):
    called = []
    monkeypatch.setattr("experiments.nyu.run", lambda *arguments: called.append(arguments))
    EXPERIMENTS["nyu"].run(tmp_path, 2, True, Path("somewhere"))
    assert called == [(tmp_path, 2, True, Path("somewhere"))]
    with pytest.raises(
        ConfigError, match="data is somewhere, but this experiment generates its data"
    ):
        EXPERIMENTS["toy-cubic"].run(tmp_path, data=Path("somewhere"))


def test_names_are_known_without_torch():
    module = "experiments.registry"
    code = f"import sys; import {module}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unwritable_folder_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["toy-cubic", "--output", str(tmp_path / "file"), "--quick"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("experiments: ")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_table_of_a_quick_run_says_that_it_supports_no_claim(tmp_path, monkeypatch):
    def run(output, seeds, quick):
        (output / "table.md").write_text("| a |\n")

    monkeypatch.setattr("experiments.toy_cubic.run", run)
    EXPERIMENTS["toy-cubic"].run(tmp_path, quick=True)
    first, _, rest = (tmp_path / "table.md").read_text().partition("\n\n")
    assert first == "**Quick run, repetitions: 4. Its numbers support no claim.**"
    assert rest == "| a |\n"
    EXPERIMENTS["toy-cubic"].run(tmp_path)
    assert (tmp_path / "table.md").read_text() == "| a |\n"
