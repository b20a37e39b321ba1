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
    metadata = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "read_only": read_only,
    }
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
        raise ConfigError(
            f"{item.name} is {value!r}; expected one of {', '.join(repr(choice) for choice in choices)}"
        )
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
    config = kind(
        **{key: _coerce(value, element_type(kind, key)) for key, value in values.items()}
    )
    check(config)
    return config


def _coerce(value: Any, expected: type) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_coerce(part, expected) for part in value)
    return float(value) if expected is float and type(value) is int else value


def to_mapping(config: Any) -> dict[str, Any]:
    """The config as plain values for JSON and YAML; `from_mapping` is the inverse."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in dataclasses.asdict(config).items()
    }


def add_arguments(parser: argparse.ArgumentParser, kind: type) -> None:
    """One `--option-name` per field of the config class `kind`, under a heading taken from its docstring."""
    group = parser.add_argument_group(_heading(kind))
    for item in dataclasses.fields(kind):
        flag, scalar = "--" + item.name.replace("_", "-"), element_type(kind, item.name)
        shared: dict[str, Any] = {
            "dest": item.name,
            "default": argparse.SUPPRESS,
            "help": _explained(item),
        }
        if scalar is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **shared)
        elif isinstance(item.default, tuple):
            group.add_argument(
                flag, type=scalar, nargs="*", metavar=scalar.__name__.upper(), **shared
            )
        else:
            choices = _choices(item) or None
            group.add_argument(
                flag,
                type=scalar,
                choices=choices,
                metavar=None if choices else scalar.__name__.upper(),
                **shared,
            )


def add_parameters(parser: argparse.ArgumentParser, kind: type) -> None:
    """One line of help, `name:=TYPE`, per field of the config class `kind`, as ROS takes them: for the help alone, nothing is parsed."""
    group = parser.add_argument_group(_heading(kind))
    for item in dataclasses.fields(kind):
        scalar = element_type(kind, item.name).__name__.upper()
        shown = f"[{scalar},...]" if isinstance(item.default, tuple) else scalar
        choices = f"one of {', '.join(_choices(item))}" if _choices(item) else ""
        fixed = "fixed once the node runs" if item.metadata["read_only"] else ""
        group.add_argument(
            item.name, metavar=f"{item.name}:={shown}", help=_explained(item, choices, fixed)
        )


def _heading(kind: type) -> str:
    return (kind.__doc__ or kind.__name__).strip().rstrip(".")


def _choices(item: dataclasses.Field) -> list[str]:
    return [choice for choice in item.metadata["choices"] or () if choice]


def _explained(item: dataclasses.Field, *facts: str) -> str:
    """What a field means, and in brackets its limits and default, as argparse takes it."""
    known = [fact for fact in (*facts, _limits(item), _default(item)) if fact]
    return (item.metadata["help"] + (f" ({'; '.join(known)})" if known else "")).replace("%", "%%")


def _limits(item: dataclasses.Field) -> str:
    minimum, maximum = item.metadata["minimum"], item.metadata["maximum"]
    if minimum is not None and maximum is not None:
        return f"{minimum:g} to {maximum:g}"
    return (
        f"at least {minimum:g}"
        if minimum is not None
        else f"at most {maximum:g}"
        if maximum is not None
        else ""
    )


def _default(item: dataclasses.Field) -> str:
    if item.default in ("", ()):
        return ""
    return "default: " + (
        " ".join(map(str, item.default)) if isinstance(item.default, tuple) else str(item.default)
    )


def from_arguments(
    kind: type[ConfigT], arguments: argparse.Namespace, defaults: Mapping[str, Any] | None = None
) -> ConfigT:
    """The config of class `kind` from parsed command-line arguments; what was not given has the value in `defaults`, or else the class's."""
    names = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return from_mapping(
        kind,
        {
            key: value
            for key, value in {**(defaults or {}), **vars(arguments)}.items()
            if key in names
        },
    )
