# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write the history of a training as a plot and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from uncertainty_depth import atomic
from uncertainty_depth.figure_bytes import encoded

CURVES = "curves"


def write_table(folder: Path, name: str, history: Sequence[dict[str, float]]) -> None:
    """Write NAME.csv: one row per epoch, counted from 1."""
    names = list(history[0])
    lines = [",".join(["epoch", *names])]
    for epoch, row in enumerate(history, 1):
        values = [f"{row[name]:.6g}" for name in names]
        lines.append(",".join([str(epoch), *values]))
    atomic.write_text(folder / f"{name}.csv", "\n".join(lines) + "\n")


def write_plot(
    folder: Path, name: str, history: Sequence[dict[str, float]], saved_epochs: Sequence[int]
) -> None:
    """Write NAME.png; `saved_epochs` are the epochs (from 0) whose weights are saved."""
    atomic.write_bytes(folder / f"{name}.png", encoded(plot_curves(history, saved_epochs), 100))


def plot_curves(history: Sequence[dict[str, float]], saved_epochs: Sequence[int]) -> Figure:
    """Return plots of loss, abs_rel and rmse by epoch, counted from 1; saved epochs are marked."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    loss, abs_rel, rmse = figure.subplots(1, 3)
    _plot(
        loss,
        "loss",
        history,
        {"train_loss": "training", "validation_loss": "validation"},
        saved_epochs,
    )
    _plot(abs_rel, "absolute relative error", history, {"abs_rel": "validation"}, saved_epochs)
    _plot(rmse, "RMSE (m)", history, {"rmse": "validation"}, saved_epochs)
    return figure


def _plot(
    axes: Axes,
    title: str,
    history: Sequence[dict[str, float]],
    lines: dict[str, str],
    saved_epochs: Sequence[int],
) -> None:
    epochs = range(1, len(history) + 1)
    for key, label in lines.items():
        axes.plot(epochs, [row[key] for row in history], marker=".", label=label)
    last = next(reversed(lines))
    axes.plot(
        [epoch + 1 for epoch in saved_epochs],
        [history[epoch][last] for epoch in saved_epochs],
        "o",
        mfc="none",
        color="black",
        label="weights saved",
    )
    axes.set(title=title, xlabel="epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()
