# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands that score and read reports back: `evaluate`, `compare`, `merge` and `view`.

`evaluate` scores one source in this process. Several are scored in workers of their own, and
merged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from uncertainty_depth.cli.arguments import (
    MODEL,
    OWN,
    SOURCE,
    Command,
    at_least_one,
    flag,
    junit_file,
    overwriting,
    positional,
    written,
)
from uncertainty_depth.core.config.nodes import ColorConfig, DepthScaleConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import (
    EvaluationConfig,
    HeldOutConfig,
    MaskConfig,
    RequirementConfig,
)
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, RequirementError, SourceError, warn
from uncertainty_depth.core.output import MARK, NewFolder, OutputFile, check_apart
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.stream.job import Job

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.fleet import FleetSource
    from uncertainty_depth.report.report import Context
    from uncertainty_depth.report.requirements import Requirement

logger = logging.getLogger(__name__)
MAX_MERGED_FRAMES = 200_000
MAX_NAMED_FAILURES = 3


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Score depth and sigma against LiDAR, and write a report that begins with a verdict."""

    example = "my_bag --model my_model --output my_report"
    source: list[str] = positional(
        nargs="+",
        metavar="SOURCE",
        help=f"{SOURCE}; or predictions:DIR, with depth, confidence and ground truth; "
        "several are scored in workers of their own and merged",
    )
    output: Path = written("REPORT", "folder for summary.json, frames.csv, plots and report.html")
    model: Path | None = flag(type=Path, help=f"{MODEL}; {OWN}; none for recorded predictions")
    max_frames: int = flag(
        type=at_least_one,
        default=0,
        metavar="N",
        help="score at most N frames of each source, evenly spread (default: all)",
    )
    overwrite: bool = overwriting()
    junit: Path | None = junit_file()
    write_bag: Path | None = flag(
        type=Path, metavar="OUT", help="also write a bag with the predictions, for RViz"
    )
    jobs: int | None = flag(
        type=at_least_one,
        metavar="N",
        help="several sources: workers at a time (default: one a core; one on a GPU)",
    )
    ray: str = flag(
        default="",
        metavar="ADDRESS",
        help="score the sources on the Ray cluster at this address, or local",
    )
    requirements: RequirementConfig
    evaluation: EvaluationConfig
    mask: MaskConfig
    predictor: PredictorConfig
    topics: PredictionTopics
    meaning: PredictionConfig
    held_out: HeldOutConfig
    scale: DepthScaleConfig
    reading: SourceConfig

    def _run(self) -> None:
        from uncertainty_depth.report import report
        from uncertainty_depth.report.requirements import check_judged, requirements_of

        is_fleet = len(self.source) > 1 or bool(self.ray)  # continues what it began
        jobs = [self.job(source, model=str(self.model or "")) for source in self.source]
        inputs = [*chain.from_iterable(job.inputs() for job in jobs)]
        report.check_output(self.output, self.overwrite or is_fleet, inputs)
        check_apart([*report.files_of(self.output), self.junit, self.write_bag])
        if self.junit:
            OutputFile(self.junit).check(inputs)
        if self.write_bag:
            NewFolder(self.write_bag).check(inputs)
        requirements = requirements_of(self.requirements)
        for job in jobs:
            job.check(self.write_bag)
            check_judged(requirements, job.sigma_kind)
        if is_fleet:
            _evaluate_each(self, jobs, requirements)
        else:
            _evaluate_one(self, jobs[0], requirements)


def _evaluate_one(command: Evaluate, job: Job, requirements: tuple[Requirement, ...]) -> None:
    from uncertainty_depth.report.page import scored_maps
    from uncertainty_depth.stream.scoring import score

    with deferred_interrupt():  # also while the report is written
        evaluation, context = score(job, command.command_line, command.write_bag)
        context = replace(context, requirements=requirements)
        method = context.model.get("method") or context.model["name"]
        print(f"scored: {method}, {scored_maps(context.model)}")
        scores = write_and_print(evaluation, command.output, context)
    check_requirements(scores, command.junit)
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
    """Write a report, print its scores and verdict, and return its summary; see `report.write`."""
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
    """Print PASS or FAIL of each requirement, write the JUnit file.

    Raise `RequirementError` if any fails.
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
    command: Evaluate, jobs: Sequence[Job], requirements: tuple[Requirement, ...]
) -> None:
    """Score every source in its own worker; the same command continues with the rest."""
    from uncertainty_depth.contrib import on_ray
    from uncertainty_depth.report.fleet import DONE, open_fleet
    from uncertainty_depth.stream import workers as local
    from uncertainty_depth.stream.scoring import score_and_write

    if command.write_bag:
        raise ConfigError("write_bag takes one source; expected one, or no --write-bag")
    sources = open_fleet(
        command.output,
        command.source,
        [job.inputs() for job in jobs],
        jobs[0].options(),
        command.overwrite,
    )
    work = {
        source: (score_and_write, job, command.command_line)
        for source, job in zip(sources, jobs, strict=True)
        if not source.is_done
    }
    if len(work) < len(jobs):
        logger.info("%d of %d sources are scored already", len(jobs) - len(work), len(jobs))
    with (
        deferred_interrupt() as interrupt,
        tqdm(total=len(work), unit="source", disable=not work) as bar,
    ):

        def on_source_done(source: FleetSource) -> None:
            bar.update()
            outcome = source.outcome()
            if outcome["state"] != DONE:
                logger.warning("%s: %s", source.notation, outcome["sentence"])

        if command.ray and work:
            gpus = any(job.model and job.predictor.device != "cpu" for _, job, _ in work.values())
            on_ray.run(work, command.ray, gpus, interrupt, on_source_done)
        else:
            local.run(work, command.jobs or _processes(jobs), interrupt, on_source_done)
    if interrupt.requested:
        logger.warning(
            "%d of %d sources are scored; run the same command again to continue",
            sum(source.is_done for source in sources),
            len(sources),
        )
        raise KeyboardInterrupt
    _report_on_all(command, sources, requirements)


