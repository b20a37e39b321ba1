# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The options of bench choose what is measured; nothing is measured here."""

from __future__ import annotations

from functools import partial

import pytest

from uncertainty_depth import bench
from uncertainty_depth.cli.main import main
from uncertainty_depth.ros.requirements import RosMissingError


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the benchmarks that are run; services need a ROS that is missing."""
    names: list[str] = []

    def run(name: str) -> str:
        names.append(name)
        if name == "services":
            raise RosMissingError("rclpy is missing")
        return f"table of {name}"

    for name, benchmark in list(bench.BENCHMARKS.items()):
        fake = bench.Benchmark(benchmark.title, "", partial(run, name))
        monkeypatch.setitem(bench.BENCHMARKS, name, fake)
    return names


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["network"]),
        (["--engines", "--startup"], ["engines", "startup"]),
        (["--metrics"], ["metrics"]),
        (["--metrics", "--busy"], ["busy"]),
    ],
)
def test_options_choose_the_benchmarks(ran, options, expected, capsys):
    assert main(["bench", *options]) == 0
    assert ran == expected
    printed = capsys.readouterr().out
    for name in expected:
        assert f"## {bench.BENCHMARKS[name].title}\n\ntable of {name}\n" in printed


def test_bench_all_skips_ros_benchmarks_without_ros(ran, capsys):
    assert main(["bench", "--all"]) == 0
    assert ran == list(bench.BENCHMARKS)
    assert "not measured: rclpy is missing" in capsys.readouterr().out


def test_a_ros_benchmark_is_refused_without_ros(ran, capsys):
    assert main(["bench", "--services"]) != 0
    assert "rclpy is missing" in capsys.readouterr().err
