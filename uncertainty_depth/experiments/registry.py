# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Names of the experiments, known without importing any of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from uncertainty_depth.errors import ConfigError


@dataclass(frozen=True)
class Experiment:
    """One question of a paper.

    Attributes:
        description: one line for the command line's help.
        module: where `run(output, seeds, quick)`, with `data` where it reads any, lives, below this package.
        seeds: repetitions of a full run when the user names none.
        quick_seeds: repetitions of a quick run when the user names none.
        reads_data: whether `run` also takes the folder of a data set.
    """

    description: str
    module: str
    seeds: int
    quick_seeds: int
    reads_data: bool = False

    def run(
        self, output: Path, seeds: int | None = None, quick: bool = False, data: Path | None = None
    ) -> None:
        """Write table, JSON and figures into the folder `output`; what an earlier run finished there is kept.

        Args:
            output: folder, created where missing.
            seeds: number of repetitions; None takes the experiment's own.
            quick: a small version, under two minutes on two cores.
            data: folder of the data set; None leaves it to the experiment where to look.

        Raises:
            ConfigError: a folder is given to an experiment that makes its own data.
            UncertaintyDepthError: a library the experiment needs is not installed.
        """
        if data is not None and not self.reads_data:
            raise ConfigError(
                f"data is {data}, but this experiment makes its own; expected no --data"
            )
        module = importlib.import_module(f"{__package__}.{self.module}")
        module.run(
            Path(output),
            seeds or (self.quick_seeds if quick else self.seeds),
            quick,
            *([] if data is None else [data]),
        )


EXPERIMENTS: dict[str, Experiment] = {
    "toy-cubic": Experiment(
        "n-MeRCI of four ensembles on a noisy cubic (Moukari et al. 2019, section V)",
        "toy_cubic",
        20,
        4,
    ),
    "toy-sinusoid": Experiment(
        "distance of six methods to the true posterior, regression (Gustafsson et al. 2020, section 4.1)",
        "toy_sinusoid",
        10,
        3,
    ),
    "toy-classification": Experiment(
        "distance of six methods to the true posterior, classification (Gustafsson et al. 2020, section 4.1)",
        "toy_classification",
        10,
        3,
    ),
    "anchor": Experiment(
        "coverage of six deep methods against an exact reference (Schmähling et al. 2022)",
        "anchor",
        10,
        2,
    ),
    "nyu": Experiment(
        "eight methods and five recipes on NYU Depth v2 (Moukari et al. 2019, section VI)",
        "nyu",
        3,
        1,
        reads_data=True,
    ),
}
