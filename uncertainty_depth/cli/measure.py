# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands bench, experiment, demo and soak."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.experiments.registry import EXPERIMENTS
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    pass


def bench(arguments: argparse.Namespace) -> None:
    """Measure speed: network and node, or what an option names; and reading of sources."""
    from uncertainty_depth import bench as benchmarks
    from uncertainty_depth.data.source import open_source

    runs = {
        "training": benchmarks.run_training,
        "delivery": benchmarks.run_delivery,
        "services": benchmarks.run_services,
        "budget": benchmarks.run_budget,
        "cameras": benchmarks.run_cameras,
        "engines": benchmarks.run_engines,
        "startup": benchmarks.run_startup,
    }
    sources = [open_source(source, SourceConfig()) for source in arguments.source]
    benchmark_runs = [run for name, run in runs.items() if getattr(arguments, name)]
    if arguments.metrics:
        print(benchmarks.run_metrics(arguments.busy))
    elif not (benchmark_runs or arguments.overlap):
        benchmark_runs = [benchmarks.run_network]
    for run in benchmark_runs:
        print(run())
    run_source = benchmarks.run_overlap if arguments.overlap else benchmarks.run_reading
    for source in sources:
        print("\n" + run_source(source))


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
