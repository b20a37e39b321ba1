"""The metrics of each frame as a table on disk."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any


class FrameTable:
    """One row of exact figures per frame, kept in a temporary file so that memory does not grow with the frames."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", newline="", encoding="utf-8")  # noqa: SIM115 - lives as long as the table
        self._writer: csv.DictWriter | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; the first one fixes the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)

    def text(self) -> Iterable[str]:
        """The table as CSV, line by line."""
        self._file.flush()
        self._file.seek(0)
        yield from self._file
        self._file.seek(0, 2)


def flatten(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """{"ause": {"rmse": 1}} -> {"ause.rmse": 1}: nested figures as one row of a table."""
    flat: dict[str, float] = {}
    for key, value in figures.items():
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat
