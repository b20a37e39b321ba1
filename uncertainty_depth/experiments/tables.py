# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of results, as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth import atomic


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; cells are shown as they print."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write the rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    atomic.write_text(path, text.getvalue())


def finite(values: ArrayLike) -> tuple[NDArray[np.float64], str]:
    """The finite ones of the values, None counting as NaN, and what to write behind a figure made of them about those left out."""
    values = np.asarray(values, dtype=float)
    known = values[np.isfinite(values)]
    return known, f", {values.size - known.size} not finite" if known.size < values.size else ""


def spread(values: ArrayLike, digits: int = 2) -> str:
    """Median and the range from the 5th to the 95th percentile, e.g. "0.22 (0.10 to 0.41)"; what is not finite is left out and counted."""
    known, left_out = finite(values)
    if not known.size:
        return "none finite"
    low, middle, high = np.percentile(known, [5, 50, 95])
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}){left_out}"


def mean_and_deviation(values: ArrayLike, digits: int = 3) -> str:
    """Return mean and sample standard deviation over repetitions, e.g. "0.225 ± 0.031".

    What is not finite is left out and counted; a single value has no deviation.
    """
    known, left_out = finite(values)
    if not known.size:
        return "none finite"
    deviation = f" ± {known.std(ddof=1):.{digits}f}" if known.size > 1 else ""
    return f"{known.mean():.{digits}f}{deviation}{left_out}"
