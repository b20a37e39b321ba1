# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `view` command: frames, sigma, errors and scores over time in rerun."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from uncertainty_depth.cli.evaluate import job_of
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.options import from_arguments
from uncertainty_depth.viewing.config import ViewConfig

if TYPE_CHECKING:
    from uncertainty_depth.records import Frame
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.viewing.recorder import Recorder


def view(arguments: argparse.Namespace) -> None:
    """Show a bag, a report, predictions, or what is published now, in the viewer rerun."""
    from uncertainty_depth.viewing.recorder import Recorder

    if arguments.live == bool(arguments.source):
        raise ConfigError(
            f"source is {arguments.source!r} and live is {arguments.live}; expected a source, or "
            "--live for what is published now"
        )
    with closing(Recorder(from_arguments(ViewConfig, arguments), arguments.save)) as recorder:
        count = _live(arguments, recorder) if arguments.live else _recorded(arguments, recorder)
    target = f"; {arguments.save}" if arguments.save else ""
    print(f"{count} frames shown{target}")


def _live(arguments: argparse.Namespace, recorder: Recorder) -> int:
    from uncertainty_depth.ros.requirements import require_ros

    require_ros()
    from uncertainty_depth.ros.live_view import view_live

    recorder.note("live: `depth_node` and `evaluator_node`, as they publish")
    return view_live(recorder, arguments.image_topic or "image")


def _recorded(arguments: argparse.Namespace, recorder: Recorder) -> int:
    """Show every frame; the first Ctrl-C stops after the current frame."""
    from uncertainty_depth.report.evaluation import Evaluation

    evaluation = Evaluation(from_arguments(EvaluationConfig, arguments))
    count = 0
    with deferred_interrupt() as interrupt:
        for frame, scores in _scored(arguments, evaluation):
            recorder.add(frame, scores)
            count += 1
            if interrupt.requested:
                break
    recorder.note(_notes(arguments.source, evaluation))
    return count


def _scored(
    arguments: argparse.Namespace, evaluation: Evaluation
) -> Iterator[tuple[Frame, dict[str, float]]]:
    """Return the frames with their scores, of a report or of a source."""
    from uncertainty_depth.report.model_facts import law_of
    from uncertainty_depth.scoring import open_frames
    from uncertainty_depth.viewing import sources

    if sources.is_report(Path(arguments.source)):
        return sources.report_frames(Path(arguments.source))
    job = job_of(arguments, arguments.source)
    job.check()
    opened = open_frames(job)
    return sources.scored_frames(opened.frames, evaluation, law_of(opened.describe()))


def _notes(source: str, evaluation: Evaluation) -> str:
    """Return notes as Markdown: the source, and the skipped frames by reason."""
    lines = [f"**{source}**", ""]
    for reason, count in evaluation.skipped.most_common():
        lines.append(f"- {count} frames not scored ({reason}): {evaluation.first_skips[reason]}")
    return "\n".join(lines)
