# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands bench, experiment, demo and soak."""

from __future__ import annotations

import argparse

from uncertainty_depth.bench import BENCHMARKS, Benchmark
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.ros.requirements import RosMissingError
from uncertainty_depth.shipped_model import model_path


def bench(arguments: argparse.Namespace) -> None:
    """Measure speed: network and node, or what options name; and reading of sources."""
    from uncertainty_depth.bench import run_overlap, run_reading
    from uncertainty_depth.data.source import open_source

    sources = [open_source(source, SourceConfig()) for source in arguments.source]
    for name in _benchmarks(arguments):
        benchmark = BENCHMARKS[name]
        print(f"## {benchmark.title}\n\n{_tables(benchmark, arguments.all)}\n", flush=True)
    for source in sources:
        if arguments.all or not arguments.overlap:
            print(run_reading(source) + "\n")
        if arguments.all or arguments.overlap:
            print(run_overlap(source) + "\n")


def _benchmarks(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the benchmarks that the options ask for."""
    if arguments.all:
        return list(BENCHMARKS)
    names = [name for name in BENCHMARKS if getattr(arguments, name)]
    if arguments.busy and arguments.metrics:
        names.remove("metrics")  # --metrics --busy is the frame alone
    return names or ([] if arguments.overlap else ["network"])


def _tables(benchmark: Benchmark, is_optional: bool) -> str:
    """Return a benchmark's tables; one that needs ROS 2 may be left out where it is optional."""
    try:
        return benchmark.run()
    except RosMissingError as error:
        if not is_optional:
            raise
        return f"not measured: {error}"


def experiment(arguments: argparse.Namespace) -> None:
    """Repeat an experiment of the papers; a run that was killed resumes where it stopped."""
    EXPERIMENTS[arguments.name].run(
        arguments.output, arguments.seeds, arguments.quick, arguments.data
    )
    print(f"results in {arguments.output}")


def demo(arguments: argparse.Namespace) -> None:
    """Play a synthetic bag through depth node and evaluator node, and print the scores."""
    from uncertainty_depth.cli.demo import run

    for line in run(arguments.output):
        print(line)


def soak(arguments: argparse.Namespace) -> None:
    """Run the whole graph for some minutes; fail where memory, threads or descriptors grow."""
    from uncertainty_depth.ros.requirements import require_ros

    require_ros()
    from uncertainty_depth.ros.soak.run import run

    for line in run(arguments.minutes, model_path(arguments.model), arguments.output):
        print(line)
