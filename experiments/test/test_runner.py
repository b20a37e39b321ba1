# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import numpy as np
import pytest

from experiments import tables
from experiments.runner import resume


class Counter:
    def __init__(self, fail_at=None):
        self.names = []
        self.fail_at = fail_at

    def __call__(self, name):
        if name == self.fail_at:
            raise KeyboardInterrupt
        self.names.append(name)
        return {"name": name, "values": np.array([1.0, np.nan])}


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    names = ["a", "b", "c"]
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path, names, {"n": 1}, Counter(fail_at="c"), "")
    again = Counter()
    results = resume(tmp_path, names, {"n": 1}, again, "")
    assert again.names == ["c"]
    assert [result["name"] for result in results] == names
    assert results[0]["values"] == [1.0, None]


def test_fresh_and_resumed_results_are_the_same(tmp_path):
    first = resume(tmp_path, ["a"], {"n": 1}, Counter(), "")
    assert resume(tmp_path, ["a"], {"n": 1}, Counter(fail_at="a"), "") == first


def test_other_settings_are_computed_again(tmp_path):
    resume(tmp_path, ["a"], {"n": (1, 2)}, Counter(), "")
    same = Counter()
    other = Counter()
    resume(tmp_path, ["a"], {"n": (1, 2)}, same, "")
    resume(tmp_path, ["a"], {"n": (1, 3)}, other, "")
    assert (same.names, other.names) == ([], ["a"])


def test_settings_may_differ_from_name_to_name(tmp_path):
    resume(tmp_path, ["a", "b"], lambda name: {"n": name}, Counter(), "")
    again = Counter()
    resume(tmp_path, ["a", "b"], lambda name: {"n": name.replace("b", "other")}, again, "")
    assert again.names == ["b"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"settings": {}}'])
def test_a_damaged_piece_is_computed_again(tmp_path, damage):
    resume(tmp_path, ["a"], {"n": 1}, Counter(), "")
    (tmp_path / "a.json").write_text(damage)
    again = Counter()
    resume(tmp_path, ["a"], {"n": 1}, again, "")
    assert again.names == ["a"]


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
