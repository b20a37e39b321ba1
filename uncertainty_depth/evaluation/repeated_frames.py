# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Find recordings that are merged twice: copies, conversions and clips of one another."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)
NAMES = ("source", "frame")
"""Columns of a frame's row that a copy of the recording changes."""


class RepeatedFrames:
    """Remembers the frames of every source by stamp and scores.

    A frame that counts twice makes every interval too narrow. Simulated drives may share their
    stamps, but not their scores as well.

    Attributes:
        notes: a sentence for each source with frames that an earlier source has too.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._sources: dict[int, str] = {}

    def is_copy(self, rows: Iterable[Mapping[str, str]], source: str) -> bool:
        """Return whether earlier sources have all frames of this one, and remember its frames.

        Args:
            rows: of its table of frames, texts by column.
            source: its name.
        """
        keys = [_key(row) for row in rows]
        repeated = [key for key in keys if key in self._sources]
        if repeated:
            self._note(source, self._sources[repeated[0]], len(repeated), len(keys))
        self._sources.update(dict.fromkeys(keys, source))
        return bool(keys) and len(repeated) == len(keys)

    def _note(self, source: str, earlier: str, repeated: int, total: int) -> None:
        if repeated == total:
            text = f"{source} has the stamps and scores of {earlier}: a copy, not counted again"
        else:
            text = (
                f"{repeated} of {total} frames of {source} have the stamps and scores of frames "
                f"of {earlier}: they count twice, and intervals are too narrow"
            )
        logger.warning(text)
        self.notes.append(text)


def _key(row: Mapping[str, str]) -> int:
    return hash(tuple(value for name, value in row.items() if name not in NAMES))
