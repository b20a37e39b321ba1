# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Benchmarks: ratios measured in one run.

Sampling against its floor, the node against its network, reading bags, the metrics against their
peers, and training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncertainty_depth.data.source import Source


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

        tables.append(node_bench.run())
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


def run_metrics(is_busy: bool = False) -> str:
    """Time the metrics against their peers, or a frame of them while every core is busy."""
    from uncertainty_depth.bench import busy, metrics

    return busy.table(busy.run()) if is_busy else metrics.table(metrics.run())


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
