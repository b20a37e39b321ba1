# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the demo: render a bag, play it through both nodes, and score it offline too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from synthetic.config import SynthesisConfig
from synthetic.source import synthesize
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report import report
from uncertainty_depth.report.saved_state import read_summary
from uncertainty_depth.report.verdict import sentences
from uncertainty_depth.ros.main import require_ros
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.scoring import score

WORLD = SynthesisConfig(
    worlds=24, frames=4, seed=20_000, test_objects=True, rate=2.0
)  # seeds this high are never trained on; many places decide a verdict, not many frames
PREDICTIONS = "received.depth/image_rect"
COMPARED_METRICS = (
    "depth.abs_rel",
    "depth.rmse",
    "depth.a1",
    "uncertainty.ause.abs_rel",
    "uncertainty.ause.rmse",
    "uncertainty.ause.a1",
    "uncertainty.auce_laplace",
    "uncertainty.coverage_95_laplace",
    "uncertainty.n_merci",
)


def run(output: Path) -> Iterator[str]:
    """Run everything under `output` and yield the lines to print.

    Raises:
        RosMissingError: without ROS 2.
        UncertaintyDepthError: when a node ends before it should.
    """
    require_ros()
    from synthetic.live_run import live_run

    source = BagSource(make_bag(output / "bag"), SourceConfig())
    yield (
        f"{source.name}: {len(source)} frames of {WORLD.worlds} worlds the model has not seen, "
        "with a class of objects it has never seen"
    )
    counts = live_run(source, SHIPPED_MODEL, output / "live", output / "logs")
    evaluate_offline(source, output / "offline")
    evaluate_offline(source, output / "motion", measurements="motion")
    live, offline, motion = (read_summary(output / it) for it in ("live", "offline", "motion"))
    yield from account(counts, source.topics.image, live)
    yield from side_by_side({"live": live, "offline": offline, "and motion": motion})
    yield "and motion: offline with --measurements motion, by the robot's odometry"
    yield from ["", *sentences(offline["verdict"]), ""]
    yield from next_steps(output)


def next_steps(output: Path) -> Iterator[str]:
    """Yield where the pictures are, and the commands that one wants next."""
    programs = os.path.relpath(Path(sys.executable).parent)
    yield f"pictures: {output / 'offline' / 'report.html'}; the live run's: {output / 'live'}"
    yield f"your bag:     {programs}/uncertainty-depth evaluate MY_BAG --model indoor -o report"
    yield f"your network: {programs}/uncertainty-depth evaluate MY_BAG --model ORG/NAME -o report"
    yield "              ORG/NAME of Hugging Face, or FOLDER/MODULE:CLASS, your Python class"
    yield (
        f"your robot:   {programs}/depth_node --ros-args -p model:=indoor -r image:=/MY/image_raw "
        "-r camera_info:=/MY/camera_info"
    )


def make_bag(bag: Path) -> Path:
    """Render the demo's worlds into a bag, unless it exists."""
    bag.parent.mkdir(parents=True, exist_ok=True)
    if not (bag / "metadata.yaml").exists():
        synthesize(bag, WORLD)
    return bag


def evaluate_offline(source: BagSource, folder: Path, measurements: str = "") -> None:
    """Evaluate the bag as `uncertainty-depth evaluate` does."""
    predictor = PredictorConfig(measurements=measurements)
    job = Job(sources=(source.name,), model=str(SHIPPED_MODEL), predictor=predictor)
    evaluation, context = score(job)
    if evaluation.interrupted:  # half a bag is nothing to compare the live run with
        raise KeyboardInterrupt
    report.write(evaluation, folder, context)


def account(
    counts: Mapping[str, Mapping[str, int]], image: str, live: Mapping[str, Any]
) -> Iterator[str]:
    """Yield how many images were sent, lost, processed, dropped, scored and skipped.

    What none of the counts explains is shown as unaccounted.
    """
    sent = counts["player"][image]
    yield f"sent by the player: {sent} images"

    depth = counts["depth_node"]
    received = depth.get("received", 0)
    lost = depth.get("lost_in_transport.image", 0)
    missing = {"lost_in_transport": lost, "unaccounted": sent - received - lost}
    yield f"depth node: {received} received{_reasons(missing)}"

    processed = depth.get("processed", 0)
    dropped = _dropped(depth)
    unaccounted = received - processed - sum(dropped.values())
    yield f"depth node: {processed} processed{_reasons(dropped | {'unaccounted': unaccounted})}"

    scores = counts["evaluator_node"]
    predictions = scores.get(PREDICTIONS, 0)
    missing = {"unaccounted": processed - predictions}
    yield f"evaluator node: {predictions} predictions received{_reasons(missing)}"
    lost = sum(count for name, count in scores.items() if name.startswith("lost_in_transport."))
    losses = _dropped(scores) | {"lost_in_transport": lost}
    summary = _reasons(losses).removeprefix(", ") or "none"
    yield f"evaluator node: messages of all topics lost: {summary}"

    evaluated = live["frames"]["evaluated"]
    skipped = live["frames"]["skipped"]
    unaccounted = predictions - evaluated - sum(skipped.values())
    reasons = skipped | {"unaccounted": unaccounted}
    yield f"evaluator node: {evaluated} scored{_reasons(reasons)}"


def side_by_side(summaries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of the main metrics of runs, by the runs' names."""
    yield f"\n{'':30}" + "".join(f"{name:>12}" for name in summaries)
    counts = [summary["frames"]["evaluated"] for summary in summaries.values()]
    yield f"{'frames':30}" + "".join(f"{count:12}" for count in counts)
    rows = [flatten(summary) for summary in summaries.values()]
    for name in COMPARED_METRICS:
        yield f"{name:30}" + "".join(f"{row[name]:12.6f}" for row in rows)


def _reasons(counts: Mapping[str, int]) -> str:
    return "".join(f", {count} {reason}" for reason, count in counts.items() if count)


def _dropped(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name.startswith("dropped.")}
