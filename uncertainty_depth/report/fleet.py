# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The folder for a fleet's evaluation: finished, failed and pending sources, and their reports.

`fleet.json` holds the options that every source is scored with. For each source `sources/` has the
folder NAME of its report, NAME.json on how it ended, and NAME.log with what its worker printed.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.output import OutputFolder, remove
from uncertainty_depth.metrics.calibration import of_distribution
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.registry import BY_NAME, flatten
from uncertainty_depth.report.model_facts import distribution_of_model
from uncertainty_depth.report.report import KIND, PAGE, SUMMARY_FILE
from uncertainty_depth.report.saved_state import read_summary

FLEET_FILE = "fleet.json"
SOURCES = "sources"
TABLE = "sources.csv"
MADE = (FLEET_FILE, SOURCES, TABLE)
"""Beside the report over all sources."""
FORMAT = 1
MAX_NAME = 60
MAX_BYTES = 2**24
DONE = "done"
FAILED = "failed"


@dataclass(frozen=True)
class FleetSource:
    """One source, its report's folder, and the state of its files before they are read."""

    notation: str
    folder: Path
    state: str

    @property
    def outcome_file(self) -> Path:
        """File that says how it ended."""
        return self.folder.with_name(f"{self.folder.name}.json")

    @property
    def log_file(self) -> Path:
        """File with its worker's output."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def finish(self, failure: str = "") -> None:
        """Record that the source is scored, or its error's sentence."""
        outcome = {
            "source": self.notation,
            "state": FAILED if failure else DONE,
            "sentence": failure,
            "files": self.state,
        }
        strict.write_json(self.outcome_file, outcome)

    def outcome(self) -> Mapping[str, Any]:
        """Return the outcome; empty while there is none."""
        try:
            outcome = strict.read_json_file(self.outcome_file, MAX_BYTES)
        except (OSError, strict.FormatError):
            return {}
        return outcome if isinstance(outcome, dict) else {}

    @property
    def is_done(self) -> bool:
        """Whether the report is there and the files are those that were scored."""
        outcome = self.outcome()
        return (
            outcome.get("state") == DONE
            and outcome.get("files") == self.state
            and (self.folder / SUMMARY_FILE).is_file()
        )


def open_fleet(
    folder: Path,
    sources: Sequence[str],
    inputs: Sequence[Sequence[Path]],
    options: Mapping[str, Any],
    overwrite: bool,
) -> list[FleetSource]:
    """Return an evaluation's sources, new or to be continued, in the order given.

    Sources are scored from `inputs`, by `options` as JSON gives them back; `overwrite` discards
    an earlier run. Raises `ConfigError` for other options or a source twice, `SourceError` for
    another's folder.
    """
    for source in sources:
        if sources.count(source) > 1:
            raise ConfigError(f"the source {source} is listed twice; expected each source once")
    path = folder / FLEET_FILE
    output = OutputFolder(folder, KIND)
    if overwrite:
        for name in set(output.made()).intersection(MADE):
            remove(folder / name)
    elif path.exists():
        try:
            saved = strict.read_json_file(path, MAX_BYTES)["options"]
            names = sorted(saved.keys() | options.keys())
        except (OSError, strict.FormatError, TypeError, KeyError, AttributeError) as error:
            raise SourceError(
                f"{path} does not hold the options of an evaluation; expected another folder, or "
                "overwrite"
            ) from error
        for name in names:
            if saved.get(name) != options.get(name):
                raise ConfigError(
                    f"{folder} was started with {name} {saved.get(name)!r}, now it is "
                    f"{options.get(name)!r}; expected the same value, another folder, or overwrite"
                )
    elif (folder / SUMMARY_FILE).exists():
        raise SourceError(
            f"{folder} holds a report already; expected another folder, or the option overwrite"
        )
    output.claim(MADE)
    strict.write_json(path, {"format": FORMAT, "options": options})
    reports = OutputFolder(folder / SOURCES, SOURCES)
    states = {path: state_of(path) for path in chain.from_iterable(inputs)}  # many share a folder
    opened = [
        FleetSource(
            source, folder / SOURCES / _name(source), "; ".join(map(states.__getitem__, read))
        )
        for source, read in zip(sources, inputs, strict=True)
    ]
    paths = [(each.folder, each.outcome_file, each.log_file) for each in opened]
    reports.claim(path.name for path in chain.from_iterable(paths))
    return opened


def _name(source: str) -> str:
    """Return a source's readable and unique folder name."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    readable = re.sub(r"[^\w.-]+", "_", source).strip("._")[-MAX_NAME:]
    return f"{readable}-{digest}"


def state_of(path: Path) -> str:
    """Return number, bytes and latest change, ns, of the files at a path, if there are any."""
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    stats = [file.stat() for file in files]
    sizes = sum(stat.st_size for stat in stats)
    return f"{len(stats)} {sizes} {max((stat.st_mtime_ns for stat in stats), default=0)}"


DEPTH_AND_ORDER = ("depth.abs_rel", "depth.rmse", "uncertainty.ause.rmse")
SIZES = ("uncertainty.auce", "uncertainty.coverage_95", "uncertainty.crps")
"""Under the model's error distribution."""
Row = dict[str, Any]


def rows_of(sources: Sequence[FleetSource], folder: Path) -> list[Row]:
    """Return one row per source that ended: failed ones first, then without a frame, then by CRPS.

    Metrics have their names in the registry, and all rows have the same ones. Without CRPS, for a
    sigma without a unit, the order is by abs_rel. Paths are relative to the folder.
    """
    outcomes = {source: source.outcome() for source in sources}
    summaries = {
        source: read_summary(source.folder)
        for source, outcome in outcomes.items()
        if outcome["state"] == DONE
    }
    distribution = (
        distribution_of_model(next(iter(summaries.values()))["model"]) if summaries else "gaussian"
    )
    *others, crps = (of_distribution(name, distribution) for name in SIZES)
    kinds = {summary.get("sigma_kind") for summary in summaries.values()}
    metrics = [
        name
        for name in (*DEPTH_AND_ORDER, *others, crps)
        if kinds != {SigmaKind.NONE.value} or not BY_NAME[name].needs_sigma
    ]

    def row_of(source: FleetSource) -> Row:
        summary = summaries.get(source)
        row = {"source": source.notation, "failure": outcomes[source]["sentence"]}
        if summary is None:
            names = ("verdict", "frames", "skipped", *metrics, "report")
            return {**row, **dict.fromkeys(names)}
        values = flatten({name: summary[name] for name in ("depth", "uncertainty")})
        return {
            **row,
            "verdict": summary["verdict"]["color"],
            "frames": summary["frames"]["evaluated"],
            "skipped": sum(summary["frames"]["skipped"].values()),
            # NaN is null in the file, and infinities are text.
            **{name: None if values[name] is None else float(values[name]) for name in metrics},
            "report": str((source.folder / PAGE).relative_to(folder)),
        }

    def badness(row: Row) -> tuple[float, float]:
        if row["failure"]:
            return 2.0, 0.0
        if not row["frames"]:
            return 1.0, 0.0
        score = row["depth.abs_rel"] if row.get(crps) is None else row[crps]
        return 0.0, math.inf if score is None else score

    return sorted(map(row_of, sources), key=badness, reverse=True)


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as CSV, in one step."""
    with (
        atomic.replacing(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
