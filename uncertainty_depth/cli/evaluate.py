# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands that score and read reports back: `evaluate`, `compare`, `merge` and `view`.

`evaluate` scores one source in this process. Several are scored in workers of their own, and
merged.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from uncertainty_depth.cli.jobs import job_of
from uncertainty_depth.core.config import ColorConfig, RequirementConfig
from uncertainty_depth.core.errors import ConfigError, RequirementError, SourceError, warn
from uncertainty_depth.core.interrupt import deferred_interrupt
from uncertainty_depth.core.options import from_arguments
from uncertainty_depth.core.output import NewFolder, OutputFile, check_apart

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.fleet import FleetSource
    from uncertainty_depth.report.report import Context
    from uncertainty_depth.report.requirements import Requirement
    from uncertainty_depth.stream.job import Job

logger = logging.getLogger(__name__)
MAX_MERGED_FRAMES = 200_000
MAX_NAMED_FAILURES = 3


def evaluate(arguments: argparse.Namespace) -> None:
    """Score depth and sigma against LiDAR, and write a report that begins with a verdict."""
    from uncertainty_depth.report import report
    from uncertainty_depth.report.requirements import check_judged, requirements_of

    is_fleet = len(arguments.source) > 1 or bool(arguments.ray)  # continues what it began
    jobs = [job_of(arguments, [source]) for source in arguments.source]
    inputs = [*chain.from_iterable(job.inputs() for job in jobs)]
    report.check_output(arguments.output, arguments.overwrite or is_fleet, inputs)
    check_apart([*report.files_of(arguments.output), arguments.junit, arguments.write_bag])
    if arguments.junit:
        OutputFile(arguments.junit).check(inputs)
    if arguments.write_bag:
        NewFolder(arguments.write_bag).check(inputs)
    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    for job in jobs:
        job.check(arguments.write_bag)
        check_judged(requirements, job.sigma_kind)
    if is_fleet:
        _evaluate_each(jobs, arguments, requirements)
    else:
        _evaluate_one(jobs[0], arguments, requirements)


def _evaluate_one(
    job: Job, arguments: argparse.Namespace, requirements: tuple[Requirement, ...]
) -> None:
    from uncertainty_depth.report.page import scored_maps
    from uncertainty_depth.stream.scoring import score

    with deferred_interrupt():  # also while the report is written
        evaluation, context = score(job, arguments.command_line, arguments.write_bag)
        context = replace(context, requirements=requirements)
        print(f"scored: {context.model['method']}, {scored_maps(context.model)}")
        scores = write_and_print(evaluation, arguments.output, context)
    check_requirements(scores, arguments.junit)
    if evaluation.interrupted:
        raise KeyboardInterrupt
    if not evaluation.evaluated:
        why = "it has none"
        for reason, _ in evaluation.skipped.most_common(1):
            why = evaluation.first_skips[reason]
        raise SourceError(f"no frame of {context.source} could be scored: {why}")


def write_and_print(
    evaluation: Evaluation, folder: Path, context: Context, keep: Sequence[str] = ()
) -> dict[str, Any]:
    """Write a report, print its scores and verdict, and return its summary; see `report.write`.

    Raises:
        SourceError: the report cannot be written.
    """
    from uncertainty_depth.report import page, report, verdict

    with tqdm(total=2, desc="writing the report", unit="step", leave=False, disable=None) as bar:
        scores = report.summarize(evaluation, context)
        bar.update()
        path = report.write(evaluation, folder, context, summary=scores, keep=keep)
    print(page.table(scores, context.model))
    print("\n".join(["", *verdict.sentences(scores["verdict"])]))
    print(f"report: {path}")
    return scores


def check_requirements(summary: Mapping[str, Any], junit_path: Path | None) -> None:
    """Print PASS or FAIL of each requirement, and write the JUnit file if there is a path.

    Raises:
        RequirementError: a requirement is not met; the command then exits with 3.
    """
    from uncertainty_depth.report.requirements import write_junit

    outcomes = summary["requirements"]
    for outcome in outcomes:
        print(outcome["text"])
    if junit_path:
        write_junit(junit_path, summary)
    failed = [outcome["requirement"] for outcome in outcomes if not outcome["passed"]]
    if failed:
        raise RequirementError(
            f"{len(failed)} of {len(outcomes)} requirements not met: {', '.join(failed)}"
        )


def _evaluate_each(
    jobs: Sequence[Job],
    arguments: argparse.Namespace,
    requirements: tuple[Requirement, ...],
) -> None:
    """Score every source in its own worker, and write one report over all of them.

    What is done is kept: the same command continues with the rest.

    Raises:
        KeyboardInterrupt: it was interrupted; no report over all sources is written.
        SourceError: a source could not be scored; the report holds the others.
        RequirementError: a requirement is not met.
    """
    from uncertainty_depth.contrib import on_ray
    from uncertainty_depth.report.fleet import DONE, open_fleet
    from uncertainty_depth.stream import workers as local
    from uncertainty_depth.stream.scoring import score_and_write

    if arguments.write_bag:
        raise ConfigError("write_bag takes one source; expected one, or no --write-bag")
    sources = open_fleet(
        arguments.output, arguments.source, jobs[0].options(), arguments.overwrite
    )
    work = {
        source: (score_and_write, job, arguments.command_line)
        for source, job in zip(sources, jobs, strict=True)
        if not source.is_done
    }
    if len(work) < len(jobs):
        logger.info("%d of %d sources are scored already", len(jobs) - len(work), len(jobs))
    with (
        deferred_interrupt() as interrupt,
        tqdm(total=len(work), unit="source", disable=not work) as bar,
    ):

        def tell(source: FleetSource) -> None:
            bar.update()
            outcome = source.outcome()
            if outcome["state"] != DONE:
                logger.warning("%s: %s", source.notation, outcome["sentence"])

        if arguments.ray and work:
            gpus = any(job.model and job.predictor.device != "cpu" for _, job, _ in work.values())
            on_ray.run(work, arguments.ray, gpus, interrupt, tell)
        else:
            local.run(work, arguments.jobs or os.cpu_count() or 1, interrupt, tell)
    if interrupt.requested:
        logger.warning(
            "%d of %d sources are scored; run the same command again to continue",
            sum(source.is_done for source in sources),
            len(sources),
        )
        raise KeyboardInterrupt
    _report_on_all(sources, arguments, requirements)


