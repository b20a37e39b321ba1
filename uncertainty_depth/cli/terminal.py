# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a terminal is given: names out of a stranger's bag are shown there, never obeyed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

BROKEN_PIPE = 141  # as a shell reports a command that SIGPIPE ended
_KEPT = "\n\t"
_DIRECTIONS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]  # reorder what is read
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_ESCAPED = {
    code: chr(code).encode("unicode_escape").decode()
    for code in (*_CONTROLS, *_DIRECTIONS)
    if chr(code) not in _KEPT
}


def printable(text: str, encoding: str = "utf-8") -> str:
    r"""Return the text with control characters, and what `encoding` lacks, as `\x1b`."""
    escaped = text.translate(_ESCAPED)
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


class PrintableFormatter(logging.Formatter):
    """Formats log records so that a terminal shows all of their characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, see `printable`."""
        return printable(super().format(record))


@contextmanager
def printable_stdout() -> Iterator[None]:
    """Make everything printed `printable`; end quietly if the reader, say `head`, has left."""
    with redirect_stdout(cast(TextIO, _Printable(sys.stdout))):
        try:
            yield
        finally:
            sys.stdout.flush()


class _Printable:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _ending_without_reader(self._stream):
            self._stream.write(printable(text, self._stream.encoding or "utf-8"))
        return len(text)

    def flush(self) -> None:
        with _ending_without_reader(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _ending_without_reader(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # What is buffered still goes somewhere: the interpreter flushes when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit(BROKEN_PIPE) from None
