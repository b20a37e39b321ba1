# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables and plot of both toy problems of `posterior_toys`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from experiments import figures, tables
from experiments.posterior_methods import MOMENTUM, SGD, Schedule
from experiments.posterior_toys import (
    ENSEMBLE,
    EXAMPLES,
    MC_DROPOUT,
    Comparison,
    Distances,
)
from uncertainty_depth.core import atomic, strict

Draw = Callable[[Axes, Any, str], object]
"""Draws a prediction into a panel, in a colour."""


def report(
    output: Path,
    compared: Comparison,
    draw: Draw,
    schedule: Schedule,
    seeds: int,
    quick: bool,
    mixed: dict[str, Any],
) -> None:
    """Write table.md, table.csv, summary.json, plots of all distances against M, and examples.

    Mean and sample standard deviation over the repetitions.
    """
    distances = compared.distances
    names = list(mixed["floor"])
    header = ["distance", "method", *(f"M = {count}" for count in schedule.counts)]
    rows = []
    for name in names:
        for method, by_count in distances.items():
            cells = []
            for count in schedule.counts:
                values = by_count.get(count, {}).get(name)
                cells.append("" if values is None else tables.mean_and_deviation(values))
            rows.append([name, method, *cells])
    intro = (
        f"{seeds} repetitions; mean ± standard deviation. Quick run: {'yes' if quick else 'no'}. "
        f"{describe(mixed, schedule)}"
    )
    atomic.write_text(output / "table.md", f"{intro}\n\n{tables.markdown(header, rows)}")
    tables.write_table(output / "table.csv", header, rows)
    strict.write_json(
        output / "summary.json",
        {
            "settings": asdict(schedule),
            "seeds": seeds,
            "quick": quick,
            "reference": mixed,
            "distances": distances,
        },
    )
    for name, methods in distance_plots(distances):
        selection = {method: distances[method] for method in methods}
        figures.save(plot_distances(selection, names, mixed["floor"]), output / f"{name}.png")
    figures.save(plot_examples(compared.examples, draw), output / "examples.png")


def distance_plots(methods: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each plot of distances, and the methods in it.

    The paper's figure 5, figures 10 and 11 (other optimizers; 12 is in the latter, whose chains
    are of both lengths), and 13 (dropout rates).
    """
    methods = list(methods)
    chains = [name for name in methods if name.startswith(("sgld", "sghmc"))]
    yield "kl", [ENSEMBLE, MC_DROPOUT, *chains]
    for optimizer in (SGD, MOMENTUM):
        if f"{ENSEMBLE}-{optimizer}" in methods:
            of_optimizer = [f"{ENSEMBLE}-{optimizer}", f"{MC_DROPOUT}-{optimizer}"]
            yield f"kl_{optimizer}", [*of_optimizer, *chains]
    rates = [name for name in methods if name[len(MC_DROPOUT) + 1 :].startswith("0.")]
    yield "kl_dropout", [MC_DROPOUT, *rates]


def plot_examples(examples: Mapping[str, Sequence[Any]], draw: Draw) -> figures.Figure:
    """Plot predictions of the first repetitions, a row for each method (figures 14 to 21)."""
    methods = dict(distance_plots(examples))["kl"]
    figure, axes = figures.panels(len(methods), EXAMPLES, 2.2, 1.9, sharex=True, sharey=True)
    for row, method, color in zip(axes, methods, figures.COLORS, strict=False):
        for axis, prediction in zip(row, examples.get(method, ()), strict=False):
            draw(axis, prediction, color)
        row[0].set_ylabel(method)
    return figure


def describe(mixed: dict[str, Any], schedule: Schedule) -> str:
    """Return a description of the HMC reference and of its convergence."""
    budget = schedule.hmc
    floor = ", ".join(f"{name} {value:.3g}" for name, value in mixed["floor"].items())
    return (
        f"HMC: {budget.chains} chains of {budget.samples} samples after {budget.warmup} of "
        f"warm-up; {mixed['diverged']} samples diverged, {mixed['steps']:.0f} gradients per "
        f"sample. R-hat of the energy {mixed['energy']:.2f}; of the predictions, median and max, "
        f"{mixed['inside'][0]:.2f} and {mixed['inside'][1]:.2f} inside the data, "
        f"{mixed['outside'][0]:.2f} and {mixed['outside'][1]:.2f} outside. "
        f"Distance between the two halves of the chains: {floor}."
    )


def plot_distances(
    distances: Distances, names: Sequence[str], floor: dict[str, float]
) -> figures.Figure:
    """Plot the distance to HMC against M, as the paper does, one panel per distance.

    Median and quartiles: one diverging repetition of ten moves mean and deviation by several times
    their size. Dotted: the distance between the halves of the reference.
    """
    figure, axes = figures.panels(1, len(names), width=4.6, height=3.6)
    counts = sorted(set().union(*distances.values()))
    offsets = np.linspace(-0.06, 0.06, len(distances))
    for axis, name in zip(axes.flat, names, strict=True):
        for (method, by_count), offset, color in zip(
            distances.items(), offsets, figures.COLORS, strict=False
        ):
            values = {count: cells[name] for count, cells in by_count.items()}
            _plot_method(axis, values, offset, method, color)
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


def _plot_method(
    axis: Axes, values: Mapping[int, Sequence[float]], offset: float, method: str, color: str
) -> None:
    """Plot median and quartiles of the finite values of each M."""
    counts = []
    quartiles = []
    for count, of_count in values.items():
        numbers, _ = tables.finite(of_count)
        if numbers.size:
            counts.append(count)
            quartiles.append(np.percentile(numbers, (25, 50, 75)))
    low, median, high = np.reshape(quartiles, (-1, 3)).T
    axis.errorbar(
        np.array(counts) * 2**offset,
        median,
        (median - low, high - median),
        color=color,
        label=method,
        marker="o",
        markersize=3,
        capsize=2,
    )
