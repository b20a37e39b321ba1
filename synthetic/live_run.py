# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Play a bag through both nodes, in three processes, and count every frame's outcome."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from tqdm import tqdm

from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.core.geometry.transforms import parameters_from
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.ros.evaluator_outputs import ALL_FRAMES

START_S = 300.0
DRAIN_S = 90.0
RATE = "1000"
"""Times the recording's rate: as fast as the depth node answers."""
RESULT = "uncertainty/image_rect"
STOP_S = 300.0
SCORES = {
    "depth.abs_rel": "abs_rel",
    "uncertainty.ause.rmse": "AUSE rmse",
    "uncertainty.auce_laplace": "AUCE",
    "uncertainty.coverage_95_laplace": "coverage 95 %",
}
METRICS = "/evaluator_node/metrics"
COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"


def live_run(
    source: BagSource, model: Path, output: Path, logs: Path
) -> dict[str, dict[str, int]]:
    """Play a bag as fast as the depth node takes its images, and show live scores.

    Args:
        source: the bag.
        model: of the depth node.
        output: folder for the evaluator's report.
        logs: folder for the processes' logs; a report's folder holds nothing else.

    Returns:
        The counters of "player" (messages by topic), "depth_node" and "evaluator_node".

    Raises:
        UncertaintyDepthError: a process ended too early; its log is named.
    """
    logs.mkdir(parents=True, exist_ok=True)
    commands = node_commands(source, model, output)
    with ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=len(source), unit="frame", desc="live"))
        monitor = stack.enter_context(Monitor(METRICS, lambda monitor: _show(bar, monitor)))
        nodes = stack.enter_context(running(commands, logs))

        def is_any_over() -> bool:
            return any(process.poll() is not None for process in nodes.values())

        def is_started() -> bool:
            return all(monitor.values(name) for name in nodes)

        has_result = monitor.wait_for(lambda: is_started() or is_any_over(), START_S)
        if not has_result or is_any_over():
            raise UncertaintyDepthError(f"the nodes did not start; see the logs in {logs}")
        sent = _play(source, logs)
        images = sent[source.topics.image]
        clouds = sent[source.topics.lidars[0]]

        def is_drained() -> bool:
            return drained(
                monitor.counts("depth_node"), monitor.counts("evaluator_node"), images, clouds
            )

        monitor.wait_for(lambda: is_drained() or is_any_over(), DRAIN_S)
        counts = {"player": sent, **{name: monitor.counts(name) for name in nodes}}
    _check_exit_codes(nodes, logs)
    return counts


def _check_exit_codes(nodes: Mapping[str, subprocess.Popen], logs: Path) -> None:
    for name, process in nodes.items():
        if process.returncode:
            raise UncertaintyDepthError(
                f"{name} ended with exit code {process.returncode}; see its log in {logs}"
            )


def node_commands(source: BagSource, model: Path, output: Path) -> dict[str, list[str]]:
    """Return the commands of both nodes, by node, for a bag that is played with its clock."""
    return {
        "depth_node": _node_command("depth_node", *_depth_arguments(source, model)),
        "evaluator_node": _node_command("evaluator_node", *_evaluator_arguments(source, output)),
    }


def _depth_arguments(source: BagSource, model: Path) -> tuple[str, ...]:
    import torch  # takes seconds to import

    device = "cuda" if torch.cuda.is_available() else "cpu"  # auto warns of a CPU, no news here
    return (
        "-p",
        f"model:={model}",
        "-p",
        f"device:={device}",
        "-r",
        f"image:={source.topics.image}",
        "-r",
        f"camera_info:={source.topics.camera_info}",
    )


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
        f"lidar/points:={source.topics.lidars[0]}",
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


def _play(source: BagSource, logs: Path) -> dict[str, int]:
    """Play the bag in a separate process; return the number of messages sent by topic."""
    account = logs / "sent.json"
    arguments = [
        source.name,
        "--clock",
        "--wait-for-subscribers",
        "20",
        "--rate",
        RATE,
        "--wait-for-result",
        RESULT,
        "--json",
        str(account),
    ]
    command = [sys.executable, "-m", "synthetic.player", *arguments]
    with (logs / "player.log").open("w") as log:
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
            raise UncertaintyDepthError(f"the player failed; see {log.name}")
    return json.loads(account.read_text())["sent"]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let processes that start now take SIGINT: a shell's job in the background ignores it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if before is signal.SIG_IGN:
            signal.signal(signal.SIGINT, before)


@contextmanager
def running(
    commands: Mapping[str, Sequence[str]], logs: Path
) -> Iterator[dict[str, subprocess.Popen]]:
    """Run processes, with a log each, and interrupt them at the end as Ctrl-C does.

    All at once: a depth node that waits for the evaluator's report would miss its images.
    """
    processes = {}
    try:
        with _interruptible():
            for name, command in commands.items():
                with (logs / f"{name}.log").open("w") as file:
                    processes[name] = subprocess.Popen(command, stdout=file, stderr=file)
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def drained(depth: Mapping[str, int], scores: Mapping[str, int], images: int, clouds: int) -> bool:
    """Return whether no frame is in flight any more.

    Every image sent is processed or dropped, and every prediction is scored, skipped or lost. Once
    all clouds are received, a frame that still waits needs a later cloud, which does not come; the
    evaluator decides it when it stops.

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


class Monitor:
    """Keeps the latest metrics of all frames and the latest diagnostics of each node.

    A context manager that spins on a thread of its own.
    """

    def __init__(self, metrics_topic: str, changed: Callable[[Monitor], None]) -> None:
        """Subscribe. `changed` is called with this monitor, on its thread, after new scores."""
        self.scores: dict[str, float] = {}
        self._values: dict[str, dict[str, str]] = {}
        self._news = threading.Condition(threading.RLock())
        self._changed = changed
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("monitor", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._node.create_subscription(DiagnosticArray, metrics_topic, self._on_metrics, 10)
        self._thread = threading.Thread(target=self._spin, name="monitor", daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown()
        rclpy.shutdown(context=self._context)
        self._thread.join()

    def values(self, node: str) -> dict[str, str]:
        """Return the latest diagnostics of the node `node`; empty before the first."""
        with self._news:
            return dict(self._values.get(node, {}))

    def counts(self, node: str) -> dict[str, int]:
        """Return the whole numbers among the latest diagnostics of the node `node`."""
        return {name: int(text) for name, text in self.values(node).items() if text.isdigit()}

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Return whether `condition()` holds within `seconds`; checked at each diagnostics."""
        with self._news:
            return self._news.wait_for(condition, seconds)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        with self._news:
            for status in message.status:
                node = status.name.partition(":")[0]
                self._values[node] = {item.key: item.value for item in status.values}
            self._news.notify_all()

    def _on_metrics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.message == ALL_FRAMES:
                self.scores = {item.key: float(item.value) for item in status.values}
                self._changed(self)

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()
