# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write an evaluation as files.

`report.html` (self-contained), `summary.json`, `frames.csv`, `frames.sums` and
`state.npz` (the sums of each frame and of all, to compare and merge reports), and every plot.
"""

from __future__ import annotations

import logging
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import SourceError, first_line
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.output import OutputFolder
from uncertainty_depth.core.records import Overlap
from uncertainty_depth.core.version import __version__
from uncertainty_depth.metrics.bootstrap import ENOUGH_BLOCKS, MIN_VIEWS, Resampled
from uncertainty_depth.metrics.calibration import NOMINAL_LEVEL, of_distribution
from uncertainty_depth.metrics.conditional import excess_risk
from uncertainty_depth.metrics.metric import NOT_JUDGED, SigmaKind
from uncertainty_depth.metrics.registry import BY_NAME, undefined
from uncertainty_depth.report.model_facts import distribution_of_model
from uncertainty_depth.report.page import Images, render
from uncertainty_depth.report.plots import draw
from uncertainty_depth.report.requirements import Requirement, outcome
from uncertainty_depth.report.scores import Scores
from uncertainty_depth.report.verdict import judge

logger = logging.getLogger(__name__)

SUMMARY_FILE = "summary.json"
NUMBERS = ("frames.csv", "frames.sums", "state.npz", SUMMARY_FILE)
"""The files that a report is read back from."""
PAGE = "report.html"
KIND = "report"
"""The folder's kind."""
PACKAGES = ("numpy", "torch", "rosbags")
"""Packages whose versions a report gives; None for one that is not installed by pip."""


