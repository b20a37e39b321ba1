# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate` with several sources: each scored in a worker, all merged into one report."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from uncertainty_depth.cli.requirements import check_requirements
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.fleet.folder import DONE, FleetSource, open_fleet
from uncertainty_depth.interrupt import Interrupt, deferred_interrupt
from uncertainty_depth.scoring import ScoringJob, score_and_write

logger = logging.getLogger(__name__)
MAX_MERGED_FRAMES = 200_000
MAX_NAMED_FAILURES = 3


def evaluate_fleet(
    jobs: Sequence[ScoringJob], arguments: argparse.Namespace, requirements: tuple[Any, ...]
) -> None:
    """Score every source in its own worker, and write one report over all of them.

    What is done is kept: the same command continues with the rest.

    Raises:
        KeyboardInterrupt: it was interrupted; no report over all sources is written.
        SourceError: a source could not be scored; the report holds the others.
        RequirementError: a requirement is not met.
    """
    if arguments.write_bag:
        raise ConfigError("write_bag takes one source; expected one, or no --write-bag")
    for job in jobs:
        job.check()
    sources = open_fleet(
        arguments.output, [job.source for job in jobs], jobs[0].options(), arguments.overwrite
    )
    waiting = [
        (source, job) for source, job in zip(sources, jobs, strict=True) if not source.is_done
    ]
    if len(waiting) < len(jobs):
        logger.info("%d of %d sources are scored already", len(jobs) - len(waiting), len(jobs))
    with deferred_interrupt() as interrupt:
        _run(waiting, arguments, interrupt)
    if interrupt.requested:
        scored_count = sum(source.is_done for source in sources)
        logger.warning(
            "%d of %d sources are scored; run the same command again to continue",
            scored_count,
            len(sources),
        )
        raise KeyboardInterrupt
    _report(sources, arguments, requirements)


def _run(
    waiting: Sequence[tuple[FleetSource, ScoringJob]],
    arguments: argparse.Namespace,
    interrupt: Interrupt,
) -> None:
    from uncertainty_depth.fleet import local, on_ray

    command = arguments.command_line
    with tqdm(total=len(waiting), unit="source", disable=not waiting) as bar:

        def tell(source: FleetSource) -> None:
            bar.update()
            outcome = source.outcome()
            if outcome["state"] != DONE:
                logger.warning("%s: %s", source.notation, outcome["sentence"])

        work = {source: (score_and_write, job, command) for source, job in waiting}
        if arguments.ray and work:
            gpus = any(job.model and job.predictor.device != "cpu" for _, job in waiting)
            on_ray.run(work, arguments.ray, gpus, interrupt, tell)
        else:
            local.run(work, arguments.jobs or os.cpu_count() or 1, interrupt, tell)


def _report(
    sources: Sequence[FleetSource], arguments: argparse.Namespace, requirements: tuple[Any, ...]
) -> None:
    """Write the table of the sources, and the report over those that were scored."""
    from uncertainty_depth.cli.scored_report import write_and_print
    from uncertainty_depth.report.merging import merge, read_report

    output: Path = arguments.output
    rows = _write_table(sources, output)
    scored = [source for source in sources if source.outcome()["state"] == DONE]
    failures = [source for source in sources if source not in scored]
    if not scored:
        raise SourceError(
            f"none of {len(sources)} sources could be scored: see {output}/sources.csv"
        )
    evaluation, context = merge(
        (read_report(source.folder) for source in scored), MAX_MERGED_FRAMES
    )
    failed = [f"{source.notation}: {source.outcome()['sentence']}" for source in failures]
    context = replace(
        context,
        notes=(*(f"not scored: {sentence}" for sentence in failed), *context.notes),
        command=arguments.command_line,
        requirements=requirements,
        sources=tuple(rows),
    )
    print(f"\n{len(scored)} sources scored, {len(failures)} failed")
    scores = write_and_print(evaluation, output, context)
    check_requirements(scores, arguments.junit)
    if failed:
        sentences = "; ".join(failed[:MAX_NAMED_FAILURES])
        raise SourceError(
            f"{len(failed)} of {len(sources)} sources could not be scored: {sentences}"
        )


def _write_table(sources: Sequence[FleetSource], output: Path) -> list[dict[str, Any]]:
    """Write and print the row of each source, and return the rows."""
    from uncertainty_depth.fleet import table

    rows = table.rows_of(sources, output)
    table.write(rows, output / "sources.csv")
    print("\n".join(table.lines(rows)))
    return rows
