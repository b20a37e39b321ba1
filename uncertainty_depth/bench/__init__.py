# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Benchmarks: ratios measured in one run.

Each is imported when it is run: the command line reads their names and descriptions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncertainty_depth.data.source import Source


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes:
        title: heading of its tables.
        description: one line for the command line's help.
        run: returns its tables as Markdown; raises `RosMissingError` where it needs ROS 2.
    """

    title: str
    description: str
    run: Callable[[], str]


def run_network() -> str:
    """Time sampling against eight whole passes and against its floor.

    And the node against the network, where ROS 2 is installed.
    """
    from uncertainty_depth.bench import network
    from uncertainty_depth.ros.requirements import RosMissingError, require_ros

    tables = [network.table(network.run())]
    try:
        require_ros()
        from uncertainty_depth.ros.bench import node_bench

        tables.append(node_bench.table(node_bench.run()))
    except RosMissingError as error:
        tables.append(f"the node is not measured: {error}")
    return "\n\n".join(tables)


def run_reading(source: Source) -> str:
    """Time reading, projecting and scoring a source, without a network."""
    from uncertainty_depth.bench import reading

    return reading.table(source.name, reading.run(source))


def run_overlap(source: Source) -> str:
    """Time `evaluate` of the shipped model, overlapped and part by part."""
    from uncertainty_depth.bench import overlap
    from uncertainty_depth.inference.predictor import Predictor
    from uncertainty_depth.shipped_model import SHIPPED_MODEL

    return overlap.table(source.name, overlap.run(source, Predictor(SHIPPED_MODEL)))


def run_training() -> str:
    """Time several networks trained at once against one after the other."""
    from uncertainty_depth.bench import training

    return training.table(training.run())


def run_metrics() -> str:
    """Time the metrics against their peers."""
    from uncertainty_depth.bench import metrics

    return metrics.table(metrics.run())


def run_busy() -> str:
    """Time the metrics of a frame, alone and while every core is busy."""
    from uncertainty_depth.bench import busy

    return busy.table(busy.run())


def run_startup() -> str:
    """Time what each command takes until it looks at its input."""
    from uncertainty_depth.bench import startup

    return startup.table(startup.run())


def run_engines() -> str:
    """Time the engines against torch, whole passes and the floor of each."""
    from uncertainty_depth.bench import engines

    return engines.table(engines.run())


def run_budget() -> str:
    """Compare all samples with those that fit into a budget, under a second busy process."""
    from uncertainty_depth.bench import budget

    return budget.table(budget.run())


def run_cameras() -> str:
    """Time a batch of several cameras' images against one by one.

    And the memory of one node against one each, where ROS 2 is installed.
    """
    from uncertainty_depth.bench import cameras
    from uncertainty_depth.ros.requirements import RosMissingError, require_ros

    tables = [cameras.table(cameras.run())]
    try:
        require_ros()
        from uncertainty_depth.ros.bench import camera_memory

        tables.append(camera_memory.table(camera_memory.run()))
    except RosMissingError as error:
        tables.append(f"the memory of the nodes is not measured: {error}")
    return "\n\n".join(tables)


def run_delivery() -> str:
    """Return what ROS delivers of a camera's images, by transport and reliability.

    Raises:
        RosMissingError: ROS 2 is not installed.
    """
    from uncertainty_depth.ros.requirements import require_ros

    require_ros()
    from uncertainty_depth.ros.bench import delivery

    return delivery.table(delivery.run())


def run_services() -> str:
    """Return how soon the depth node answers services while a camera publishes at 200 Hz.

    Raises:
        RosMissingError: ROS 2 is not installed.
        UncertaintyDepthError: the node does not start, or does not answer.
    """
    from uncertainty_depth.ros.requirements import require_ros

    require_ros()
    from uncertainty_depth.ros.bench import services

    return services.table(services.run())


BENCHMARKS = {
    "network": Benchmark(
        "Sampling, and the node",
        "measure sampling against its floor, and the node against its network (the default)",
        run_network,
    ),
    "engines": Benchmark(
        "Engines",
        "measure the installed engines: eight samples against one pass of torch",
        run_engines,
    ),
    "budget": Benchmark(
        "A budget beside a busy process",
        "measure frame_budget_ms beside a busy process: frames over it, and quality",
        run_budget,
    ),
    "cameras": Benchmark(
        "Several cameras",
        "measure a batch of several cameras' images against one by one, and the memory of one "
        "node for all against one each",
        run_cameras,
    ),
    "metrics": Benchmark(
        "Metrics and their peers",
        "measure the metrics against those of other libraries",
        run_metrics,
    ),
    "busy": Benchmark(
        "Scoring a frame while every core is busy",
        "time the metrics of a frame of 20,000 pixels, alone and while every core is busy",
        run_busy,
    ),
    "startup": Benchmark(
        "Start-up",
        "measure what each command takes until it looks at its input",
        run_startup,
    ),
    "training": Benchmark(
        "Training several networks at once",
        "measure training: networks of an ensemble in parallel and in sequence",
        run_training,
    ),
    "delivery": Benchmark(
        "Delivery of images",
        "images delivered between two ROS processes, by transport",
        run_delivery,
    ),
    "services": Benchmark(
        "Services beside a camera",
        "how soon the depth node answers services beside a camera at 200 Hz",
        run_services,
    ),
}
