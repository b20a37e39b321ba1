# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Experiments are found by name, run, resumed after a kill, and their results tabled."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import tables
from experiments.__main__ import main
from experiments.registry import EXPERIMENTS
from experiments.runner import resume
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


@pytest.fixture
def run(tmp_path):
    """Run pieces with these settings; return the names of those computed, and all results."""

    def run(names, settings, killed_at=None):
        computed = []

        def compute(name):
            if name == killed_at:
                raise KeyboardInterrupt
            computed.append(name)
            return {"name": name, "values": np.array([1.0, np.nan])}

        return computed, resume(tmp_path, names, settings, compute, "")

    return run


def test_a_killed_run_goes_on_where_it_stopped(run):
    names = ["a", "b", "c"]
    with pytest.raises(KeyboardInterrupt):
        run(names, {"n": 1}, killed_at="c")
    computed, results = run(names, {"n": 1})
    assert computed == ["c"]
    assert [result["name"] for result in results] == names
    assert [result["values"] for result in results] == 3 * [[1.0, None]], "fresh and resumed alike"


def test_other_settings_are_computed_again_and_may_differ_from_name_to_name(run):
    run(["a", "b"], lambda name: {"n": (1, name)})
    assert run(["a", "b"], lambda name: {"n": (1, name)})[0] == []
    assert run(["a", "b"], lambda name: {"n": (1, name.replace("b", "other"))})[0] == ["b"]
    run(["a"], {"n": (1, 2)})
    assert run(["a"], {"n": (1, 3)})[0] == ["a"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"settings": {}}'])
def test_a_damaged_piece_is_computed_again(run, tmp_path, damage):
    run(["a"], {"n": 1})
    (tmp_path / "a.json").write_text(damage)
    assert run(["a"], {"n": 1})[0] == ["a"]


def test_spread_counts_what_is_not_finite():
    assert tables.spread(range(101), 0) == "50 (5 to 95)"
    assert tables.spread([1.0, np.nan]) == "1.00 (1.00 to 1.00), 1 not finite"
    assert tables.spread([np.nan]) == "none finite"
    assert tables.mean_and_deviation([0.2, 0.4]) == "0.300 ± 0.141"
    assert tables.mean_and_deviation([0.2, np.nan, 0.4, np.inf]) == "0.300 ± 0.141, 2 not finite"
    assert tables.mean_and_deviation([np.nan]) == "none finite"


def test_tables(tmp_path):
    assert tables.markdown(["a", "b"], [[1, "x"]]) == "| a | b |\n| --- | --- |\n| 1 | x |\n"
    tables.write_table(tmp_path / "t.csv", ["a"], [["x, y"]])
    assert (tmp_path / "t.csv").read_text() == 'a\n"x, y"\n'
