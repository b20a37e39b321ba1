# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the worlds, as they stand behind `synthetic:`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.options import MAX_COUNT, MAX_SEED, element_type, from_mapping, option


@dataclass(frozen=True)
class SynthesisConfig:
    """The synthetic worlds, and the robot that drives through them."""

    worlds: int = option(
        4,
        "number of worlds (rooms and corridors), each with one drive",
        limits=(1, MAX_COUNT),
    )
    frames: int = option(20, "camera frames per world", limits=(1, MAX_COUNT))
    seed: int = option(0, "random seed of the worlds", limits=(0, MAX_SEED))
    scenes: str = option(
        "rooms",
        "rooms (and corridors, all with one camera), or a Python module whose function build "
        "makes other worlds (in a clone experiments.worlds.varied: homes, streets, many cameras; "
        "experiments.worlds.near: table-tops, low robots)",
    )
    test_objects: bool = option(
        False, "add a class of objects that training worlds never contain", expert=True
    )
    width: int = option(320, "camera image width, pixels", limits=(16, 8192))
    height: int = option(240, "camera image height, pixels", limits=(16, 8192))
    rate: float = option(10.0, "camera and LiDAR rate, frames per second", limits=(0.1, 1000.0))
    rings: int = option(32, "number of LiDAR rings", limits=(1, 1024))
    noise: float = option(
        1.0,
        "sensor noise, as a multiple of a typical camera's and LiDAR's",
        limits=(0.0, 100.0),
    )
    dense: bool = option(
        False,
        "add exact dense depth: a source has it instead of the LiDAR's, a bag as an additional "
        "depth image",
    )


def synthesis_config(text: str) -> SynthesisConfig:
    """Return the options of a text such as `worlds=4,noise=0.5`.

    Raises:
        SourceError: a part is not option=value.
        ConfigError: an option is unknown, of another type or out of range.
    """
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise SourceError(
                f"synthetic: has {part!r}; expected option=value, separated by commas"
            )
        values[name] = _value(name, value)
    return from_mapping(SynthesisConfig, values)


def _value(name: str, text: str) -> Any:
    """Return an option's value from a text such as `0.5` or `true`."""
    if name not in SynthesisConfig.__dataclass_fields__:
        return text  # `from_mapping` names it
    expected = element_type(SynthesisConfig, name)
    parse: Any = {"true": True, "false": False}.__getitem__ if expected is bool else expected
    try:
        return parse(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{name} is {text!r}; expected {expected.__name__}") from None
