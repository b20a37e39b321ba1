"""A bag played through both nodes, three processes on one machine, and the account of every frame."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tqdm import tqdm

from uncertainty_depth.data.bag import BagSource
from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.geometry.transforms import parameters_from
from uncertainty_depth.ros.demo.monitor import Monitor

START_S, DRAIN_S, STOP_S = 90.0, 90.0, 60.0
NODES = ("depth_node", "evaluator_node")
SCORES = {
    "abs_rel": "abs_rel",
    "ause/rmse": "AUSE rmse",
    "auce_laplace": "AUCE",
    "coverage_95_laplace": "coverage 95 %",
}
TOPIC = "/evaluator_node/metrics/"
COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"


def live_run(source: BagSource, model: Path, output: Path) -> dict[str, dict[str, int]]:
    """Play a bag at its own pace, show a live line of scores, and leave the evaluator's report in `output`.

    Returns:
        The counters of "player" (messages by topic), "depth_node" and "evaluator_node".

    Raises:
        UncertaintyDepthError: when a process ends before it should; its log is named.
    """
    output.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(
        "FASTDDS_BUILTIN_TRANSPORTS", "LARGE_DATA"
    )  # by default nearly all large best-effort images are lost
    with ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=len(source), unit="frame", desc="live"))
        monitor = stack.enter_context(
            Monitor([TOPIC + name for name in SCORES], lambda it: _show(bar, it))
        )
        nodes = [
            stack.enter_context(
                _process(_node(name, source, model, output), output / f"{name}.log")
            )
            for name in NODES
        ]
        if not monitor.wait_for(
            lambda: all(map(monitor.figures, NODES)) or _ended(nodes), START_S
        ) or _ended(nodes):
            raise UncertaintyDepthError(f"the nodes did not start; see the logs in {output}")
        sent = _play(source, output)
        expected = sent[source.topics.image], sent[source.topics.lidar]
        monitor.wait_for(
            lambda: drained(*map(monitor.counts, NODES), *expected) or _ended(nodes), DRAIN_S
        )
        counts = {"player": sent} | {name: monitor.counts(name) for name in NODES}
    for name, node in zip(NODES, nodes, strict=True):
        if node.returncode:
            raise UncertaintyDepthError(
                f"{name} ended with exit code {node.returncode}; see its log in {output}"
            )
    return counts


def _node(name: str, source: BagSource, model: Path, output: Path) -> list[str]:
    topics = source.topics
    extrinsics = ", ".join(map(repr, parameters_from(source.lidar_to_camera)))
    options = {
        "depth_node": [
            "-p",
            f"model:={model}",
            "-r",
            f"image:={topics.image}",
            "-r",
            f"camera_info:={topics.camera_info}",
        ],
        "evaluator_node": [
            "-p",
            f"output:={output}",
            "-p",
            "overwrite:=true",
            "-p",
            f"lidar_to_camera:=[{extrinsics}]",
            "-r",
            f"lidar/points:={topics.lidar}",
        ],
    }
    return [
        sys.executable,
        "-c",
        COMMAND.format(name),
        "--ros-args",
        "-p",
        "use_sim_time:=true",
        "-p",
        "reliable_input:=true",
        *options[name],
    ]


def _play(source: BagSource, output: Path) -> dict[str, int]:
    """The player runs as a process of its own and says what it sent."""
    account = output / "sent.json"
    arguments = [
        "play",
        source.name,
        "--clock",
        "--wait-for-subscribers",
        "20",
        "--json",
        str(account),
    ]
    command = [sys.executable, "-m", "uncertainty_depth.cli.main", *arguments]
    with (output / "player.log").open("w") as log:
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
            raise UncertaintyDepthError(f"the player failed; see {log.name}")
    return json.loads(account.read_text())["sent"]


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen]:
    """A process that is ended as Ctrl-C does, so that it can write its report."""
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _ended(processes: Sequence[subprocess.Popen]) -> bool:
    return any(process.poll() is not None for process in processes)


def drained(depth: Mapping[str, int], scores: Mapping[str, int], images: int, clouds: int) -> bool:
    """Whether no frame is under way any more.

    Every image sent is processed or dropped, and every prediction made of them is scored, skipped or lost. The one exception: with all
    clouds there, what is still undecided waits for a later one, which will not come; it is decided when the node is stopped.

    Args:
        depth: counters of the depth node.
        scores: counters of the evaluator node.
        images: how many the player sent.
        clouds: how many the player sent.
    """
    lost = scores.get("lost_in_transport", 0)
    settled = (
        scores.get("evaluated", 0)
        + total(scores, "skipped.")
        + total(scores, "dropped.")
        + lost
        + scores.get("undecided", 0)
    )
    return (
        depth.get("received", 0) + depth.get("lost_in_transport", 0) >= images
        and depth.get("processed", 0) + total(depth, "dropped.") >= depth.get("received", 0)
        and scores.get("received.lidar/points", 0) + lost >= clouds
        and settled >= depth.get("processed", 0)
        and scores.get("waiting", 0) == 0
    )


def total(counts: Mapping[str, int], prefix: str) -> int:
    """The sum of the counters whose names start so."""
    return sum(count for name, count in counts.items() if name.startswith(prefix))


def _show(bar: tqdm, monitor: Monitor) -> None:
    bar.n = monitor.counts("evaluator_node").get("evaluated", 0)
    bar.set_postfix_str(
        "  ".join(
            f"{label} {monitor.scores[TOPIC + name]:.3f}"
            for name, label in SCORES.items()
            if TOPIC + name in monitor.scores
        )
    )
