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
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

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


class FrameTable:
    """An evaluation's frames, in files so that memory stays bounded.

    A running evaluation's are temporary, and deleted with the last table that reads them. Its copy
    or pickle holds the frames of that moment; a pickle does not keep the files.
    """

    def __init__(
        self, folder: Path | None = None, sizes: Mapping[str, int] | None = None, owner: Any = None
    ) -> None:
        """Open new files, or read those in a folder, up to these sizes; `owner` keeps them."""
        self._sizes = sizes or {}
        self._writer: csv.DictWriter | None = None
        self._files: dict[str, IO] = {}
        if folder is None:
            owner = TemporaryDirectory()
            folder = Path(owner.name)
            rows = (folder / ROWS_FILE).open("w", newline="", encoding="utf-8")
            self._files = {ROWS_FILE: rows, SUMS_FILE: (folder / SUMS_FILE).open("wb")}
        self.folder = folder
        self._owner = owner

    def add(self, name: FrameName, metrics: Mapping[str, float], block: Block) -> None:
        """Append a frame; the first one fixes the columns."""
        source = {"source": name.source} if name.source else {}
        row = {**source, "frame": name.frame, "stamp_ns": name.stamp_ns, **metrics}
        if self._writer is None:
            self._writer = csv.DictWriter(self._files[ROWS_FILE], list(row))
            self._writer.writeheader()
        self._writer.writerow(row)
        data = packed(block)
        sums = self._files[SUMS_FILE]
        sums.write(json.dumps(asdict(name)).encode() + b"\n")
        sums.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def saved(self) -> FrameTable:
        """Return the current frames, which do not change."""
        if not self._files:
            return self
        sizes = {}
        for name, file in self._files.items():
            file.flush()
            sizes[name] = os.fstat(file.fileno()).st_size
        return FrameTable(self.folder, sizes, self._owner)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the current frames: neither an open file nor the owner can leave the process."""
        return FrameTable, (self.folder, self.saved()._sizes)

    def __deepcopy__(self, _: dict[int, Any]) -> FrameTable:
        """Return the current frames."""
        return self.saved()

    def write(self, folder: Path) -> None:
        """Copy both files to another folder in chunks, so that memory stays bounded."""
        for name in (ROWS_FILE, SUMS_FILE):
            path = self.folder / name
            rest = self._sizes.get(name, path.stat().st_size)
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
                end = self._sizes.get(SUMS_FILE, os.fstat(file.fileno()).st_size)
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
