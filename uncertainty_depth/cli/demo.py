# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The whole system on one machine: a bag of unseen worlds, three processes on real ROS 2, and the same bag scored offline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth.config import (
    EvaluationConfig,
    PredictorConfig,
    SourceConfig,
    SynthesisConfig,
)
from uncertainty_depth.data.bag import BagSource
from uncertainty_depth.data.source import trained_on
from uncertainty_depth.evaluation import report
from uncertainty_depth.evaluation.evaluate import evaluate
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.verdict import sentences
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.ros.requirements import require_ros
from uncertainty_depth.synthetic.source import synthesize

MODEL = Path(__file__).parents[1] / "models" / "demo"
WORLD = SynthesisConfig(
    worlds=4, frames=15, seed=20_000, test_objects=True, rate=2.0
)  # seeds this high are never trained on
PREDICTIONS = "received.depth/image_rect"
SHOWN = (
    "depth.abs_rel",
    "depth.rmse",
    "uncertainty.ause.abs_rel",
    "uncertainty.ause.rmse",
    "uncertainty.ause.a1",
    "uncertainty.auce_laplace",
    "uncertainty.coverage_95_laplace",
    "uncertainty.n_merci",
    "uncertainty.n_merci_withdrawn",
)


def run(output: Path) -> Iterator[str]:
    """Run everything under `output` and yield, line by line, what a person should read.

    Raises:
        RosMissingError: without ROS 2.
        UncertaintyDepthError: when a node ends before it should.
    """
    require_ros()
    from uncertainty_depth.ros.demo.live_run import live_run

    source = BagSource(make_bag(output / "bag"), SourceConfig())
    yield f"{source.name}: {len(source)} frames of {WORLD.worlds} worlds the model has not seen, with a class of objects it has never seen"
    counts = live_run(source, MODEL, output / "live")
    evaluate_offline(source, output / "offline")
    live, offline = (
        json.loads((output / name / "summary.json").read_text()) for name in ("live", "offline")
    )
    yield from account(counts, source.topics.image, live)
    yield from side_by_side(live, offline)
    yield from ["", *sentences(offline["verdict"]), ""]
    yield f"pictures and reports: {output / 'live' / 'report.html'}, {output / 'offline' / 'report.html'}"


def make_bag(bag: Path) -> Path:
    """The demo's worlds as a bag; one that is there already is used again."""
    bag.parent.mkdir(parents=True, exist_ok=True)
    if not (bag / "metadata.yaml").exists():
        synthesize(bag, WORLD)
    return bag


def evaluate_offline(source: BagSource, folder: Path) -> None:
    """What `uncertainty-depth evaluate BAG` does."""
    predictor = Predictor(MODEL, PredictorConfig())
    evaluation = evaluate(source, predictor, EvaluationConfig())
    if evaluation.interrupted:  # half a bag is nothing to compare the live run with
        raise KeyboardInterrupt
    seen = trained_on(predictor.model.name, predictor.model.training, [source.name])
    report.write(
        evaluation,
        folder,
        report.Context(
            source.name, predictor.describe(), tuple(source.notes), trained_on=tuple(seen)
        ),
    )


def account(
    counts: Mapping[str, Mapping[str, int]], image: str, live: Mapping[str, Any]
) -> Iterator[str]:
    """Where every camera image went: sent, received or lost, processed or dropped, scored or skipped; and what none of these explains."""
    sent = counts["player"][image]
    depth = counts["depth_node"]
    scores = counts["evaluator_node"]
    frames = live["frames"]
    lost = depth.get("lost_in_transport", 0)
    dropped = _dropped(depth)
    received = depth.get("received", 0)
    processed = depth.get("processed", 0)
    yield f"sent by the player: {sent} images"
    yield f"depth node: {received} received{_reasons({'lost_in_transport': lost, 'unaccounted': sent - received - lost})}"
    yield f"depth node: {processed} processed{_reasons(dropped | {'unaccounted': received - processed - sum(dropped.values())})}"
    arrived = scores.get(PREDICTIONS, 0)
    messages = _dropped(scores) | {"lost_in_transport": scores.get("lost_in_transport", 0)}
    yield f"evaluator node: {arrived} predictions received{_reasons({'unaccounted': processed - arrived})}"
    yield f"evaluator node: messages of all topics lost: {_reasons(messages).removeprefix(', ') or 'none'}"
    unaccounted = arrived - frames["evaluated"] - sum(frames["skipped"].values())
    yield f"evaluator node: {frames['evaluated']} scored{_reasons(frames['skipped'] | {'unaccounted': unaccounted})}"


def side_by_side(live: Mapping[str, Any], offline: Mapping[str, Any]) -> Iterator[str]:
    """The main figures of both runs."""
    yield f"\n{'':30}{'live':>12}{'offline':>12}"
    yield f"{'frames':30}{live['frames']['evaluated']:12}{offline['frames']['evaluated']:12}"
    left = flatten(live)
    right = flatten(offline)
    for name in SHOWN:
        yield f"{name:30}{left[name]:12.6f}{right[name]:12.6f}"


def _reasons(counts: Mapping[str, int]) -> str:
    return "".join(f", {count} {reason}" for reason, count in counts.items() if count)


def _dropped(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name.startswith("dropped.")}
