# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Declare config dataclasses, check them, and read them from mappings or the command line.

One dataclass feeds the command line, YAML files, ROS parameters and launch arguments. Neither
tyro nor plain argparse knows ROS parameters, so the field's metadata is the common source.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar

from uncertainty_depth.core.errors import ConfigError

MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000_000
MAX_DEPTH_M = 10_000.0
MAX_DURATION_S = 86_400.0


ConfigT = TypeVar("ConfigT")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LIVE = "may change while the node runs"
"""Shown for `live` parameters; all others are set while the node is not active."""
METAVARS: dict[type, str] = {int: "N", float: "NUMBER", str: "NAME"}
MAX_METAVAR = 60
"""Longer lists of choices stand in the help, not beside the flag."""
NUMBERED = ":N"
"""End of a choice that stands for `:0`, `:1`, ..."""


def option(
    default: Any,
    help: str,
    *,
    limits: tuple[float, float] | None = None,
    choices: Collection[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    live: bool = False,
    on_robot: bool = True,
    flag: str = "",
    expert: bool = False,
) -> Any:
    """Return a dataclass field with its help text, its limits and its choices.

    Args:
        default: value if the user gives none.
        help: one line, shown by `--help` and as the description of the ROS parameter.
        limits: smallest and largest number allowed, of each element of a tuple.
        choices: the only values allowed beside the default; one that ends in `:N` allows any
            number there.
        aliases: other spellings of choices on the command line, each with the choice it means.
        live: a node takes it while it is active.
        on_robot: a parameter of the nodes; false: nodes use the default.
        flag: its flag on the command line, if that is not `--` and the name.
        expert: rarely set; the command line takes it, and only `--help-all` describes it.
    """
    metadata = {
        "help": help,
        "limits": limits,
        "choices": choices,
        "aliases": dict(aliases or {}),
        "live": live,
        "on_robot": on_robot,
        "flag": flag,
        "expert": expert,
    }
    return dataclasses.field(default=default, metadata=metadata)


def element_type(config_class: type, name: str) -> type:
    """Return a field's scalar type: int for `int`, float for `tuple[float, float]`."""
    hint = _hints(config_class)[name]
    scalar: type = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint
    return scalar


@cache
def _hints(config_class: type) -> dict[str, Any]:
    return typing.get_type_hints(config_class)


def validate(config: Any) -> None:
    """Raise `ConfigError` for the first field of a wrong type, out of range or not a choice."""
    config_class: type = type(config)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        is_tuple = isinstance(field.default, tuple) and isinstance(value, tuple)
        elements = value if is_tuple else (value,)
        types = typing.get_args(_hints(config_class)[field.name])
        if types and ... not in types and len(elements) != len(types):
            raise ConfigError(f"{field.name} is {value!r}; expected {len(types)} values")
        expected = element_type(config_class, field.name)
        choices = field.metadata["choices"]
        minimum, maximum = field.metadata["limits"] or (None, None)
        for element in elements:
            problem = ""
            if type(element) is not expected:
                problem = expected.__name__
            elif choices and element != field.default and not _is_choice(element, choices):
                problem = f"one of {', '.join(map(repr, choices))}"
            elif minimum is not None and not element >= minimum:
                problem = f"at least {minimum}"
            elif maximum is not None and not element <= maximum:
                problem = f"at most {maximum}"
            if problem:
                raise ConfigError(f"{field.name} is {element!r}; expected {problem}")


def _is_choice(value: Any, choices: Collection[Any]) -> bool:
    """Return whether a value is one of the choices; `cuda:N` allows `cuda:0`."""
    text = str(value)
    return not text.endswith(NUMBERED) and re.sub(r":\d+\Z", NUMBERED, text) in choices


def from_mapping(config_class: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Return a checked config from plain values.

    Lists become tuples, integers become floats if the field is a float, and aliases become the
    choices they mean.

    Raises `ConfigError` for an unknown key, or a value of a wrong type, out of range or no choice.
    """
    fields = _fields(config_class)
    unknown = sorted(set(values) - set(fields))
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]!r}; known are {', '.join(sorted(fields))}")
    arguments = {}
    for name, value in values.items():
        aliases = fields[name].metadata["aliases"]
        if isinstance(value, str):
            value = aliases.get(value, value)
        arguments[name] = _coerce(value, element_type(config_class, name))
    config = config_class(**arguments)
    validate(config)
    return config


def changed(config: ConfigT, options: Mapping[str, Any]) -> ConfigT:
    """Return the config with other values for some options; raise as `from_mapping`."""
    if not options:
        return config
    return from_mapping(type(config), {**vars(config), **options})


def takes_options(config_class: type) -> Callable[[FunctionT], FunctionT]:
    """Show a config's options as keywords of a function that passes its `**options` to `changed`.

    Notebooks and shells then complete them, and `help` lists them with their defaults.
    """

    def show(function: FunctionT) -> FunctionT:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        keywords = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            for field in dataclasses.fields(config_class)
        ]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *keywords]
        )
        return function

    return show


def _coerce(value: Any, expected: type) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_coerce(element, expected) for element in value)
    if expected is not float or type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise ConfigError("a number does not fit a float; expected fewer digits") from error


def to_mapping(config: Any) -> dict[str, Any]:
    """Return the config as plain values for JSON and YAML; `from_mapping` is the inverse."""
    values = dataclasses.asdict(config)
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def flag_of(field: dataclasses.Field[Any]) -> str:
    """Return a field's flag on the command line."""
    return field.metadata["flag"] or "--" + field.name.replace("_", "-")


def add_arguments(
    parser: argparse.ArgumentParser, config_class: type, expert_help: bool = False
) -> None:
    """Add one `--option-name` per field, in a group headed by the docstring's first line.

    Unless asked for, the help leaves out expert options.
    """
    group = parser.add_argument_group(_heading(config_class))
    for field in dataclasses.fields(config_class):
        flag = flag_of(field)
        scalar = element_type(config_class, field.name)
        is_hidden = field.metadata["expert"] and not expert_help
        shared: dict[str, Any] = {
            "dest": field.name,
            "default": argparse.SUPPRESS,
            "help": argparse.SUPPRESS if is_hidden else _help(field),
        }
        metavar = "TOPIC" if field.name.endswith("_topic") else METAVARS.get(scalar, "")
        if scalar is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **shared)
        elif isinstance(field.default, tuple):
            shared["action"] = "extend" if scalar is str else "store"
            group.add_argument(flag, type=scalar, nargs="*", metavar=metavar, **shared)
        else:
            if _choices(field):  # checked with the config
                metavar = f"{{{','.join([*_choices(field), *field.metadata['aliases']])}}}"
            if len(metavar) > MAX_METAVAR and not is_hidden:
                metavar = "NAME"
                shared["help"] += f"; one of {', '.join(_choices(field))}"
            group.add_argument(flag, type=scalar, metavar=metavar, **shared)


def add_parameters(parser: argparse.ArgumentParser, config_class: type) -> None:
    """Add one line of help per field, `name:=TYPE` as ROS takes it; these are not parsed."""
    group = parser.add_argument_group(_heading(config_class))
    for field in parameters_of(config_class):
        scalar = element_type(config_class, field.name).__name__.upper()
        value = f"[{scalar},...]" if isinstance(field.default, tuple) else scalar
        choices = f"one of {', '.join(_choices(field))}" if _choices(field) else ""
        live = LIVE if field.metadata["live"] else ""
        group.add_argument(
            field.name, metavar=f"{field.name}:={value}", help=_help(field, choices, live)
        )


def parameters_of(config_class: type) -> list[dataclasses.Field[Any]]:
    """Return the fields that are parameters of a node."""
    return [field for field in dataclasses.fields(config_class) if field.metadata["on_robot"]]


def from_arguments(
    config_class: type[ConfigT],
    arguments: argparse.Namespace,
    defaults: Mapping[str, Any] | None = None,
) -> ConfigT:
    """Return the config from parsed arguments, else from `defaults`, else the class's defaults."""
    values = {**(defaults or {}), **vars(arguments)}
    names = _fields(config_class)
    return from_mapping(
        config_class, {name: value for name, value in values.items() if name in names}
    )


def _fields(config_class: type) -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(config_class)}


def _heading(config_class: type) -> str:
    docstring = config_class.__doc__ or config_class.__name__
    return docstring.strip().splitlines()[0].rstrip(".")


def _choices(field: dataclasses.Field[Any]) -> list[str]:
    return [choice for choice in field.metadata["choices"] or () if choice]


def _help(field: dataclasses.Field[Any], *further: str) -> str:
    """Return the help text for argparse, with limits, aliases and default in brackets."""
    limits = "{:g} to {:g}".format(*field.metadata["limits"]) if field.metadata["limits"] else ""
    aliases = [f"{alias} = {name}" for alias, name in field.metadata["aliases"].items()]
    default = ""
    if field.default not in ("", ()):
        values = field.default if isinstance(field.default, tuple) else (field.default,)
        default = f"default: {' '.join(map(str, values))}"
    details = [fact for fact in (*further, limits, *aliases, default) if fact]
    brackets = f" ({'; '.join(details)})" if details else ""
    return (field.metadata["help"] + brackets).replace("%", "%%")
