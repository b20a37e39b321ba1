# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the `uncertainty-depth` command; the only code that prints and exits."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, TextIO, cast

from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.cli.arguments import HELP_ALL, Command, build_parser, command_of
from uncertainty_depth.cli.bags import Convert, Info
from uncertainty_depth.cli.calibrate import Calibrate
from uncertainty_depth.cli.evaluate import Compare, Evaluate, Merge, View
from uncertainty_depth.cli.predict import Predict
from uncertainty_depth.cli.train import Train, Wrap
from uncertainty_depth.core.errors import UncertaintyDepthError, first_line, missing_in, shortened
from uncertainty_depth.core.process import wait_passively

COMMANDS: dict[str, type[Command]] = {
    "info": Info,
    "evaluate": Evaluate,
    "compare": Compare,
    "merge": Merge,
    "calibrate": Calibrate,
    "train": Train,
    "wrap": Wrap,
    "predict": Predict,
    "view": View,
    "convert": Convert,
}
"""Commands in the order in which a newcomer meets them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; user errors become one sentence and exit code 1, failed requirements 3."""
    wait_passively()
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = build_parser(COMMANDS, HELP_ALL in words).parse_args(words)
    command_line = shlex.join(["uncertainty-depth", *words])
    is_resumable = hasattr(arguments, "resume")
    hint = "--resume continues after the last finished epoch" if is_resumable else ""

    def run() -> None:
        command_of(arguments, command_line).run()

    return exit_code_of("uncertainty-depth", run, hint)


def exit_code_of(program: str, run: Callable[[], object], hint: str = "") -> int:
    """Run a program, named before each sentence, and return its exit code.

    User errors become one sentence on stderr; `hint` says how to go on after Ctrl-C.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        # A message would otherwise stand on a bar's line.
        with logging_redirect_tqdm(), redirect_stdout(cast(TextIO, _Printable(sys.stdout))):
            try:
                run()
            finally:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader, say `head`, has left
        # What is buffered still goes somewhere: the interpreter flushes when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except UncertaintyDepthError as error:
        print(f"{program}: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (sentence := missing_in(error)) is None:
            raise
        print(f"{program}: {sentence}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"{program}: no memory is left: {first_line(error)}", file=sys.stderr)
        return 1
    except OSError as error:  # a folder that is a file, a full disk, a path without permission
        place = printable(shortened(str(error.filename or "reading or writing")))
        print(f"{program}: {place}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("; ".join(filter(None, (f"{program}: interrupted", hint))), file=sys.stderr)
        return 130
    return 0


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
        """Return the record's text, see `printable`; paths may be of any length."""
        return printable(shortened(super().format(record)))


class _Printable:
    """A stream to which everything printed is written `printable`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(printable(text, self._stream.encoding or "utf-8"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


if __name__ == "__main__":
    sys.exit(main())