def _report_on_all(
    sources: Sequence[FleetSource],
    arguments: argparse.Namespace,
    requirements: tuple[Requirement, ...],
) -> None:
    """Write the table of the sources, and the report over those that were scored."""
    from uncertainty_depth.report.fleet import DONE, MADE, TABLE, rows_of, write_table
    from uncertainty_depth.report.saved_state import merge, read_report

    output: Path = arguments.output
    rows = rows_of(sources, output)
    write_table(rows, output / TABLE)
    scored = [source for source in sources if source.outcome()["state"] == DONE]
    failed = [
        f"{source.notation}: {source.outcome()['sentence']}"
        for source in sources
        if source not in scored
    ]
    if not scored:
        raise SourceError(f"none of {len(sources)} sources could be scored: see {output / TABLE}")
    evaluation, context = merge(
        (read_report(source.folder) for source in scored), MAX_MERGED_FRAMES
    )
    context = replace(
        context,
        notes=(*(f"not scored: {sentence}" for sentence in failed), *context.notes),
        command=arguments.command_line,
        requirements=requirements,
        sources=tuple(rows),
    )
    print(f"{len(scored)} sources scored, {len(failed)} failed: {output / TABLE}")
    scores = write_and_print(evaluation, output, context, MADE)
    check_requirements(scores, arguments.junit)
    if failed:
        sentences = "; ".join(failed[:MAX_NAMED_FAILURES])
        raise SourceError(
            f"{len(failed)} of {len(sources)} sources could not be scored: {sentences}"
        )


def compare(arguments: argparse.Namespace) -> None:
    """Compare reports on the frames that they share: what is better, by how much, how surely."""
    from uncertainty_depth.report import comparison
    from uncertainty_depth.report.saved_state import read_report

    comparison.output_of(arguments.output).check(arguments.reports)
    folders = tqdm(arguments.reports, "reading", unit="report", leave=False, disable=None)
    reports = [read_report(folder) for folder in folders]
    with tqdm(total=2, desc="comparing", unit="step", leave=False, disable=None) as bar:
        compared = comparison.compare(reports)
        bar.update()
        page = comparison.write(compared, arguments.output, arguments.command_line)
    print("\n".join(comparison.headline(compared)))
    print(f"page: {page}")


def merge(arguments: argparse.Namespace) -> None:
    """Join reports of one model into one report over all their frames."""
    from uncertainty_depth.report import report
    from uncertainty_depth.report.requirements import check_judged, requirements_of
    from uncertainty_depth.report.saved_state import merge as merge_reports
    from uncertainty_depth.report.saved_state import read_report

    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    report.check_output(arguments.output, arguments.overwrite, arguments.reports)
    check_apart([*report.files_of(arguments.output), arguments.junit])
    if arguments.junit:
        OutputFile(arguments.junit).check(arguments.reports)
    evaluation, context = merge_reports(map(read_report, arguments.reports))
    check_judged(requirements, evaluation.sigma_kind)
    context = replace(context, command=arguments.command_line, requirements=requirements)
    scores = write_and_print(evaluation, arguments.output, context)
    check_requirements(scores, arguments.junit)


def view(arguments: argparse.Namespace) -> None:
    """Show frames with depth, sigma, errors and scores in the viewer rerun."""
    from uncertainty_depth.contrib.rerun_view import Recorder, recording_file, scores_of
    from uncertainty_depth.core.records import Skipped
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.model_facts import law_of
    from uncertainty_depth.stream.stream import Stream

    job = job_of(arguments, [arguments.source])
    job.check()
    evaluation = Evaluation(job.evaluation, job.sigma_kind)
    count = 0
    recording = recording_file(arguments.save) if arguments.save else None
    if recording:
        recording.check(job.inputs())
    with (
        recording.replacing() if recording else nullcontext() as path,
        closing(Recorder(from_arguments(ColorConfig, arguments), path)) as recorder,
        deferred_interrupt() as interrupt,
    ):
        stream = Stream.open(job)
        law = law_of(stream.predicting.describe())
        for record in stream:
            if isinstance(record, Skipped):
                evaluation.skip(record)
            else:
                row = evaluation.add(record)
                recorder.add(record, {} if isinstance(row, Skipped) else scores_of(row, law))
                count += 1
            if interrupt.requested:
                break
    for reason, skipped in evaluation.skipped.most_common():
        warn([f"{skipped} frames not scored ({reason}): {evaluation.first_skips[reason]}"])
    print(f"{count} frames shown{f'; {arguments.save}' if arguments.save else ''}")
