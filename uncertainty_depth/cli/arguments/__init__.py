# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The parser of all commands: option classes, own arguments and an example of each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from uncertainty_depth import __version__
from uncertainty_depth.cli.arguments import bags, models, scores
from uncertainty_depth.cli.arguments.signature import Signature
from uncertainty_depth.options import add_arguments

SIGNATURES: dict[str, Signature] = {
    **models.SIGNATURES,
    **scores.SIGNATURES,
    **bags.SIGNATURES,
}


def build_parser(
    commands: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Return the parser; the help of each command is the docstring of its function."""
    parser = argparse.ArgumentParser(
        "uncertainty-depth",
        description="Monocular depth with its standard deviation, and scores of both.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in commands.items():
        text = (command.__doc__ or "").strip()
        subparser = subparsers.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example: uncertainty-depth {name} {SIGNATURES[name].example}",
        )
        for config in SIGNATURES[name].configs:
            add_arguments(subparser, config)
        for own in SIGNATURES[name].arguments:
            subparser.add_argument(*own.names, **own.options)
        subparser.set_defaults(command=command)
    return parser