@dataclass(frozen=True)
class Context:
    """Where a report's metrics come from.

    Attributes:
        source: the source's name.
        model: describes the predictor.
        notes: sentences about losses and limits.
        options: how the source was read, in addition to the evaluation's config.
        trained_on: the scored sources that the model was trained on; None if the source is
            unknown, as in a live run.
        calibrated_on: the scored sources that sigma was calibrated on.
        geometry: see `GeometryCheck.summary`; empty if not checked.
        command: the command line that made the report.
        requirements: limits that the metrics must keep.
        sources: for several, the row of each, see `fleet.rows_of`.
    """

    source: str
    model: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    trained_on: tuple[Overlap, ...] | None = None
    geometry: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    requirements: tuple[Requirement, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    calibrated_on: tuple[Overlap, ...] = ()


def files_of(folder: Path) -> list[Path]:
    """Return the paths that every report's files have, and the folder's."""
    return [folder, *(folder / name for name in (*NUMBERS, PAGE))]


def check_output(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise `SourceError`, before the work, unless a report can be written to `folder`."""
    OutputFolder(folder, KIND).check(inputs, (*NUMBERS, PAGE))
    if not overwrite and (folder / SUMMARY_FILE).exists():
        raise SourceError(
            f"{folder} holds a report already; expected another folder, or the option overwrite"
        )


def write(
    evaluation: Scores,
    folder: Path,
    context: Context,
    images: bool = True,
    summary: Mapping[str, Any] | None = None,
    keep: Sequence[str] = (),
) -> Path:
    """Write the report and return the path of `report.html`.

    It replaces an earlier report; files in the folder that we did not make stay.

    Without `images` no plots and frames are drawn, and it takes less than a second; they are left
    out too if there is no memory for them. `summary` is by `summarize`, if there is one; `keep`
    are our names in the folder that belong to no report, and stay. Raises `SourceError` if it
    cannot be written: an earlier report is then unchanged.
    """
    content = summary or summarize(evaluation, context)
    if images:
        try:
            return _write(evaluation, folder, context, images, content, keep)
        except MemoryError as error:
            logger.warning("no memory is left for the report's plots: %s", first_line(error))
    return _write(evaluation, folder, context, False, content, keep)


def _write(
    evaluation: Scores,
    folder: Path,
    context: Context,
    images: bool,
    content: Mapping[str, Any],
    keep: Sequence[str],
) -> Path:
    try:
        with OutputFolder(folder, KIND).replacing(SUMMARY_FILE, keep) as staging:
            strict.write_json(staging / SUMMARY_FILE, content)
            trained_on = context.trained_on
            details = {
                "options": dict(context.options),
                "trained_on": None if trained_on is None else [it.as_dict() for it in trained_on],
                "calibrated_on": [it.as_dict() for it in context.calibrated_on],
            }
            evaluation.save(staging, details)
            drawings = (
                draw(evaluation, distribution_of_model(context.model)) if images else Images({})
            )
            for name, data in drawings.plots.items():
                (staging / f"{name}.png").write_bytes(data)
            if drawings.overlay:
                (staging / "overlay.jpg").write_bytes(drawings.overlay)
            for group, frames in (("worst", drawings.worst), ("typical", drawings.typical)):
                for index, frame in enumerate(frames):
                    (staging / f"{group}_{index}.jpg").write_bytes(frame.data)
            html = render(content, context.command, drawings)
            (staging / PAGE).write_bytes(html.encode())
    except OSError as error:
        raise SourceError(
            f"the report cannot be written to {folder}: {error.strerror or error}"
        ) from error
    return folder / PAGE


def page(evaluation: Scores, context: Context) -> str:
    """Return `report.html` without writing anything; see `write`."""
    drawings = draw(evaluation, distribution_of_model(context.model))
    return render(summarize(evaluation, context), context.command, drawings)


def summarize(evaluation: Scores, context: Context, is_quick: bool = False) -> dict[str, Any]:
    """Return `summary.json`'s content; a quick one lacks the conditional coverage."""
    sample = evaluation.resampled() if evaluation.evaluated else None
    verdict = judge(evaluation, context.model, context.trained_on, sample, context.calibrated_on)
    metrics = metrics_with_intervals(evaluation, sample)
    distribution = distribution_of_model(context.model)
    results = [outcome(requirement, metrics, distribution) for requirement in context.requirements]
    versions: dict[str, str | None] = {
        "uncertainty_depth": __version__,
        "python": platform.python_version(),
        **dict.fromkeys(PACKAGES),
    }
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # not installed by pip
            versions[name] = version(name)
    return {
        "verdict": asdict(verdict),
        "requirements": [asdict(result) for result in results],
        **metrics,
        "conditional_coverage": (
            {} if is_quick else conditional_coverage(evaluation, sample, distribution)
        ),
        "left_out_fraction": evaluation.left_out_fraction,
        "geometry": dict(context.geometry),
        "notes": list(context.notes),
        "source": context.source,
        "sources": [dict(row) for row in context.sources],
        "camera": asdict(evaluation.cameras),
        "config": {**context.options, **to_mapping(evaluation.config)},
        "model": dict(context.model),
        "versions": versions,
    }


def conditional_coverage(
    evaluation: Scores, sample: Resampled | None, distribution: str
) -> dict[str, Any]:
    """Return the 95 % coverage's excess risk, or why it is not a number.

    It has no interval: it is a lower bound, which falls if the run drifts. `all_pixels` is how far
    all pixels' coverage is from 95 %.
    """
    kind = evaluation.sigma_kind
    frames = evaluation.sample.frames()
    if kind is not SigmaKind.METRES:
        reason = NOT_JUDGED[kind]
    elif sample is None or not len(frames):
        reason = "no pixels are kept: a merged report has none, its sources' own reports have"
    elif not sample.has_intervals or sample.drawn_blocks < ENOUGH_BLOCKS:
        reason = (
            f"the frames count as {sample.drawn_blocks} independent blocks; expected at least "
            f"{ENOUGH_BLOCKS}, of {MIN_VIEWS} frames"
        )
    else:
        metric = BY_NAME[of_distribution("uncertainty.coverage_95", distribution)]
        return {
            "excess_risk": excess_risk(frames, distribution),
            "all_pixels": abs(float(metric.values(sample.total)[0]) - NOMINAL_LEVEL),
            "frames": len(frames),
        }
    return {"excess_risk": math.nan, "undefined": reason}


def metrics_with_intervals(evaluation: Scores, sample: Resampled | None) -> dict[str, Any]:
    """Return the metrics over all frames and their 95 % intervals, which requirements limit."""
    metrics = evaluation.summary()
    kind = evaluation.sigma_kind
    by_name = sample.intervals(kind) if sample else {}
    metrics["intervals"] = {name: [limits.low, limits.high] for name, limits in by_name.items()}
    metrics["sigma_kind"] = kind.value
    metrics["undefined"] = undefined(sample.total, kind) if sample else {}
    return metrics
