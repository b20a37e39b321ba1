# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables and figure of both toy problems of `posterior_toys`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogFormatter

from uncertainty_depth import atomic, strict_json
from uncertainty_depth.experiments import figures, tables
from uncertainty_depth.experiments.posterior_toys import Schedule


def report(
    output: Path, found: dict, schedule: Schedule, seeds: int, quick: bool, mixed: dict[str, Any]
) -> None:
    """table.md, table.csv, summary.json and kl.png: every distance against M, mean and standard deviation over the repetitions."""
    names = list(mixed["floor"])
    header = ["distance", "method", *(f"M = {count}" for count in schedule.counts)]
    rows = [
        [
            name,
            method,
            *(
                tables.mean_and_deviation(cells[count][name]) if count in cells else ""
                for count in schedule.counts
            ),
        ]
        for name in names
        for method, cells in found.items()
    ]
    intro = f"{seeds} repetitions; mean ± standard deviation. Quick run: {'yes' if quick else 'no'}. {describe(mixed, schedule)}"
    atomic.write_text(output / "table.md", f"{intro}\n\n{tables.markdown(header, rows)}")
    tables.write_table(output / "table.csv", header, rows)
    strict_json.write(
        output / "summary.json",
        {
            "settings": asdict(schedule),
            "seeds": seeds,
            "quick": quick,
            "reference": mixed,
            "distances": found,
        },
    )
    figures.save(distance_figure(found, names, mixed["floor"]), output / "kl.png")


def describe(mixed: dict[str, Any], schedule: Schedule) -> str:
    """The reference and its faults, for the reader of the table."""
    budget = schedule.hmc
    return (
        f"HMC: {budget.chains} chains of {budget.samples} samples after {budget.warmup} of warm-up; {mixed['diverged']} samples diverged, "
        f"{mixed['steps']:.0f} gradients per sample. R-hat of the energy {mixed['energy']:.2f}; of the predictions, median and greatest, "
        f"{mixed['inside'][0]:.2f} and {mixed['inside'][1]:.2f} inside the data, {mixed['outside'][0]:.2f} and {mixed['outside'][1]:.2f} outside. "
        f"The two halves of the chains, from each other: {', '.join(f'{name} {value:.3g}' for name, value in mixed['floor'].items())}."
    )


def distance_figure(found: dict, names: Sequence[str], floor: dict[str, float]) -> figures.Figure:
    """The paper's figure: distance to HMC against M, one panel per distance; dotted where the reference's halves lie from each other.

    Median and quartiles: one repetition of ten that goes astray outside the data moves mean and deviation by several times their size.
    """
    figure, axes = figures.panels(1, len(names), width=4.6, height=3.6)
    counts = sorted({count for cells in found.values() for count in cells})
    beside = np.linspace(-0.06, 0.06, len(found))
    for axis, name in zip(axes.flat, names, strict=True):
        for (method, cells), shift, color in zip(
            found.items(), beside, figures.COLORS, strict=False
        ):
            known = {
                count: values
                for count in cells
                if (values := tables.finite(cells[count][name])[0]).size
            }
            low, median, high = (
                np.array([np.percentile(values, (25, 50, 75)) for values in known.values()])
                .reshape(-1, 3)
                .T
            )
            style = {"color": color, "label": method, "marker": "o", "markersize": 3, "capsize": 2}
            axis.errorbar(
                np.array(list(known)) * 2**shift, median, (median - low, high - median), **style
            )
        axis.axhline(floor[name], color="0.6", linestyle=":", linewidth=1)
        axis.set(
            title=name,
            xlabel="number of samples M",
            ylabel="KL from HMC: median, quartiles",
            xscale="log",
            yscale="log",
        )
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.xaxis.minorticks_off()
        axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
        axis.legend(fontsize=7)
    return figure