def _processes(jobs: Sequence[Job]) -> int:
    """Return one for a GPU, where each takes memory of its own; otherwise one a core."""
    if any(job.model and job.predictor.device != "cpu" for job in jobs):
        import torch

        if torch.cuda.is_available():
            return 1
    return os.cpu_count() or 1


def _report_on_all(
    command: Evaluate, sources: Sequence[FleetSource], requirements: tuple[Requirement, ...]
) -> None:
    """Write the sources' table, and the report over those that were scored."""
    from uncertainty_depth.report.fleet import DONE, MADE, TABLE, rows_of, write_table
    from uncertainty_depth.report.saved_state import merge, read_report

    output = command.output
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
        command=command.command_line,
        requirements=requirements,
        sources=tuple(rows),
    )
    print(f"{len(scored)} sources scored, {len(failed)} failed: {output / TABLE}")
    scores = write_and_print(evaluation, output, context, MADE)
    check_requirements(scores, command.junit)
    if failed:
        sentences = "; ".join(failed[:MAX_NAMED_FAILURES])
        raise SourceError(
            f"{len(failed)} of {len(sources)} sources could not be scored: {sentences}"
        )


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Compare reports on the frames that they share: what is better, by how much, how surely."""

    example = "report_a report_b --output comparison"
    reports: list[Path] = positional(
        type=Path,
        nargs="+",
        metavar="REPORT",
        help="report folders; the others are compared with the first",
    )
    output: Path = written("DIR", "folder for compare.html and compare.json")
    csv: Path | None = flag(
        type=Path, metavar="FILE", help="also write every metric of every report as a table"
    )
    latex: Path | None = flag(
        type=Path, metavar="FILE", help="also write the headline metrics as a table for a paper"
    )
    curves: list[str] = flag(
        nargs="+",
        default=[],
        choices=("png", "svg", "pdf"),
        help="also write each plot as a file of these formats into the folder",
    )

    def _run(self) -> None:
        from uncertainty_depth.report import comparison
        from uncertainty_depth.report.saved_state import read_report
        from uncertainty_depth.report.tables import CSV_MARK, csv_table, latex_table

        tables = {
            OutputFile(path, mark): table
            for path, mark, table in (
                (self.csv, CSV_MARK, csv_table),
                (self.latex, MARK, latex_table),
            )
            if path
        }
        comparison.output_of(self.output).check(self.reports)
        check_apart([self.output, self.csv, self.latex])
        for file in tables:
            file.check(self.reports)
        folders = tqdm(self.reports, "reading", unit="report", leave=False, disable=None)
        reports = [read_report(folder) for folder in folders]
        with tqdm(total=2, desc="comparing", unit="step", leave=False, disable=None) as bar:
            compared = comparison.compare(reports)
            bar.update()
            page = comparison.write(compared, self.output, self.command_line, self.curves)
        for file, table in tables.items():
            file.write(table(compared).encode())
        print("\n".join(comparison.headline(compared)))
        print(f"page: {page}")


@dataclass(frozen=True, kw_only=True)
class Merge(Command):
    """Join reports of one model into one report over all their frames."""

    example = "monday tuesday --output week"
    reports: list[Path] = positional(
        type=Path, nargs="+", metavar="REPORT", help="report folders to merge"
    )
    output: Path = written("REPORT", "folder to write")
    overwrite: bool = overwriting()
    junit: Path | None = junit_file()
    requirements: RequirementConfig

    def _run(self) -> None:
        from uncertainty_depth.report import report
        from uncertainty_depth.report.requirements import check_judged, requirements_of
        from uncertainty_depth.report.saved_state import merge as merge_reports
        from uncertainty_depth.report.saved_state import read_report

        requirements = requirements_of(self.requirements)
        report.check_output(self.output, self.overwrite, self.reports)
        check_apart([*report.files_of(self.output), self.junit])
        if self.junit:
            OutputFile(self.junit).check(self.reports)
        evaluation, context = merge_reports(map(read_report, self.reports))
        check_judged(requirements, evaluation.sigma_kind)
        context = replace(context, command=self.command_line, requirements=requirements)
        scores = write_and_print(evaluation, self.output, context)
        check_requirements(scores, self.junit)


@dataclass(frozen=True, kw_only=True)
class View(Command):
    """Show frames with depth, sigma, errors and scores in the viewer rerun."""

    example = "my_bag --model demo --save my_bag.rrd"
    source: str = positional(metavar="SOURCE", help=f"{SOURCE}; or predictions:DIR")
    model: Path | None = flag(type=Path, help=f"{MODEL}; {OWN}; none for recorded predictions")
    save: Path | None = flag(
        type=Path,
        metavar="RRD",
        help="write a file for rerun instead of opening its viewer",
    )
    max_frames: int = flag(
        type=at_least_one,
        default=0,
        metavar="N",
        help="show at most N frames, evenly spread (default: all)",
    )
    evaluation: EvaluationConfig
    colors: ColorConfig
    predictor: PredictorConfig
    topics: PredictionTopics
    meaning: PredictionConfig
    reading: SourceConfig

    def _run(self) -> None:
        from uncertainty_depth.contrib.rerun_view import Recorder, recording_file, scores_of
        from uncertainty_depth.core.records import Skipped
        from uncertainty_depth.report.evaluation import Evaluation
        from uncertainty_depth.report.model_facts import distribution_of_model
        from uncertainty_depth.stream.stream import Stream

        job = self.job(self.source, model=str(self.model or ""))
        job.check()
        evaluation = Evaluation(job.evaluation, job.sigma_kind)
        count = 0
        recording = recording_file(self.save) if self.save else None
        if recording:
            recording.check(job.inputs())
        with (
            recording.replacing() if recording else nullcontext() as path,
            closing(Recorder(self.colors, path)) as recorder,
            deferred_interrupt() as interrupt,
        ):
            stream = Stream.open(job)
            distribution = distribution_of_model(stream.predicting.describe())
            for record in stream:
                if isinstance(record, Skipped):
                    evaluation.skip(record)
                else:
                    row = evaluation.add(record)
                    recorder.add(
                        record, {} if isinstance(row, Skipped) else scores_of(row, distribution)
                    )
                    count += 1
                if interrupt.requested:
                    break
        for reason, skipped in evaluation.skipped.most_common():
            warn([f"{skipped} frames not scored ({reason}): {evaluation.first_skips[reason]}"])
        print(f"{count} frames shown{f'; {self.save}' if self.save else ''}")
