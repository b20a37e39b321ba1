# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The metrics of every frame, as a table on disk."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from uncertainty_depth.errors import SourceError

CHUNK_BYTES = 1 << 20
KEYS = ("source", "frame", "stamp_ns")
"""Columns that name the frame, its source only where there are several; the others are metrics."""


@dataclass(frozen=True)
class FrameRows:
    """The rows of a table at one moment; the table may have grown since.

    Attributes:
        path: of the table's file.
        size: of these rows, bytes.
        owner: keeps a temporary file alive after its table is closed, in this process only.
    """

    path: Path
    size: int
    owner: TextIO | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the owner, which cannot leave the process."""
        return FrameRows, (self.path, self.size)

    def __deepcopy__(self, _: dict[int, Any]) -> FrameRows:
        """Return itself: rows do not change."""
        return self

    def rows(self) -> FrameRows:
        """Return these rows: in a copy of an evaluation they replace its table."""
        return self

    def column(self, name: str) -> list[float]:
        """Return the values of a column, in the order of the frames; empty without rows."""
        return [float(row[name]) for row in self.dicts()]

    def write(self, path: Path) -> None:
        """Copy the rows to a CSV file in chunks, so that memory stays bounded."""
        with self.path.open("rb") as source, path.open("wb") as target:
            remaining = self.size
            while remaining:
                chunk = source.read(min(remaining, CHUNK_BYTES))
                if not chunk:
                    raise SourceError(f"{self.path} is shorter than {self.size} bytes")
                remaining -= target.write(chunk)

    def dicts(self) -> Iterator[dict[str, str]]:
        """Yield each row as texts by column."""
        with self.path.open("rb") as source:
            yield from csv.DictReader(_lines(source, self.size))

    def write_json_lines(self, path: Path) -> None:
        """Write one JSON object a row, the metrics by dotted name, null for NaN and infinities."""
        with path.open("w", encoding="utf-8") as target:
            for row in self.dicts():
                target.write(json.dumps(_typed(row), allow_nan=False) + "\n")


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of texts as numbers, but for the name of the frame."""
    numbers = {name: float(text) for name, text in row.items() if name not in KEYS}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    keys = {name: row[name] for name in KEYS if name in row}
    return {**keys, "stamp_ns": int(row["stamp_ns"]), **finite}


def _lines(file: BinaryIO, size: int) -> Iterator[str]:
    """Yield the lines of the first `size` bytes."""
    while size > 0 and (line := file.readline()):
        size -= len(line)
        yield line.decode("utf-8")


class FrameTable:
    """One row of exact metrics per frame, kept on disk so that memory stays bounded.

    A copy or a pickle of a table is its `FrameRows` of that moment.
    """

    def __init__(self, path: Path | None = None, size: int = 0) -> None:
        """Open a new or an existing table.

        Args:
            path: its file; None for a temporary one, deleted with the table.
            size: of the rows already in the file, bytes; what follows is truncated.

        Raises:
            SourceError: the file is shorter than `size`.
            OSError: the file cannot be written.
        """
        if path is None:
            # Closed with the table.
            self._file: Any = tempfile.NamedTemporaryFile(  # noqa: SIM115
                "a+", newline="", encoding="utf-8"
            )
            self._path = Path(self._file.name)
        else:
            self._file = path.open("a+", newline="", encoding="utf-8")
            self._path = path
        file_size = os.fstat(self._file.fileno()).st_size
        if file_size < size:
            raise SourceError(f"{self._path} has {file_size} bytes; expected at least {size}")
        self._file.truncate(size)
        self._writer: csv.DictWriter | None = None
        if size:
            self._file.seek(0)
            self._writer = csv.DictWriter(self._file, next(csv.reader(self._file)))

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; the first one fixes the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)

    def rows(self) -> FrameRows:
        """Return the current rows."""
        self._file.flush()
        return FrameRows(self._path, os.fstat(self._file.fileno()).st_size, self._file)

    def write(self, path: Path) -> None:
        """Copy the current rows to a CSV file."""
        self.rows().write(path)

    def write_json_lines(self, path: Path) -> None:
        """Write the current rows, one JSON object each."""
        self.rows().write_json_lines(path)

    def text(self) -> Iterator[str]:
        """Yield the table as CSV, line by line."""
        rows = self.rows()
        with rows.path.open(newline="", encoding="utf-8") as file:
            yield from file

    def close(self) -> None:
        """Close the file; a temporary one is deleted."""
        self._file.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the current rows: an open file cannot be pickled."""
        return self.rows().__reduce__()

    def __deepcopy__(self, _: dict[int, Any]) -> FrameRows:
        """Return the current rows."""
        return self.rows()


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested metrics as one row: {"ause": {"rmse": 1}} becomes {"ause.rmse": 1}."""
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat
