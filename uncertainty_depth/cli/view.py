# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `view` command: frames, sigma, errors and scores over time in rerun."""

from __future__ import annotations

import argparse
from contextlib import closing

from uncertainty_depth.cli.evaluate import job_of
from uncertainty_depth.config import ColorConfig
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.notes import warn
from uncertainty_depth.options import from_arguments


def view(arguments: argparse.Namespace) -> None:
    """Show the frames of a source with depth, sigma, errors and scores in the viewer rerun."""
    from uncertainty_depth.records import Skipped
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.model_facts import law_of
    from uncertainty_depth.scoring import open_frames
    from uncertainty_depth.viewing import Recorder, scores_of

    job = job_of(arguments, arguments.source)
    job.check()
    evaluation = Evaluation(job.evaluation)
    count = 0
    with (
        closing(Recorder(from_arguments(ColorConfig, arguments), arguments.save)) as recorder,
        deferred_interrupt() as interrupt,
    ):
        opened = open_frames(job)
        law = law_of(opened.describe())
        for record in opened.frames:
            if isinstance(record, Skipped):
                evaluation.skip(record)
            else:
                recorder.add(record, scores_of(evaluation.add(record) or {}, law))
                count += 1
            if interrupt.requested:
                break
    for reason, skipped in evaluation.skipped.most_common():
        warn([f"{skipped} frames not scored ({reason}): {evaluation.first_skips[reason]}"])
    print(f"{count} frames shown{f'; {arguments.save}' if arguments.save else ''}")
