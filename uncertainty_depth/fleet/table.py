# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The table of an evaluation of several sources: one row per source, the worst first."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncertainty_depth import atomic
from uncertainty_depth.fleet.folder import DONE, FleetSource
from uncertainty_depth.report.model_facts import law_of
from uncertainty_depth.report.saved_summary import read_summary

MAX_ROWS = 20
METRICS = ("abs_rel", "rmse", "ause_rmse", "auce", "coverage_95", "crps")
COLUMNS = ("source", "failure", "verdict", "frames", "skipped", *METRICS, "report")
Row = dict[str, Any]


def rows_of(sources: Sequence[FleetSource], folder: Path) -> list[Row]:
    """Return one row per source: failed ones first, then those without a frame, then by CRPS.

    Without CRPS, for a sigma without a unit, by abs_rel.

    Args:
        sources: all that ended.
        folder: of the evaluation, which the paths of the reports are relative to.
    """
    rows = [_row(source, folder) for source in sources]
    return sorted(rows, key=_badness, reverse=True)


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as CSV, in one step."""
    with (
        atomic.replacing(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def lines(rows: Sequence[Row]) -> list[str]:
    """Return the worst rows as text for a terminal."""
    width = max(len("source"), *(len(row["source"][-48:]) for row in rows))
    titles = "".join(f"{name:>13}" for name in ("frames", "skipped", *METRICS))
    texts = [f"{'source':{width}}{titles}  verdict"]
    for row in rows[:MAX_ROWS]:
        name = f"{row['source'][-48:]:{width}}"
        if row["failure"]:
            texts.append(f"{name}  FAILED: {row['failure']}")
            continue
        numbers = f"{row['frames']:13}{row['skipped']:13}"
        numbers += "".join(f"{_text(row[metric]):>13}" for metric in METRICS)
        texts.append(f"{name}{numbers}  {row['verdict']}")
    if len(rows) > MAX_ROWS:
        texts.append(f"... and {len(rows) - MAX_ROWS} better ones in sources.csv")
    return texts


def _row(source: FleetSource, folder: Path) -> Row:
    outcome = source.outcome()
    if outcome["state"] != DONE:
        failure = {"source": source.notation, "failure": outcome["sentence"]}
        return {**dict.fromkeys(COLUMNS), **failure}
    summary = read_summary(source.folder)
    sigma = summary["uncertainty"]
    suffix = "_laplace" if law_of(summary["model"]) == "laplace" else ""
    return {
        "source": source.notation,
        "failure": "",
        "verdict": summary["verdict"]["color"],
        "frames": summary["frames"]["evaluated"],
        "skipped": sum(summary["frames"]["skipped"].values()),
        "abs_rel": _number(summary["depth"]["abs_rel"]),
        "rmse": _number(summary["depth"]["rmse"]),
        "ause_rmse": _number(sigma["ause"]["rmse"]),
        "auce": _number(sigma[f"auce{suffix}"]),
        "coverage_95": _number(sigma[f"coverage_95{suffix}"]),
        "crps": _number(sigma[f"crps{suffix}"]),
        "report": str((source.folder / "report.html").relative_to(folder)),
    }


def _badness(row: Mapping[str, Any]) -> tuple[float, ...]:
    if row["failure"]:
        return (2.0, 0.0)
    if not row["frames"]:
        return (1.0, 0.0)
    score = row["crps"] if row["crps"] is not None else row["abs_rel"]
    return (0.0, math.inf if score is None else score)


def _number(value: Any) -> float | None:
    """Return a number of `summary.json`, where NaN is null and infinities are text."""
    return None if value is None else float(value)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
