"""Tables of results, as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.experiments.runner import write_atomically


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; cells are shown as they print."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write the rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_atomically(path, lambda temporary: temporary.write_text(text.getvalue()))


def spread(values: ArrayLike, digits: int = 2) -> str:
    """Median and the range from the 5th to the 95th percentile, e.g. "0.22 (0.10 to 0.41)"; NaN is left out and counted."""
    values = np.asarray(values, dtype=float)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return "none finite"
    low, middle, high = np.percentile(finite, [5, 50, 95])
    lost = values.size - finite.size
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})" + (f", {lost} not finite" if lost else "")


def mean_and_deviation(values: ArrayLike, digits: int = 3) -> str:
    """Mean and standard deviation over repetitions, e.g. "0.225 ± 0.031"."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"
