# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables and claims of the experiment on depth completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from experiments import completion_figures, figures, tables
from experiments.completion_models import ENSEMBLE, MC_DROPOUT, Settings
from uncertainty_depth import atomic
from uncertainty_depth.records import DepthPrediction, Frame

Table = tuple[list[str], list[list[str]]]
Scores = Mapping[str, Any]
Examples = Mapping[str, tuple[Frame, DepthPrediction]]
TITLES = {ENSEMBLE: "ensemble", MC_DROPOUT: "MC-dropout"}
METRICS = {"AUSE": "ause", "constant sigma": "constant", "AUCE": "auce", "RMSE (m)": "rmse"}
UNKNOWN = "–"
LEVEL = 89
"""Index of 90 % in `CONFIDENCE_LEVELS`: above it sigma is too large, below too small."""
LITERATURE = (
    ("200", "sparse-to-dense, 48,000 images", "", ".230", "", ".044", "", ""),
    ("500", "OMNI-DC", "", ".112", "", ".014", "", ""),
    ("1000", "pNCNN, published", "670,000", ".144", ".058", "", "", ".10"),
)
"""Ma and Karaman 2018; Zuo et al. 2024; Eldesokey et al. 2020. The AUSE is of another variant."""
ERRORS = ("rmse", "mae", "abs_rel", "a1")
NYU_HEADER = [
    "known pixels",
    "network",
    "weights",
    "RMSE (m)",
    "MAE (m)",
    "REL",
    "delta_1",
    "AUSE",
    "AUSE rmse (m)",
    "AUCE",
]


def write(
    output: Path,
    completed: Mapping[str, Sequence[Scores]],
    shifted: Mapping[str, Scores],
    examples: Examples,
    settings: Settings,
    quick: bool,
) -> None:
    """Write table.md, two CSV files and the plots."""
    titled = {
        "nyu": ("(a) Trained and scored on NYU.", nyu_table(completed)),
        "shifted": (
            "(b) Trained on rendered worlds. Mean ± standard deviation over sets of members of "
            "the ensemble, or over networks with dropout.",
            shifted_table(shifted),
        ),
    }
    warning = "**Quick run: only a test that the run works; its numbers mean nothing.**\n"
    parts = [warning] if quick else []
    for name, (title, table) in titled.items():
        tables.write_table(output / f"{name}.csv", *table)
        parts.append(f"{title}\n\n{tables.markdown(*table)}")
    parts += [f"- {claim}\n" for claim in claims(shifted)]
    atomic.write_text(output / "table.md", "\n".join(parts))
    sizes = [str(size) for size in settings.sizes]
    plots = completion_figures.all_figures(shifted, sizes)
    plots["examples"] = completion_figures.examples_figure(examples)
    for name, figure in plots.items():
        if quick:
            figure.text(0.0, 0.0, "quick run", color="red", fontsize=8)
        figures.save(figure, output / f"{name}.png")


def nyu_table(completed: Mapping[str, Sequence[Scores]]) -> Table:
    """Return the networks of part (a), interpolation of the same pixels, and the literature."""
    by_samples: dict[str, list[list[str]]] = {}
    plain_of: dict[str, list[str]] = {}
    for name, seeds in completed.items():
        samples, network = name.split()
        of_network = [
            *_means(seeds, "summary", "depth", ERRORS),
            tables.mean_and_deviation([scores["pooled"]["ause"] for scores in seeds]),
            *_ause_rmse(seeds),
        ]
        row = [samples, network, f"{seeds[0]['parameters']:,}", *of_network]
        by_samples.setdefault(samples, []).append(row)
        plain_of[samples] = _means(seeds[:1], "interpolation", "", ERRORS)
    rows = []
    for samples, of_samples in by_samples.items():
        plain = [samples, "linear interpolation", "0", *plain_of[samples], *[UNKNOWN] * 3]
        rows += [*of_samples, plain, *_literature(samples)]
    return NYU_HEADER, rows


def _literature(samples: str) -> Iterator[list[str]]:
    for pixels, *cells in LITERATURE:
        if pixels == samples:
            yield [pixels, *[cell or UNKNOWN for cell in cells], UNKNOWN, UNKNOWN]


def _ause_rmse(seeds: Sequence[Scores]) -> list[str]:
    uncertainty = [scores["summary"]["uncertainty"] for scores in seeds]
    return [
        tables.mean_and_deviation([scores["ause"]["rmse"] for scores in uncertainty]),
        tables.mean_and_deviation([scores["auce"] for scores in uncertainty]),
    ]


def _means(seeds: Sequence[Scores], part: str, group: str, names: Sequence[str]) -> list[str]:
    errors = [scores[part][group] if group else scores[part] for scores in seeds]
    columns = [list(map(itemgetter(name), errors)) for name in names]
    return list(map(tables.mean_and_deviation, columns))


def shifted_table(shifted: Mapping[str, Scores]) -> Table:
    """Return test set, method and number of members or passes with the metrics over the sets."""
    rows = []
    for name, of_methods in shifted.items():
        for method, title in TITLES.items():
            for size, sets in of_methods[method].items():
                columns = [list(map(itemgetter(key), sets)) for key in METRICS.values()]
                cells = list(map(_over_sets, columns))
                covered = [scores["covered"][LEVEL] for scores in sets]
                rows.append([name, title, size, str(len(sets)), *cells, _over_sets(covered)])
        plain = f"{of_methods['interpolation']['rmse']:.3f}"
        rows.append([name, "linear interpolation", *[UNKNOWN] * 5, plain, UNKNOWN])
    return ["scored on", "method", "M", "sets", *METRICS, "covered at 90 %"], rows


def _over_sets(values: Sequence[float]) -> str:
    """Return mean and population standard deviation, as the paper's code has it."""
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def claims(shifted: Mapping[str, Scores]) -> Iterator[str]:
    """Yield what the numbers say to each claim of the paper, for each test set."""
    for name, of_methods in shifted.items():
        ensemble = of_methods[ENSEMBLE]
        dropout = of_methods[MC_DROPOUT]
        smaller = [size for size in ensemble if _mean(ensemble, size) < _mean(dropout, size)]
        yield (
            f"{name}: the ensemble's mean AUSE is below MC-dropout's at {len(smaller)} of "
            f"{len(ensemble)} numbers M (M = {', '.join(smaller) or 'none'})."
        )
        for method, by_size in ((ENSEMBLE, ensemble), (MC_DROPOUT, dropout)):
            first, *_, last = by_size
            before = _mean(by_size, first, "auce")
            after = _mean(by_size, last, "auce")
            change = "improves" if after < before else "worsens"
            yield (
                f"{name}: AUCE of {TITLES[method]} {change} from {before:.3f} (M = {first}) to "
                f"{after:.3f} (M = {last})."
            )


def _mean(by_size: Scores, size: str, key: str = "ause") -> float:
    return float(np.mean([scores[key] for scores in by_size[size]]))
