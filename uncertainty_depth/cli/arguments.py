# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a command is: a dataclass of its arguments and option classes, which makes its parser."""

from __future__ import annotations

import argparse
import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from uncertainty_depth.core.errors import shortened
from uncertainty_depth.core.options import add_arguments, flag_of, from_arguments
from uncertainty_depth.core.version import __version__
from uncertainty_depth.stream.job import Job

SOURCE = (
    "a bag (rosbag2 folder, .mcap, .db3, ROS 1 .bag), nyu:DIR[:train|:test|:fit|:calibrate], "
    "kitti:DRIVE_DIR, rgbd:DIR, or in a clone synthetic:[worlds=4,frames=20,seed=1]"
)
MODEL = "model folder, a shipped model (indoor, demo) or a Hugging Face model (ORG/NAME)"
OWN = "or FOLDER/MODULE:CLASS, a Python class of your own with predict(image, stamp_ns, camera)"
WIDTH_OF_FLAGS = 28


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command with its arguments; the docstring of its class is its help.

    A field is an argument (`positional`, `flag`), or a class of options, each a flag.

    Attributes:
        example: arguments that show how it is used.
        given: options that the user gave, without defaults.
        command_line: the words as they were typed, for reports.
    """

    example: ClassVar[str]
    given: argparse.Namespace
    command_line: str

    def run(self) -> None:
        """Do the work; an `UncertaintyDepthError` becomes one sentence."""
        self._run()

    @abstractmethod
    def _run(self) -> None: ...

    def job(self, *sources: str, **own: Any) -> Job:
        """Return the job of sources, with this command's options of a job's names and its own."""
        shared = {item.name for item in fields(Job)} & {item.name for item in fields(self)}
        return Job(sources=sources, **{name: getattr(self, name) for name in shared} | own)


def positional(**options: Any) -> Any:
    """Return a field that is an argument without a flag, see `ArgumentParser.add_argument`."""
    return field(metadata={"flags": (), "options": options})


def flag(short: str = "", **options: Any) -> Any:
    """Return a field that is an argument after a flag of its name, see `add_argument`."""
    return field(metadata={"flags": (short,), "options": options})


def written(metavar: str, what: str, required: bool = True) -> Any:
    """Return the field for what a command writes."""
    return flag("-o", type=Path, metavar=metavar, help=what, required=required)


overwriting = partial(flag, action="store_true", help="replace the report that is in the folder")
junit_file = partial(
    flag,
    type=Path,
    metavar="XML",
    help="also write the requirements, else the verdict, as a JUnit file",
)


def at_least_one(text: str) -> int:
    """Return a whole number of at least 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def positive_float(text: str) -> float:
    """Return a finite number above 0."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat no argument of any length."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and the message."""
        super().error(shortened(message))


HELP_ALL = "--help-all"


def build_parser(commands: Mapping[str, type[Command]], expert_help: bool = False) -> Parser:
    """Return the parser of commands by their names; its help describes expert options if asked."""
    parser = Parser(
        "uncertainty-depth",
        description="Monocular depth with its standard deviation (sigma), and scores of both.",
        epilog="Begin with `uncertainty-depth info my_bag`, then `uncertainty-depth evaluate "
        "my_bag --model indoor --output report`. COMMAND --help begins with an example.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    layout = partial(argparse.HelpFormatter, max_help_position=WIDTH_OF_FLAGS)
    for name, command in commands.items():
        text = (command.__doc__ or "").strip()
        subparser = subparsers.add_parser(
            name,
            help=text,
            description=text,
            usage=f"uncertainty-depth {name} {command.example}",
            formatter_class=layout,
        )
        for item in fields(command):
            if "options" in item.metadata:
                names = [each for each in item.metadata["flags"] if each]
                if item.metadata["flags"]:
                    names.append("--" + item.name.replace("_", "-"))
                subparser.add_argument(*(names or [item.name]), **item.metadata["options"])
        configs = list(configs_of(command).values())
        for config in configs:
            add_arguments(subparser, config, expert_help)
        rare = [
            flag_of(option)
            for config in configs
            for option in fields(config)
            if option.metadata["expert"]
        ]
        if rare:
            subparser.add_argument(
                HELP_ALL, action="help", help="show this help with the rare options, and exit"
            )
            if not expert_help:
                subparser.epilog = f"rare options, see {HELP_ALL}: {', '.join(rare)}"
        subparser.set_defaults(command=command)
    return parser


def command_of(arguments: argparse.Namespace, command_line: str) -> Command:
    """Return the command that was parsed; raise `ConfigError` for an option out of range."""
    command: type[Command] = arguments.command
    own = {
        item.name: getattr(arguments, item.name)
        for item in fields(command)
        if "options" in item.metadata
    }
    configs = {
        name: from_arguments(config, arguments) for name, config in configs_of(command).items()
    }
    return command(**own, **configs, given=arguments, command_line=command_line)


def configs_of(command: type[Command]) -> dict[str, type[Any]]:
    """Return the option classes of a command by its fields' names."""
    hints = typing.get_type_hints(command)
    return {
        item.name: hints[item.name] for item in fields(command) if is_dataclass(hints[item.name])
    }
