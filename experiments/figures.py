# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Size, colours and saving of the experiments' figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from uncertainty_depth.core import atomic
from uncertainty_depth.report.images import encoded

COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999933",
    "#882255",
)
"""Okabe and Ito 2008, which colour-blind readers can tell apart, olive and wine."""


def panels(
    rows: int, columns: int, width: float = 4.0, height: float = 3.2, **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """Return a figure of `rows` by `columns` panels of `width` by `height` inches, and them."""
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
    """Plot the median over the first axis as a line, and two percentiles as a band.

    NaN is left out.

    Args:
        axes: to draw into.
        x: (n,).
        values: (repetitions, n).
        color: of line and band.
        label: in the legend.
        percentiles: lower and upper edge of the band.
    """
    low, middle, high = np.nanpercentile(
        np.asarray(values, dtype=float), [percentiles[0], 50, percentiles[1]], axis=0
    )
    axes.plot(x, middle, color=color, label=label)
    axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG."""
    atomic.write_bytes(path, encoded(figure, 130))
