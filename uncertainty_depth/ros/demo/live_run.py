# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Play a bag through both nodes, in three processes, and count what happens to every frame."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tqdm import tqdm

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.geometry.transforms import parameters_from
from uncertainty_depth.ros.demo.monitor import Monitor

START_S = 300.0
DRAIN_S = 90.0
STOP_S = 60.0
SCORES = {
    "depth.abs_rel": "abs_rel",
    "uncertainty.ause.rmse": "AUSE rmse",
    "uncertainty.auce_laplace": "AUCE",
    "uncertainty.coverage_95_laplace": "coverage 95 %",
}
METRICS = "/evaluator_node/metrics"
COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"


def live_run(source: BagSource, model: Path, output: Path) -> dict[str, dict[str, int]]:
    """Play a bag at its own pace and show live scores; the evaluator's report goes to `output`.

    Returns:
        The counters of "player" (messages by topic), "depth_node" and "evaluator_node".

    Raises:
        UncertaintyDepthError: a process ended too early; its log is named.
    """
    output.mkdir(parents=True, exist_ok=True)
    commands = node_commands(source, model, output)
    with ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=len(source), unit="frame", desc="live"))
        monitor = stack.enter_context(Monitor(METRICS, lambda monitor: _show(bar, monitor)))
        nodes = {}
        for name, command in commands.items():
            nodes[name] = stack.enter_context(running(command, output / f"{name}.log"))

        def is_any_over() -> bool:
            return any(process.poll() is not None for process in nodes.values())

        def is_started() -> bool:
            return all(monitor.values(name) for name in nodes)

        has_result = monitor.wait_for(lambda: is_started() or is_any_over(), START_S)
        if not has_result or is_any_over():
            raise UncertaintyDepthError(f"the nodes did not start; see the logs in {output}")
        sent = _play(source, output)
        images = sent[source.topics.image]
        clouds = sent[source.topics.lidar]

        def is_drained() -> bool:
            return drained(
                monitor.counts("depth_node"), monitor.counts("evaluator_node"), images, clouds
            )

        monitor.wait_for(lambda: is_drained() or is_any_over(), DRAIN_S)
        counts = {"player": sent, **{name: monitor.counts(name) for name in nodes}}
    _check_exit_codes(nodes, output)
    return counts


def _check_exit_codes(nodes: Mapping[str, subprocess.Popen], output: Path) -> None:
    for name, process in nodes.items():
        if process.returncode:
            raise UncertaintyDepthError(
                f"{name} ended with exit code {process.returncode}; see its log in {output}"
            )


def node_commands(source: BagSource, model: Path, output: Path) -> dict[str, list[str]]:
    """Return the commands of both nodes, by node, for a bag that is played with its clock."""
    return {
        "depth_node": _node_command("depth_node", *_depth_arguments(source, model)),
        "evaluator_node": _node_command("evaluator_node", *_evaluator_arguments(source, output)),
    }


def _depth_arguments(source: BagSource, model: Path) -> tuple[str, ...]:
    image = source.topics.image
    camera_info = source.topics.camera_info
    return "-p", f"model:={model}", "-r", f"image:={image}", "-r", f"camera_info:={camera_info}"


def _evaluator_arguments(source: BagSource, output: Path) -> tuple[str, ...]:
    if source.lidar_to_camera is None:
        raise UncertaintyDepthError(f"{source.name} has no extrinsics; expected /tf_static in it")
    extrinsics = ", ".join(repr(value) for value in parameters_from(source.lidar_to_camera))
    return (
        "-p",
        f"output:={output}",
        "-p",
        "overwrite:=true",
        "-p",
        f"lidar_to_camera:=[{extrinsics}]",
        "-r",
        f"lidar/points:={source.topics.lidar}",
    )


def _node_command(name: str, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        COMMAND.format(name),
        "--ros-args",
        "-p",
        "use_sim_time:=true",
        *arguments,
    ]


def _play(source: BagSource, output: Path) -> dict[str, int]:
    """Play the bag in a process of its own; return the number of messages sent by topic."""
    account = output / "sent.json"
    arguments = [
        "play",
        source.name,
        "--clock",
        "--set",
        "wait_for_subscribers=20",
        "--json",
        str(account),
    ]
    command = [sys.executable, "-m", "uncertainty_depth.cli.main", *arguments]
    with (output / "player.log").open("w") as log:
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
            raise UncertaintyDepthError(f"the player failed; see {log.name}")
    return json.loads(account.read_text())["sent"]


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen]:
    """Run a process and interrupt it at the end as Ctrl-C does: it can write its report."""
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def drained(depth: Mapping[str, int], scores: Mapping[str, int], images: int, clouds: int) -> bool:
    """Return whether no frame is in flight any more.

    Every image sent is processed or dropped, and every prediction is scored, skipped or lost.
    With all clouds received, a frame that still waits does so for a later cloud, which does not
    come; the evaluator decides it when it is stopped.

    Args:
        depth: counters of the depth node.
        scores: counters of the evaluator node.
        images: number of images the player sent.
        clouds: number of clouds the player sent.
    """
    lost = total(scores, "lost_in_transport.")
    settled = (
        scores.get("evaluated", 0)
        + total(scores, "skipped.")
        + total(scores, "dropped.")
        + lost
        + scores.get("waiting", 0)
    )
    return (
        depth.get("received", 0) + depth.get("lost_in_transport.image", 0) >= images
        and depth.get("processed", 0) + total(depth, "dropped.") >= depth.get("received", 0)
        and scores.get("received.lidar/points", 0) + lost >= clouds
        and settled >= depth.get("processed", 0)
    )


def total(counts: Mapping[str, int], prefix: str) -> int:
    """Return the sum of the counters whose names start with `prefix`."""
    return sum(count for name, count in counts.items() if name.startswith(prefix))


def _show(bar: tqdm, monitor: Monitor) -> None:
    bar.n = monitor.counts("evaluator_node").get("evaluated", 0)
    scores = [
        f"{label} {monitor.scores[name]:.3f}"
        for name, label in SCORES.items()
        if name in monitor.scores
    ]
    bar.set_postfix_str("  ".join(scores))
