# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every frame that was scored, on disk: its metrics for people, its sums for `compare`, `merge`.

The sums allow scoring any frames together again, as `compare` does with common frames: two reports
hardly ever have all frames in common, and only means follow from the rows. `frames.csv` is never
read back.
"""

from __future__ import annotations

import csv
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.metrics.state import BLOCK, Block, packed, unpacked

ROWS_FILE = "frames.csv"
SUMS_FILE = "frames.sums"
CHUNK_BYTES = 1 << 20
LENGTH_BYTES = 4
MAX_NAME_BYTES = 1 << 16


@dataclass(frozen=True)
class FrameName:
    """A frame's name, stamp, `continues` if the camera stood still, and source if several."""

    frame: str
    stamp_ns: int
    continues: bool
    source: str = ""


@dataclass(frozen=True)
class SavedFrames:
    """The frames in a table at one moment, by its files' sizes; `owner` keeps temporary ones."""

    folder: Path
    sums_size: int | None = None
    rows_size: int | None = None
    owner: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the owner, which cannot leave the process."""
        return SavedFrames, (self.folder, self.sums_size, self.rows_size)

    def __deepcopy__(self, _: dict[int, Any]) -> SavedFrames:
        """Return itself: these frames do not change."""
        return self

    def saved(self) -> SavedFrames:
        """Return itself: in a copy of an evaluation it replaces the table."""
        return self

    def write(self, folder: Path) -> None:
        """Copy both files to another folder in chunks, so that memory stays bounded."""
        for name, size in ((ROWS_FILE, self.rows_size), (SUMS_FILE, self.sums_size)):
            path = self.folder / name
            rest = path.stat().st_size if size is None else size
            with strict.open_file(path) as reader, (folder / name).open("wb") as writer:
                while rest:
                    chunk = reader.read(min(rest, CHUNK_BYTES))
                    if not chunk:
                        raise SourceError(f"{path} is {rest} bytes too short")
                    rest -= writer.write(chunk)

    def __iter__(self) -> Iterator[tuple[FrameName, Block]]:
        """Yield each frame's name and its sums; raise `SourceError` if their file is damaged."""
        path = self.folder / SUMS_FILE
        try:
            with strict.open_file(path) as file:
                end = os.fstat(file.fileno()).st_size if self.sums_size is None else self.sums_size
                while file.tell() < end:
                    names = strict.read_json(file.readline(MAX_NAME_BYTES), MAX_NAME_BYTES)
                    name = FrameName(
                        str(names["frame"]),
                        int(names["stamp_ns"]),
                        bool(names["continues"]),
                        str(names["source"]),
                    )
                    size = int.from_bytes(file.read(LENGTH_BYTES), "little")
                    if not 0 < size <= BLOCK.itemsize:
                        raise ValueError(f"a frame of {size} bytes")
                    yield name, unpacked(file.read(size))
        except (OSError, ValueError, KeyError, TypeError, zlib.error, strict.FormatError) as error:
            raise SourceError(
                f"{path} does not hold the sums of the frames ({error}); expected the file that "
                "was written with the report"
            ) from error


class FrameTable:
    """A running evaluation's frames, in temporary files so that memory stays bounded.

    The files are deleted with the table. Its copy or pickle is its `SavedFrames` at that moment.
    """

    def __init__(self) -> None:
        """Open new files."""
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        self._rows = (folder / ROWS_FILE).open("w", newline="", encoding="utf-8")
        self._sums = (folder / SUMS_FILE).open("wb")
        self._writer: csv.DictWriter | None = None

    def add(self, name: FrameName, metrics: Mapping[str, float], block: Block) -> None:
        """Append a frame; the first one fixes the columns."""
        source = {"source": name.source} if name.source else {}
        row = {**source, "frame": name.frame, "stamp_ns": name.stamp_ns, **metrics}
        if self._writer is None:
            self._writer = csv.DictWriter(self._rows, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)
        data = packed(block)
        self._sums.write(json.dumps(asdict(name)).encode() + b"\n")
        self._sums.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def saved(self) -> SavedFrames:
        """Return the current frames."""
        self._rows.flush()
        self._sums.flush()
        sums_size = os.fstat(self._sums.fileno()).st_size
        rows_size = os.fstat(self._rows.fileno()).st_size
        return SavedFrames(Path(self._folder.name), sums_size, rows_size, self._folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the current frames: an open file cannot be pickled."""
        return self.saved().__reduce__()

    def __deepcopy__(self, _: dict[int, Any]) -> SavedFrames:
        """Return the current frames."""
        return self.saved()
