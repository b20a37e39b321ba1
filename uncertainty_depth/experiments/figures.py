# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the experiments' figures share: size, colours that colour-blind readers can tell apart, and how they are saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from uncertainty_depth import atomic

COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999933",
)  # Okabe and Ito 2008, and olive


def panels(
    rows: int, columns: int, width: float = 4.0, height: float = 3.2, **options: object
) -> tuple[Figure, NDArray[np.object_]]:
    """A figure of `rows` by `columns` panels, each `width` by `height` inches."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def band(
    axes: Axes,
    x: NDArray,
    values: NDArray,
    color: str,
    label: str,
    percentiles: tuple[float, float] = (25, 75),
) -> None:
    """Median over the repetitions (first axis of `values`) as a line, the range between two percentiles as a band; NaN is left out."""
    low, middle, high = np.nanpercentile(
        np.asarray(values, dtype=float), [percentiles[0], 50, percentiles[1]], axis=0
    )
    axes.plot(x, middle, color=color, label=label)
    axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG."""
    with atomic.replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
