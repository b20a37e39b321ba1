# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import numpy as np
import pytest

from experiments import tables
from experiments.runner import resume


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
