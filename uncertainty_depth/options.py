"""How a config dataclass is declared, checked, and read from a mapping (YAML, JSON, ROS parameters) or the command line."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from uncertainty_depth.errors import ConfigError

ConfigT = TypeVar("ConfigT")


def option(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    read_only: bool = False,
) -> Any:
    """A dataclass field with what users are told about it and what is refused. `read_only`: fixed once a node runs."""
    metadata = {"help": help, "minimum": minimum, "maximum": maximum, "choices": choices, "read_only": read_only}
    return dataclasses.field(default=default, metadata=metadata)


def element_type(kind: type, name: str) -> type:
    """The scalar type of a field: int for `int`, float for `tuple[float, ...]`."""
    hint = typing.get_type_hints(kind)[name]
    return typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else hint


def check(config: Any) -> None:
    """Raise `ConfigError` for the first field whose value has the wrong type, is out of range or is not a choice."""
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        parts = value if isinstance(item.default, tuple) and isinstance(value, tuple) else (value,)
        for part in parts:
            _check_part(item, part, element_type(type(config), item.name))


def _check_part(item: dataclasses.Field, value: Any, expected: type) -> None:
    if type(value) is not expected:
        raise ConfigError(f"{item.name} is {value!r}; expected {expected.__name__}")
    choices, minimum, maximum = (item.metadata[key] for key in ("choices", "minimum", "maximum"))
    if choices is not None and value not in choices:
        raise ConfigError(f"{item.name} is {value!r}; expected one of {', '.join(repr(choice) for choice in choices)}")
    if minimum is not None and not value >= minimum:
        raise ConfigError(f"{item.name} is {value!r}; expected at least {minimum}")
    if maximum is not None and not value <= maximum:
        raise ConfigError(f"{item.name} is {value!r}; expected at most {maximum}")


def from_mapping(kind: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Build and check a config of class `kind` from plain values; lists become tuples, integers floats where a float is due.

    Raises:
        ConfigError: for an unknown key, a value of the wrong type, out of range, or not among the choices.
    """
    known = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]!r}; known are {', '.join(sorted(known))}")
    config = kind(**{key: _coerce(value, element_type(kind, key)) for key, value in values.items()})
    check(config)
    return config


def _coerce(value: Any, expected: type) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_coerce(part, expected) for part in value)
    return float(value) if expected is float and type(value) is int else value


def to_mapping(config: Any) -> dict[str, Any]:
    """The config as plain values for JSON and YAML; `from_mapping` is the inverse."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(config).items()}


def add_arguments(parser: argparse.ArgumentParser, kind: type) -> None:
    """One `--option-name` per field of the config class `kind`, under a heading taken from its docstring."""
    group = parser.add_argument_group((kind.__doc__ or kind.__name__).strip().rstrip("."))
    for item in dataclasses.fields(kind):
        flag, scalar = "--" + item.name.replace("_", "-"), element_type(kind, item.name)
        shared: dict[str, Any] = {"dest": item.name, "default": argparse.SUPPRESS}
        text = (item.metadata["help"] + _shown(item.default)).replace("%", "%%")
        if scalar is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=text, **shared)
        elif isinstance(item.default, tuple):
            group.add_argument(flag, type=scalar, nargs="*", help=text, metavar=scalar.__name__.upper(), **shared)
        else:
            choices = [choice for choice in item.metadata["choices"] or () if choice] or None
            group.add_argument(flag, type=scalar, choices=choices, help=text, metavar=None if choices else scalar.__name__.upper(), **shared)


def _shown(default: Any) -> str:
    if default in ("", ()):
        return ""
    return f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"


def from_arguments(kind: type[ConfigT], arguments: argparse.Namespace, defaults: Mapping[str, Any] | None = None) -> ConfigT:
    """The config of class `kind` from parsed command-line arguments; what was not given has the value in `defaults`, or else the class's."""
    names = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return from_mapping(kind, {key: value for key, value in {**(defaults or {}), **vars(arguments)}.items() if key in names})
