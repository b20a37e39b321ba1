"""Names of the experiments, known without importing any of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Experiment:
    """One question of a paper.

    Attributes:
        description: one line for the command line's help.
        module: where `run(output, seeds, quick)` lives, below this package.
        seeds: repetitions of a full run when the user names none.
        quick_seeds: repetitions of a quick run when the user names none.
    """

    description: str
    module: str
    seeds: int
    quick_seeds: int

    def run(self, output: Path, seeds: int | None = None, quick: bool = False) -> None:
        """Write table, JSON and figures into the folder `output`; what an earlier run finished there is kept.

        Args:
            output: folder, created where missing.
            seeds: number of repetitions; None takes the experiment's own.
            quick: a small version, under two minutes on two cores.

        Raises:
            UncertaintyDepthError: a library the experiment needs is not installed.
        """
        module = importlib.import_module(f"{__package__}.{self.module}")
        module.run(Path(output), seeds or (self.quick_seeds if quick else self.seeds), quick)


EXPERIMENTS: dict[str, Experiment] = {
    "toy-cubic": Experiment("n-MeRCI of four ensembles on a noisy cubic (Moukari et al. 2019, section V)", "toy_cubic", 20, 4),
    "toy-sinusoid": Experiment(
        "distance of six methods to the true posterior, regression (Gustafsson et al. 2020, section 4.1)", "toy_sinusoid", 10, 3
    ),
    "toy-classification": Experiment(
        "distance of six methods to the true posterior, classification (Gustafsson et al. 2020, section 4.1)", "toy_classification", 10, 3
    ),
    "anchor": Experiment("coverage of six deep methods against an exact reference (Schmähling et al. 2022)", "anchor", 10, 2),
}
