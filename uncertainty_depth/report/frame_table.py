# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The metrics of every frame, as a table on disk."""

from __future__ import annotations

import csv
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from uncertainty_depth.errors import SourceError
from uncertainty_depth.metrics.state import PACKED_BYTES, Block, packed, unpacked

CHUNK_BYTES = 1 << 20
LENGTH_BYTES = 4
KEYS = ("source", "frame", "stamp_ns")
"""Columns that name the frame, its source only where there are several; the others are metrics."""


@dataclass(frozen=True)
class FrameRows:
    """The rows of a table at one moment; the table may have grown since.

    Attributes:
        path: the table's file; the frames' sums are beside it, see `sums_path`.
        size: size of these rows, bytes.
        sums_size: size of these frames' sums, bytes.
        owner: keeps temporary files alive after their table is closed, in this process only.
    """

    path: Path
    size: int
    sums_size: int = 0
    owner: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the owner, which cannot leave the process."""
        return FrameRows, (self.path, self.size, self.sums_size)

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
        """Copy the rows and the sums to another file in chunks, so that memory stays bounded."""
        _copy(self.path, path, self.size)
        _copy(sums_path(self.path), sums_path(path), self.sums_size)

    def blocks(self) -> Iterator[Block]:
        """Yield the sums of each frame.

        Raises:
            SourceError: they are damaged, or do not belong to the rows.
        """
        path = sums_path(self.path)
        try:
            with path.open("rb") as file:
                remaining = self.sums_size
                while remaining > 0:
                    size = int.from_bytes(file.read(LENGTH_BYTES), "little")
                    if not 0 < size <= PACKED_BYTES:
                        raise ValueError(f"a frame of {size} bytes")
                    yield unpacked(file.read(size))
                    remaining -= LENGTH_BYTES + size
        except (OSError, ValueError, zlib.error) as error:
            raise SourceError(
                f"{path} does not hold the sums of the frames ({error}); expected the file that "
                "was written with frames.csv"
            ) from error

    def dicts(self) -> Iterator[dict[str, str]]:
        """Yield each row as texts by column.

        Raises:
            SourceError: the table is missing or damaged, or has something else than numbers.
        """
        try:
            with self.path.open("rb") as source:
                for row in csv.DictReader(_lines(source, self.size)):
                    int(row["stamp_ns"])
                    for name in row.keys() - {*KEYS}:
                        float(row[name])
                    yield row
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            raise SourceError(
                f"{self.path} is not the table of frames ({error!r}); expected the file that was "
                "written with the report"
            ) from error

    def with_sums(self) -> Iterator[tuple[dict[str, str], Block]]:
        """Yield each row and the sums of its frame.

        Raises:
            SourceError: as `dicts` and `blocks`, or their numbers differ.
        """
        try:
            yield from zip(self.dicts(), self.blocks(), strict=True)
        except ValueError as error:
            raise SourceError(
                f"{self.path} and {sums_path(self.path).name} are of different numbers of frames; "
                "expected two files that were written together"
            ) from error


def sums_path(path: Path) -> Path:
    """Return the path of the sums that belong to a table of frames."""
    return path.with_suffix(".sums")


def _copy(source: Path, target: Path, size: int) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        while size:
            chunk = reader.read(min(size, CHUNK_BYTES))
            if not chunk:
                raise SourceError(f"{source} is {size} bytes too short")
            size -= writer.write(chunk)


def _lines(file: BinaryIO, size: int) -> Iterator[str]:
    """Yield the lines of the first `size` bytes."""
    while size > 0 and (line := file.readline()):
        size -= len(line)
        yield line.decode("utf-8")


class FrameTable:
    """One row of metrics per frame and its sums, kept on disk so that memory stays bounded.

    The sums allow scoring any frames together again, as `compare` does with common frames: two
    reports hardly ever have all frames in common, and only means follow from the rows. A table's
    copy or pickle is its `FrameRows` at that moment.
    """

    def __init__(self, path: Path | None = None, size: int = 0, sums_size: int = 0) -> None:
        """Open a new or an existing table.

        Args:
            path: its file; None for a temporary one, deleted with the table.
            size: size of the rows already in the file, bytes; the rest is truncated.
            sums_size: size of the sums already in their file, bytes.

        Raises:
            SourceError: a file is shorter.
            OSError: a file cannot be written.
        """
        self._folder = None if path else tempfile.TemporaryDirectory(prefix="frames_")
        self._path = path or Path(self._folder.name if self._folder else "") / "frames.csv"
        self._file = self._path.open("a+", newline="", encoding="utf-8")
        self._sums = sums_path(self._path).open("ab")
        for file, expected in ((self._file, size), (self._sums, sums_size)):
            found = os.fstat(file.fileno()).st_size
            if found < expected:
                raise SourceError(f"{file.name} has {found} bytes; expected at least {expected}")
            file.truncate(expected)
        self._writer: csv.DictWriter | None = None
        if size:
            self._file.seek(0)
            self._writer = csv.DictWriter(self._file, next(csv.reader(self._file)))

    def add(self, row: Mapping[str, Any], block: Block) -> None:
        """Append a frame; the first one fixes the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)
        data = packed(block)
        self._sums.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def rows(self) -> FrameRows:
        """Return the current rows."""
        self._file.flush()
        self._sums.flush()
        size = os.fstat(self._file.fileno()).st_size
        sums_size = os.fstat(self._sums.fileno()).st_size
        return FrameRows(self._path, size, sums_size, self._folder)

    def write(self, path: Path) -> None:
        """Copy the current rows to a CSV file."""
        self.rows().write(path)

    def text(self) -> Iterator[str]:
        """Yield the table as CSV, line by line."""
        rows = self.rows()
        with rows.path.open(newline="", encoding="utf-8") as file:
            yield from file

    def close(self) -> None:
        """Close the files; temporary ones are deleted."""
        self._file.close()
        self._sums.close()
        if self._folder:
            self._folder.cleanup()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the current rows: an open file cannot be pickled."""
        return self.rows().__reduce__()

    def __deepcopy__(self, _: dict[int, Any]) -> FrameRows:
        """Return the current rows."""
        return self.rows()
