"""The metrics of each frame as a table on disk."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from uncertainty_depth.errors import SourceError

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FrameRows:
    """The rows a table had at some time; the table may have grown since.

    Attributes:
        path: of the table's file.
        size: bytes that are these rows.
        owner: keeps a temporary file alive after its table is gone; in this process alone.
    """

    path: Path
    size: int
    owner: TextIO | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the owner, which cannot leave the process."""
        return FrameRows, (self.path, self.size)

    def __deepcopy__(self, _: dict[int, Any]) -> FrameRows:
        """Rows do not change."""
        return self

    def rows(self) -> FrameRows:
        """Return these rows: in a copy of an evaluation they stand in for its table."""
        return self

    def write(self, path: Path) -> None:
        """Copy the rows to a CSV file, in pieces: memory does not grow with the frames."""
        with self.path.open("rb") as source, path.open("wb") as target:
            left = self.size
            while left:
                chunk = source.read(min(left, CHUNK_BYTES))
                if not chunk:
                    raise SourceError(f"{self.path} is shorter than {self.size} bytes")
                left -= target.write(chunk)


class FrameTable:
    """One row of exact metrics per frame, on disk, so that memory does not grow with the frames.

    A copy or a pickle of it is its `FrameRows` of that moment.
    """

    def __init__(self, path: Path | None = None, size: int = 0) -> None:
        """Start or go on with a table.

        Args:
            path: its file; None takes a temporary one, which goes with the table.
            size: bytes of the file that are rows of this table; what follows is cut off.

        Raises:
            SourceError: the file is shorter than that.
            OSError: it cannot be written.
        """
        if path is None:
            self._file = tempfile.NamedTemporaryFile("a+", newline="", encoding="utf-8")  # noqa: SIM115 - lives as long as the table
            self._path = Path(self._file.name)
        else:
            self._file = path.open("a+", newline="", encoding="utf-8")
            self._path = path
        found = os.fstat(self._file.fileno()).st_size
        if found < size:
            raise SourceError(f"{self._path} has {found} bytes; expected at least {size}")
        self._file.truncate(size)
        self._writer = self._writer_of_header() if size else None

    def _writer_of_header(self) -> csv.DictWriter:
        self._file.seek(0)
        return csv.DictWriter(self._file, next(csv.reader(self._file)))

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; the first one fixes the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)

    def rows(self) -> FrameRows:
        """What the table holds now."""
        self._file.flush()
        return FrameRows(self._path, os.fstat(self._file.fileno()).st_size, self._file)

    def write(self, path: Path) -> None:
        """Copy what the table holds now to a CSV file."""
        self.rows().write(path)

    def text(self) -> Iterator[str]:
        """The table as CSV, line by line."""
        rows = self.rows()
        with rows.path.open(newline="", encoding="utf-8") as file:
            yield from file

    def close(self) -> None:
        """Let go of the file; a temporary one is gone with it."""
        self._file.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Its rows of now: a file that is written to cannot be copied."""
        return self.rows().__reduce__()

    def __deepcopy__(self, _: dict[int, Any]) -> FrameRows:
        """Its rows of now."""
        return self.rows()


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
