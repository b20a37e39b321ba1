# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of results, as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core import atomic


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; cells are shown as they print."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [" | ".join(map(str, line)) for line in lines]
    return "".join(f"| {line} |\n" for line in cells)


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write the rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    atomic.write_text(path, text.getvalue())


def finite(values: ArrayLike | Sequence[float | None]) -> tuple[NDArray[np.float64], str]:
    """Return the finite values, and a note on how many are not, e.g. ", 2 not finite".

    None counts as NaN; the note is empty if all are finite.
    """
    numbers = np.asarray(values, dtype=float)
    finite_values = numbers[np.isfinite(numbers)]
    missing = numbers.size - finite_values.size
    return finite_values, f", {missing} not finite" if missing else ""


def spread(values: ArrayLike, digits: int = 2) -> str:
    """Return the median and the 5th to 95th percentile, e.g. "0.22 (0.10 to 0.41)".

    What is not finite is left out and counted.
    """
    finite_values, left_out = finite(values)
    if not finite_values.size:
        return "none finite"
    low, middle, high = np.percentile(finite_values, [5, 50, 95])
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}){left_out}"


def mean_and_deviation(values: ArrayLike, digits: int = 3) -> str:
    """Return mean and sample standard deviation over repetitions, e.g. "0.225 ± 0.031".

    What is not finite is left out and counted; a single value has no deviation.
    """
    finite_values, left_out = finite(values)
    if not finite_values.size:
        return "none finite"
    deviation = f" ± {finite_values.std(ddof=1):.{digits}f}" if finite_values.size > 1 else ""
    return f"{finite_values.mean():.{digits}f}{deviation}{left_out}"
