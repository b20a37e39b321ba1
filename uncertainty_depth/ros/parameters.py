# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""ROS parameters of a config dataclass: checked as a whole, taken together or not at all."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
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

from uncertainty_depth.core.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.core.options import LIVE, element_type, from_mapping, parameters_of

ConfigT = TypeVar("ConfigT", bound=Any)
ROS_PARAMETERS = {"use_sim_time", "start_type_description_service"}
"""Declared by ROS itself: by some distributions only, or later."""
QOS_OVERRIDES = "qos_overrides."


class NodeParameters(Generic[ConfigT]):
    """Keeps a node's config equal to its ROS parameters.

    `on_change(old, new)` is asked before a change is accepted: it takes the change, or raises and
    leaves everything as it was. Whatever it raises refuses the change, and is the answer.
    Parameters are typed dynamically, so that `1` is accepted for `1.0`.
    """

    def __init__(
        self,
        node: Node,
        config_type: type[ConfigT],
        on_change: Callable[[ConfigT, ConfigT], None],
    ) -> None:
        self._node = node
        self._config_type = config_type
        self._on_change = on_change
        fields = parameters_of(config_type)
        self._names = {item.name for item in fields}
        self._lists = {item.name for item in fields if isinstance(item.default, tuple)}
        settle_overrides(node, self._names)
        self.config: ConfigT = from_mapping(
            config_type, {item.name: self._declare(item) for item in fields}
        )
        node.add_on_set_parameters_callback(self._on_set)

    def _declare(self, item: dataclasses.Field) -> Any:
        if self._node.has_parameter(item.name):  # from the overrides, without a description
            self._node.undeclare_parameter(item.name)
        try:
            parameter = self._node.declare_parameter(
                item.name, plain(item.default), describe(self._config_type, item)
            )
        except (InvalidParameterValueException, InvalidParameterTypeException) as error:
            raise ConfigError(f"parameter {item.name}: {error}") from error
        return self._value(item.name, parameter.value)

    def _value(self, name: str, value: Any) -> Any:
        """Return plain Python. ROS reads `[]`, as `ros2 param dump` writes it, as no value."""
        return [] if value is None and name in self._lists else at_home(plain(value))

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        changes = {
            parameter.name: self._value(parameter.name, parameter.value)
            for parameter in parameters
            if parameter.name in self._names
        }
        if not changes:
            return SetParametersResult(successful=True)
        try:
            for parameter in parameters:  # the node's clock, asked after us, would refuse it
                if parameter.name == "use_sim_time" and type(parameter.value) is not bool:
                    raise ConfigError(f"use_sim_time is {parameter.value!r}; expected bool")
            new = from_mapping(self._config_type, {**vars(self.config), **changes})
            self._on_change(self.config, new)
        except UncertaintyDepthError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # raised, it would end the executor
            reason = f"{type(error).__name__}: {error}"
            self._node.get_logger().error(f"parameter change refused: {reason}")
            return SetParametersResult(successful=False, reason=reason)
        self.config = new
        return SetParametersResult(successful=True)


def settle_overrides(node: Node, names: Iterable[str]) -> None:
    """Fix overrides of the quality of service, and log and drop those that nothing reads.

    The node was created with `automatically_declare_parameters_from_overrides`; `names` are the
    parameters that it is about to declare.
    """
    known = set(names)
    for name in sorted(node.get_parameters_by_prefix("").keys() - known):
        if name.startswith(QOS_OVERRIDES):
            node.set_descriptor(name, ParameterDescriptor(read_only=True, dynamic_typing=True))
        elif name not in ROS_PARAMETERS:
            node.undeclare_parameter(name)
            similar = get_close_matches(name, known, 1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            node.get_logger().warning(
                f"parameter {name!r} is not one of {node.get_name()}'s and has no effect{hint}"
            )


def plain(value: Any) -> Any:
    """Return a parameter's value as plain Python: arrays as lists."""
    return list(value) if isinstance(value, (list, tuple, array)) else value


def at_home(value: Any) -> Any:
    """Return a text with its ~ expanded: no shell does that behind `:=`, or in a file."""
    if isinstance(value, list):
        return [at_home(item) for item in value]
    is_path = isinstance(value, str) and (value == "~" or value.startswith("~/"))
    return str(Path(value).expanduser()) if is_path else value


def describe(config_type: type, item: dataclasses.Field) -> ParameterDescriptor:
    """Return what `ros2 param describe` shows of a config field: text, choices and range."""
    choices = item.metadata["choices"]
    constraints = []
    if choices is not None:
        constraints.append(f"one of {', '.join(repr(choice) for choice in choices)}")
    if item.metadata["live"]:
        constraints.append(LIVE)
    descriptor = ParameterDescriptor(
        description=item.metadata["help"],
        additional_constraints="; ".join(constraints),
        dynamic_typing=True,
    )
    if item.metadata["limits"] is None or isinstance(item.default, tuple):
        return descriptor
    minimum, maximum = item.metadata["limits"]
    if element_type(config_type, item.name) is int:
        descriptor.integer_range = [IntegerRange(from_value=minimum, to_value=maximum)]
    else:
        limits = FloatingPointRange(from_value=float(minimum), to_value=float(maximum))
        descriptor.floating_point_range = [limits]
    return descriptor
