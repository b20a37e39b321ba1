# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Run the `uncertainty-depth` command; the only code that prints and exits."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Callable, Sequence

from tqdm.contrib.logging import logging_redirect_tqdm

from uncertainty_depth.blas import wait_passively
from uncertainty_depth.cli.arguments import build_parser
from uncertainty_depth.cli.bags import convert, demo, info, play
from uncertainty_depth.cli.calibrate import calibrate
from uncertainty_depth.cli.compare import compare, merge
from uncertainty_depth.cli.evaluate import evaluate
from uncertainty_depth.cli.predict import export, predict
from uncertainty_depth.cli.terminal import PrintableFormatter, printable, printable_stdout
from uncertainty_depth.cli.train import familiarity, train, wrap
from uncertainty_depth.cli.view import view
from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.extras import missing_in

Command = Callable[[argparse.Namespace], None]

COMMANDS: dict[str, Command] = {
    "train": train,
    "wrap": wrap,
    "evaluate": evaluate,
    "compare": compare,
    "merge": merge,
    "predict": predict,
    "calibrate": calibrate,
    "export": export,
    "familiarity": familiarity,
    "convert": convert,
    "info": info,
    "play": play,
    "view": view,
    "demo": demo,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; user errors become one sentence and exit code 1, failed requirements 3."""
    wait_passively()
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = build_parser(COMMANDS).parse_args(words)
    arguments.command_line = shlex.join(["uncertainty-depth", *words])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        # A message would otherwise stand on the line of a bar.
        with logging_redirect_tqdm(), printable_stdout():
            arguments.command(arguments)
    except UncertaintyDepthError as error:
        print(f"uncertainty-depth: {printable(str(error))}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (sentence := missing_in(error)) is None:
            raise
        print(f"uncertainty-depth: {sentence}", file=sys.stderr)
        return 1
    except (
        OSError
    ) as error:  # a folder that is a file, a disk that is full, a path without permission
        print(
            f"uncertainty-depth: {printable(str(error.filename or 'reading or writing'))}: "
            f"{error.strerror or error}",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        hint = (
            "; --resume continues after the last finished epoch"
            if hasattr(arguments, "resume")
            else ""
        )
        print(f"uncertainty-depth: interrupted{hint}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
