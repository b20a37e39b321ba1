"""ROS parameters of a config dataclass, checked as a whole, applied all together or not at all."""

from __future__ import annotations

import dataclasses
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from uncertainty_depth.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.options import element_type, from_mapping, to_mapping

ConfigT = TypeVar("ConfigT")
OF_ROS = re.compile(
    r"use_sim_time|start_type_description_service|qos_overrides\..*"
)  # declared by some distributions, or only later


class NodeParameters(Generic[ConfigT]):
    """A node's config, kept equal to its parameters.

    `prepare(old, new)` is called before a change is accepted. Whatever it raises refuses the
    change, and the node goes on as it was. It returns what makes the change take effect.
    Parameters are typed dynamically so that `1` is taken where `1.0` is due.
    """

    def __init__(
        self,
        node: Node,
        kind: type[ConfigT],
        prepare: Callable[[ConfigT, ConfigT], Callable[[], None]],
    ) -> None:
        self._kind, self._prepare = kind, prepare
        self._names = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
        self._lists = {
            item.name
            for item in dataclasses.fields(kind)  # type: ignore[arg-type]
            if isinstance(item.default, tuple)
        }
        warn_of_unknown(node, self._names)
        self.config: ConfigT = from_mapping(
            kind, {item.name: self._declare(node, item) for item in dataclasses.fields(kind)}
        )  # type: ignore[arg-type]
        self._logger = node.get_logger()
        self._accepted: tuple[ConfigT, Callable[[], None]] | None = None
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._on_applied)

    def _declare(self, node: Node, item: dataclasses.Field) -> Any:
        default = plain(item.default)
        try:
            given = node.declare_parameter(item.name, default, describe(self._kind, item)).value
        except (InvalidParameterValueException, InvalidParameterTypeException) as error:
            raise ConfigError(f"parameter {item.name}: {error}") from error
        return self._value(item.name, given)

    def _value(self, name: str, given: Any) -> Any:
        """A value as plain Python. ROS reads `[]`, as `ros2 param dump` writes it, as no value."""
        return [] if given is None and name in self._lists else plain(given)

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        self._accepted = None
        changes = {
            each.name: self._value(each.name, each.value)
            for each in parameters
            if each.name in self._names
        }
        try:
            new = from_mapping(self._kind, {**to_mapping(self.config), **changes})
            self._accepted = (new, self._prepare(self.config, new)) if changes else None
        except UncertaintyDepthError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except (
            Exception
        ) as error:  # out of memory, say: an executor ends with what a callback raises
            reason = f"{type(error).__name__}: {error}"
            self._logger.error(f"a change of parameters failed and is refused: {reason}")
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _on_applied(self, _: Sequence[Parameter]) -> None:
        if self._accepted is not None:
            (self.config, apply), self._accepted = self._accepted, None
            apply()


def warn_of_unknown(node: Node, names: Iterable[str]) -> None:
    """Log each given parameter that is not declared; it may be meant for another node."""
    known = {*names, *node.get_parameters_by_prefix("")}
    given = getattr(
        node, "_parameter_overrides", {}
    )  # private, but no distribution has another way to ask
    for name in sorted(given.keys() - known):
        if not OF_ROS.fullmatch(name):
            hint = "".join(
                f"; did you mean {meant!r}?" for meant in get_close_matches(name, known, 1)
            )
            node.get_logger().warning(
                f"parameter {name!r} is not one of {node.get_name()}'s and has no effect{hint}"
            )


def plain(value: Any) -> Any:
    """A parameter's value as plain Python: arrays as lists."""
    return list(value) if isinstance(value, (list, tuple, array)) else value


def describe(kind: type, item: dataclasses.Field) -> ParameterDescriptor:
    """What `ros2 param describe` shows: text, choices and range of a config field."""
    choices = item.metadata["choices"]
    descriptor = ParameterDescriptor(
        description=item.metadata["help"],
        read_only=item.metadata["read_only"],
        dynamic_typing=True,
    )
    if choices is not None:
        descriptor.additional_constraints = (
            f"one of {', '.join(repr(choice) for choice in choices)}"
        )
    minimum, maximum = item.metadata["minimum"], item.metadata["maximum"]
    if minimum is None or maximum is None or isinstance(item.default, tuple):
        return descriptor  # tools show a slider: an end that is not there would be 1.8e308
    if element_type(kind, item.name) is int:
        descriptor.integer_range = [IntegerRange(from_value=minimum, to_value=maximum)]
    else:
        limits = FloatingPointRange(from_value=float(minimum), to_value=float(maximum))
        descriptor.floating_point_range = [limits]
    return descriptor
