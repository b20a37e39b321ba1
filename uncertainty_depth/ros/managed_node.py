# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A lifecycle node that starts itself, and reports the reason of every failure."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from std_srvs.srv import SetBool

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import to_mapping
from uncertainty_depth.ros.guarded import GuardedNode, reason_of
from uncertainty_depth.ros.parameters import NodeParameters, fixed_names
from uncertainty_depth.ros.teardown import destroyed_on_failure

ConfigT = TypeVar("ConfigT", bound=Any)
UNCONFIGURED = "unconfigured"
INACTIVE = "inactive"
ACTIVE = "active"
FINALIZED = "finalized"
PACKAGE = "uncertainty_depth"


class RosHandler(logging.Handler):
    """Passes the warnings of the package, a model's for example, on to the node's log: /rosout."""

    def __init__(self, node: Node) -> None:
        super().__init__(logging.WARNING)
        self._logger = node.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record; rclpy wants one call for each severity."""
        text = self.format(record)
        if record.levelno >= logging.ERROR:
            self._logger.error(text)
        else:
            self._logger.warning(text)


def no_change() -> None:
    """Apply a change of parameters that asks for nothing."""


class ManagedNode(GuardedNode, LifecycleNode, Generic[ConfigT]):
    """Base of the nodes: transitions and parameters either succeed or change nothing.

    A subclass gives what the transitions do (`_configure`, `_activate`, `_deactivate`, `_free`)
    and what a change of parameters does while it is configured (`_prepare`). Whatever these raise
    is logged, answered with FAILURE, and undone; the node lives on.

    Attributes:
        state: label of the lifecycle's primary state.
        failure: what the last transition raised; None once one has succeeded.
    """

    fixed_while_active: frozenset[str] = frozenset()
    """Parameters that activation reads once, e.g. for its subscriptions: set before it."""

    def __init__(self, name: str, config_type: type[ConfigT], **options: Any) -> None:
        """Declare the parameters and offer `~/enable`; the subclass calls `autostart` at its end.

        Args:
            name: of the node.
            config_type: dataclass of its parameters, with `autostart` among them.
            options: keyword arguments of `rclpy.node.Node`.

        Raises:
            ConfigError: a parameter is illegal.
        """
        super().__init__(name, **options)
        self._log_handler = RosHandler(self)
        logging.getLogger(PACKAGE).addHandler(self._log_handler)
        self.state = UNCONFIGURED
        self.failure: Exception | None = None
        self._logs_failures = True
        with destroyed_on_failure(self):
            self._options = NodeParameters(self, config_type, self._prepare_change)
        self.create_service(SetBool, "~/enable", self._on_enable)

    @property
    def config(self) -> ConfigT:
        """The parameters in use."""
        return self._options.config

    def autostart(self) -> None:
        """Configure and activate where the parameter `autostart` asks for it.

        A node for which this fails is destroyed.

        Raises:
            Exception: what a transition raised, e.g. ConfigError or ModelError.
        """
        if not self.config.autostart:
            self.get_logger().info(
                f"unconfigured: waits for ~/enable or ros2 lifecycle set "
                f"{self.get_fully_qualified_name()} configure"
            )
            return
        self._logs_failures = False  # the failure is raised, and logged by its caller
        with destroyed_on_failure(self):
            self._trigger(self.trigger_configure)
            self._trigger(self.trigger_activate)
        self._logs_failures = True

    def standing(self) -> tuple[bytes, str] | None:
        """Return diagnostic level and message of a node that is not active; None if it is."""
        if self.state == ACTIVE:
            return None
        if self.failure is not None:
            return DiagnosticStatus.ERROR, f"{self.state}: {reason_of(self.failure)}"
        enable = f"{self.get_fully_qualified_name()}/enable std_srvs/srv/SetBool"
        return DiagnosticStatus.OK, f"{self.state}: ros2 service call {enable} '{{data: true}}'"

    def _configure(self) -> None:
        """Create everything that the parameters require."""
        raise NotImplementedError

    def _activate(self) -> None:
        """Subscribe."""
        raise NotImplementedError

    def _deactivate(self) -> None:
        """Undo `_activate`, also one that failed halfway."""
        raise NotImplementedError

    def _free(self) -> None:
        """Undo `_configure`, also one that failed halfway."""
        raise NotImplementedError

    def _prepare(self, old: ConfigT, new: ConfigT) -> Callable[[], None]:
        """Check new parameters of a configured node; return what applies them, or nothing."""
        raise NotImplementedError

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure; a failure leaves the node unconfigured."""
        return self._change(INACTIVE, self._configure, self._free)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate; a failure leaves the node inactive."""
        return self._change(ACTIVE, self._activate, self._deactivate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate; what was configured stays."""
        return self._change(INACTIVE, self._deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free what was configured."""
        return self._change(UNCONFIGURED, self._free)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate and free: nothing but the end of the process comes after."""
        return self._change(FINALIZED, self._stop)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything after a transition that rclpy itself could not finish."""
        return self._change(UNCONFIGURED, self._stop)

    def destroy_node(self) -> None:
        """Destroy the node; what the package logs is no longer its business."""
        logging.getLogger(PACKAGE).removeHandler(self._log_handler)
        super().destroy_node()

    def _stop(self) -> None:
        if self.state == ACTIVE:
            self._deactivate()
        if self.state in (ACTIVE, INACTIVE):
            self._free()

    def _change(
        self, goal: str, step: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> TransitionCallbackReturn:
        try:
            step()
        except Exception as error:
            self.failure = error
            if undo is not None:
                self._undo(undo)
            if self._logs_failures:
                self.get_logger().error(f"stays {self.state}: {reason_of(error)}")
            return TransitionCallbackReturn.FAILURE
        self.failure = None
        self.state = goal
        return TransitionCallbackReturn.SUCCESS

    def _undo(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # the transition's own failure is the one to answer
            self.get_logger().error(f"after a failed transition: {reason_of(error)}")

    def _trigger(self, transition: Callable[[], TransitionCallbackReturn]) -> None:
        self.failure = None
        if transition() != TransitionCallbackReturn.SUCCESS:
            raise self.failure or ConfigError(f"the node is {self.state}")

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            if self.state == FINALIZED:
                raise ConfigError("the node is finalized; expected it to be started again")
            if request.data and self.state == UNCONFIGURED:
                self._trigger(self.trigger_configure)
            if request.data and self.state != ACTIVE:
                self._trigger(self.trigger_activate)
            if not request.data and self.state == ACTIVE:
                self._trigger(self.trigger_deactivate)
            response.success = True
            response.message = self.state
        except Exception as error:  # a refusal, not a failed callback
            response.message = reason_of(error)
        return response

    def _prepare_change(self, old: ConfigT, new: ConfigT) -> Callable[[], None]:
        if self.state not in (INACTIVE, ACTIVE):
            return no_change
        changed = {name for name in to_mapping(new) if getattr(old, name) != getattr(new, name)}
        fixed = sorted(changed.intersection(fixed_names(new)))
        fixed_now = sorted(changed & self.fixed_while_active) if self.state == ACTIVE else []
        if fixed or fixed_now:
            node = self.get_fully_qualified_name()
            raise ConfigError(
                f"{(fixed or fixed_now)[0]} is fixed while the node is {self.state}; first type "
                f"ros2 lifecycle set {node} deactivate" + (", then cleanup" if fixed else "")
            )
        return self._prepare(old, new)
