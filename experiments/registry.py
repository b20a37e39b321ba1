# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Names of the experiments, available without importing any of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from uncertainty_depth.core import atomic
from uncertainty_depth.core.errors import ConfigError


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Attributes:
        description: one line for the command line's help.
        module: of this package, with `run(output, seeds, quick)`, and `data` if it reads any.
        seeds: repetitions of a full run if the user names none.
        quick_seeds: repetitions of a quick run if the user names none.
        duration: of a full run, with what it was measured on.
        reads_data: whether `run` also takes the folder of the data sets.
    """

    description: str
    module: str
    seeds: int
    quick_seeds: int
    duration: str
    reads_data: bool = False

    def run(
        self, output: Path, seeds: int | None = None, quick: bool = False, data: Path | None = None
    ) -> None:
        """Write table, JSON and plots into `output`; finished parts of an earlier run are used.

        Args:
            output: folder, created if missing.
            seeds: number of repetitions; None takes the experiment's default.
            quick: a small version, under two minutes on two cores.
            data: folder of the data sets; None takes the one that the environment names.

        Raises:
            ConfigError: a data folder is given to an experiment that generates its data.
            UncertaintyDepthError: a library the experiment needs is not installed.
        """
        if data is not None and not self.reads_data:
            raise ConfigError(
                f"data is {data}, but this experiment generates its data; expected no --data"
            )
        module = importlib.import_module(f"{__package__}.{self.module}")
        repetitions = seeds or (self.quick_seeds if quick else self.seeds)
        module.run(Path(output), repetitions, quick, *([] if data is None else [data]))
        if quick:
            _mark_as_quick(Path(output) / "table.md", repetitions)


def _mark_as_quick(table: Path, repetitions: int) -> None:
    """Say above a quick run's table that it supports no claim, unless it says so already."""
    text = table.read_text() if table.exists() else ""
    if text and not text.startswith("**Quick run"):
        warning = f"**Quick run, repetitions: {repetitions}. Its numbers support no claim.**"
        atomic.write_text(table, f"{warning}\n\n{text}")


EXPERIMENTS: dict[str, Experiment] = {
    "toy-cubic": Experiment(
        "n-MeRCI of four ensembles on a noisy cubic (Moukari et al. 2019, section V)",
        "toy_cubic",
        20,
        4,
        "two minutes on two busy cores",
    ),
    "toy-sinusoid": Experiment(
        "distance of six methods to the true posterior, regression (Gustafsson et al. 2020)",
        "toy_sinusoid",
        10,
        3,
        "40 minutes of processor time",
    ),
    "toy-classification": Experiment(
        "distance of six methods to the true posterior, classification (Gustafsson et al. 2020)",
        "toy_classification",
        10,
        3,
        "35 minutes of processor time",
    ),
    "anchor": Experiment(
        "coverage of six deep methods against an exact reference (Schmähling et al. 2022)",
        "anchor",
        10,
        2,
        "an hour and a half of processor time, extrapolated from single training steps",
    ),
    "nyu": Experiment(
        "twelve methods on NYU Depth v2 (Moukari et al. 2019, section VI)",
        "nyu",
        3,
        1,
        "days",
        reads_data=True,
    ),
    "completion": Experiment(
        "depth completion, and sigma from rendered to real (Gustafsson et al. 2020, section 4.2)",
        "completion",
        1,
        1,
        "a time that was not measured (the progress bars say what is left)",
        reads_data=True,
    ),
    "segmentation": Experiment(
        "ensembles against MC-dropout on CamVid by day and at dusk (Gustafsson et al. 2020)",
        "segmentation",
        26,
        4,
        "six hours of processor time for the trainings alone",
        reads_data=True,
    ),
    "free-space": Experiment(
        "free distance a robot must give away to be safe, by constant, relative and sigma margins",
        "free_space",
        5,
        2,
        "half an hour of processor time",
        reads_data=True,
    ),
    "mapping": Experiment(
        "maps fused from predicted depth, weighed and gated by sigma or by range",
        "mapping",
        5,
        2,
        "four minutes of processor time, extrapolated from one seed and both real drives",
        reads_data=True,
    ),
    "online-calibration": Experiment(
        "coverage with and without online calibration on bags whose second half is at night",
        "online_calibration",
        3,
        1,
        "two minutes of processor time, extrapolated from one seed",
    ),
    "shift": Experiment(
        "depth and sigma of all methods in fog, at night, behind dirt: five severities each",
        "shift",
        1,
        1,
        "seven minutes of processor time on the shipped model, extrapolated from a tenth of it",
        reads_data=True,
    ),
}
