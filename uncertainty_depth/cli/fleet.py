# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate` of several sources: one worker per source, and one report over all of them."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from uncertainty_depth import strict_json
from uncertainty_depth.cli.requirements import check_requirements
from uncertainty_depth.config import RequirementConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.fleet.folder import DONE, Job
from uncertainty_depth.interrupt import Interrupt, deferred_interrupt
from uncertainty_depth.options import from_arguments

logger = logging.getLogger(__name__)
NO_SCORE = (
    "source",
    "output",
    "overwrite",
    "jobs",
    "ray",
    "junit",
    "require",
    "require_file",
    "command",
    "command_line",
)
"""Arguments that do not change the scores of a source."""
MAX_MERGED_FRAMES = 200_000
MAX_NAMED_FAILURES = 3


def evaluate_fleet(arguments: argparse.Namespace) -> None:
    """Score every source in its own worker, and write one report over all of them.

    What is done is kept: the same command continues with the rest.

    Raises:
        KeyboardInterrupt: it was interrupted; no report over all sources is written.
        SourceError: a source could not be scored; the report holds the others.
        RequirementError: a requirement is not met.
    """
    from uncertainty_depth.cli.evaluate import check_model
    from uncertainty_depth.evaluation.requirements import requirements_of
    from uncertainty_depth.fleet.folder import open_fleet

    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    if arguments.write_bag:
        raise ConfigError("write_bag takes one source; expected one, or no --write-bag")
    for source in arguments.source:
        check_model(argparse.Namespace(**{**vars(arguments), "source": source}))
    options = strict_json.plain(_recorded_options(arguments))
    jobs = open_fleet(arguments.output, arguments.source, options, arguments.overwrite)
    waiting = [job for job in jobs if not job.is_done]
    if len(waiting) < len(jobs):
        logger.info("%d of %d sources are scored already", len(jobs) - len(waiting), len(jobs))
    with deferred_interrupt() as interrupt:
        _run(waiting, arguments, interrupt)
    if interrupt.requested:
        scored_count = sum(job.is_done for job in jobs)
        logger.warning(
            "%d of %d sources are scored; run the same command again to continue",
            scored_count,
            len(jobs),
        )
        raise KeyboardInterrupt
    _report(jobs, arguments, requirements)


def evaluate_one(options: Mapping[str, Any], source: str, folder: Path) -> None:
    """Score one source and write its report, in a worker."""
    from uncertainty_depth.cli.evaluate import score
    from uncertainty_depth.evaluation import report

    arguments = argparse.Namespace(**options, source=source)
    if arguments.model:
        _use_one_thread()
    with deferred_interrupt():
        evaluation, context = score(arguments)
        if evaluation.interrupted:
            raise KeyboardInterrupt
        report.write(evaluation, folder, context)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(arguments).items() if name not in NO_SCORE}


def _recorded_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that decide the scores, paths as text."""
    options = _options(arguments).items()
    return {name: str(value) if isinstance(value, Path) else value for name, value in options}


def _run(waiting: list[Job], arguments: argparse.Namespace, interrupt: Interrupt) -> None:
    from uncertainty_depth.fleet import local, on_ray

    own = {**_options(arguments), "command_line": arguments.command_line}
    work = partial(evaluate_one, own)
    with tqdm(total=len(waiting), unit="source", disable=not waiting) as bar:

        def tell(job: Job) -> None:
            bar.update()
            outcome = job.outcome()
            if outcome["state"] != DONE:
                logger.warning("%s: %s", job.source, outcome["sentence"])

        if arguments.ray and waiting:
            gpus = bool(arguments.model) and own.get("device") != "cpu"
            on_ray.run(waiting, work, arguments.ray, gpus, interrupt, tell)
        else:
            local.run(waiting, work, arguments.jobs or os.cpu_count() or 1, interrupt, tell)


def _report(jobs: list[Job], arguments: argparse.Namespace, requirements: tuple[Any, ...]) -> None:
    """Write the table of the sources, and the report over those that were scored.

    Raises:
        SourceError: a source could not be scored; the report holds the others.
        RequirementError: a requirement is not met.
    """
    from uncertainty_depth.cli.scored_report import write_and_print
    from uncertainty_depth.evaluation.merging import merge, read_report

    output: Path = arguments.output
    rows = _write_table(jobs, output)
    scored_jobs = [job for job in jobs if job.outcome()["state"] == DONE]
    failures = [job for job in jobs if job not in scored_jobs]
    if not scored_jobs:
        raise SourceError(f"none of {len(jobs)} sources could be scored: see {output}/sources.csv")
    evaluation, context = merge(
        (read_report(job.folder) for job in scored_jobs), MAX_MERGED_FRAMES
    )
    notes = [f"not scored: {job.source}: {job.outcome()['sentence']}" for job in failures]
    context = replace(
        context,
        notes=(*notes, *context.notes),
        command=arguments.command_line,
        requirements=requirements,
        sources=tuple(rows),
    )
    print(f"\n{len(scored_jobs)} sources scored, {len(failures)} failed")
    scores = write_and_print(evaluation, output, context)
    check_requirements(scores, arguments.junit)
    _raise_failures(failures, len(jobs))


def _write_table(jobs: list[Job], output: Path) -> list[dict[str, Any]]:
    """Write and print the row of each source, and return the rows."""
    from uncertainty_depth.fleet import table

    rows = table.rows_of(jobs, output)
    table.write(rows, output / "sources.csv")
    print("\n".join(table.lines(rows)))
    return rows


def _raise_failures(failures: list[Job], sources: int) -> None:
    if failures:
        first = failures[:MAX_NAMED_FAILURES]
        sentences = "; ".join(f"{job.source}: {job.outcome()['sentence']}" for job in first)
        raise SourceError(f"{len(failures)} of {sources} sources could not be scored: {sentences}")


def _use_one_thread() -> None:
    """Use one thread, so that the bits do not depend on how many workers share the machine."""
    import torch

    torch.set_num_threads(1)
