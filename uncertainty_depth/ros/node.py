# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The nodes' base: lifecycle, parameters, inputs and diagnostics.

Failed transitions and changes give a reason.
"""

from __future__ import annotations

import logging
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from std_srvs.srv import SetBool

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros.diagnostics import problem, resources_of, status_name
from uncertainty_depth.ros.guarded_node import GuardedNode, reason_of
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.parameters import NodeParameters

ConfigT = TypeVar("ConfigT", bound=Any)
UNCONFIGURED = "unconfigured"
INACTIVE = "inactive"
ACTIVE = "active"
FINALIZED = "finalized"
PACKAGE = "uncertainty_depth"
DIAGNOSTICS_PERIOD_S = 1.0
TEARDOWN_S = 1.5
BOND_TOPIC = "bond"
HEARTBEAT_PERIOD_S = 0.1
HEARTBEAT_TIMEOUT_S = 4.0
"""Nav2's own nodes have the same."""


class ManagedNode(GuardedNode, LifecycleNode, Generic[ConfigT]):
    """A lifecycle node that starts itself; transitions and changes succeed or change nothing.

    A subclass implements the transitions. If one raises, the exception is logged, answered with
    FAILURE, and undone; the node continues. While the node is active, only `live` parameters may
    change. Other changes, made while it is inactive, take effect at the next activation.
    """

    def __init__(self, name: str, task: str, config_type: type[ConfigT], **options: Any) -> None:
        """Declare the config's fields as parameters, or raise `ConfigError`; offer `~/enable`.

        The status on /diagnostics is called "NODE: TASK".
        """
        super().__init__(name, **options)
        self._log_handler = RosHandler(self)
        logging.getLogger(PACKAGE).addHandler(self._log_handler)
        self.state = UNCONFIGURED
        self.failure: Exception | None = None
        self._task = task
        self._logs_failures = True
        self._configured: ConfigT | None = None
        self._bond: Any = None
        with destroyed_on_failure(self):
            self._options = NodeParameters(self, config_type, self._on_change)
        self.inputs = Inputs(self)
        self.create_service(SetBool, "~/enable", self._on_enable)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        wall_time = Clock(clock_type=ClockType.STEADY_TIME)  # a stopped /clock hides nothing
        self.create_timer(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics, clock=wall_time)

    @property
    def config(self) -> ConfigT:
        """The parameters in use."""
        return self._options.config

    def _configure(self) -> None:
        """Create everything that the parameters require."""

    def _activate(self) -> None:
        """Subscribe."""

    def _deactivate(self) -> None:
        """Undo `_activate`, also one that failed halfway."""

    def _free(self) -> None:
        """Undo `_configure`, also one that failed halfway."""

    def _reconfigure(self, old: ConfigT | None, new: ConfigT) -> None:
        """Take changes made while the node was inactive; `old` is None after a failure."""
        self._free()
        self._configure()

    def _on_live_change(self, old: ConfigT, new: ConfigT) -> None:
        """Take live parameters while active, or raise why not before anything is changed."""

    def _expected_counters(self) -> Sequence[str]:
        """Return the counters that should keep growing while active, causes before effects."""
        return ()

    def _problems(self) -> Sequence[str]:
        """Return sentences on what else is wrong, each with what to do."""
        return self.inputs.problems

    def _diagnostic_values(self) -> Mapping[str, object]:
        """Return further values to publish: device, samples, queue and the like."""
        return {}

    def autostart(self) -> None:
        """Configure and activate if the parameter asks for it; a failed node is destroyed."""
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

    def inactive_status(self) -> tuple[bytes, str] | None:
        """Return diagnostic level and message of a node that is not active; None if it is."""
        if self.state == ACTIVE:
            return None
        if self.failure is not None:
            return DiagnosticStatus.ERROR, f"{self.state}: {reason_of(self.failure)}"
        enable = f"{self.get_fully_qualified_name()}/enable std_srvs/srv/SetBool"
        return DiagnosticStatus.OK, f"{self.state}: ros2 service call {enable} '{{data: true}}'"

    def _publish_diagnostics(self) -> None:
        """Publish level, message, counters, rates, ages and durations."""
        health = self.health
        rates = health.rates()
        expected = self._expected_counters() if self.state == ACTIVE else ()
        level, sentence = self.inactive_status() or problem(
            health, rates, expected, self._problems()
        )
        values = {name: str(count) for name, count in sorted(health.account().items())}
        values |= {f"{name}_rate_hz": f"{rate:.2f}" for name, rate in sorted(rates.items())}
        values |= {f"{name}_age_s": f"{health.age(name):.3f}" for name in expected}
        values |= {name: f"{value:.1f}" for name, value in health.percentiles_ms().items()}
        if (resources := resources_of()) is not None:
            values["memory_mib"] = f"{resources.memory_mib:.0f}"
            values["threads"] = str(resources.threads)
        values["state"] = self.state
        values |= {name: str(value) for name, value in self._diagnostic_values().items()}
        status = DiagnosticStatus(
            level=level,
            name=status_name(self, self._task),
            message=sentence,
            hardware_id=platform.node(),
            values=[KeyValue(key=key, value=text) for key, text in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure; a failure leaves the node unconfigured."""

        def configure() -> None:
            self._configure()
            self._configured = self.config

        return self._transit(INACTIVE, configure, self._free)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate with the current parameters; a failure leaves the node inactive."""

        def activate() -> None:
            old = self._configured
            if old != self.config:
                self._configured = None
                self._reconfigure(old, self.config)
                self._configured = self.config
            self._activate()

        result = self._transit(ACTIVE, activate, self._deactivate)
        if result == TransitionCallbackReturn.SUCCESS and not self.config.autostart:
            self._bond = bonded(self)  # whoever activates a node that does not start itself
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate; what was configured stays."""
        self._break_bond()
        return self._transit(INACTIVE, self._deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free what was configured."""
        return self._transit(UNCONFIGURED, self._free)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate and free: only the end of the process comes after."""
        self._break_bond()
        return self._transit(FINALIZED, self._stop)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything after a transition that rclpy itself could not finish."""
        return self._transit(UNCONFIGURED, self._stop)

    def destroy_node(self) -> None:
        """Destroy the node, and stop passing the package's log to it."""
        self._break_bond()
        logging.getLogger(PACKAGE).removeHandler(self._log_handler)
        super().destroy_node()

    def _break_bond(self) -> None:
        """Tell the manager that the node stops on purpose."""
        bond, self._bond = self._bond, None
        if bond is not None:
            bond.shutdown()
            # It destroys both itself, but a node still waits for their events, and rclpy raises.
            self.destroy_publisher(bond.pub)
            self.destroy_subscription(bond.sub)

    def _stop(self) -> None:
        if self.state == ACTIVE:
            self._deactivate()
        if self.state in (ACTIVE, INACTIVE):
            self._free()

    def _transit(
        self, goal: str, step: Callable[[], None], undo: Callable[[], None] | None = None
    ) -> TransitionCallbackReturn:
        try:
            step()
        except Exception as error:
            self.failure = error
            try:
                if undo is not None:
                    undo()
            except Exception as another:  # the transition's own failure is the one to answer
                self.get_logger().error(f"after a failed transition: {reason_of(another)}")
            if self._logs_failures:
                self.get_logger().error(f"stays {self.state}: {reason_of(error)}")
            return TransitionCallbackReturn.FAILURE
        self.failure = None
        self.state = goal
        return TransitionCallbackReturn.SUCCESS

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

    def _on_change(self, old: ConfigT, new: ConfigT) -> None:
        if self.state != ACTIVE:
            return
        for item in parameters_of(type(new)):
            is_changed = getattr(old, item.name) != getattr(new, item.name)
            if is_changed and not item.metadata["live"]:
                raise ConfigError(
                    f"{item.name} is fixed while the node is active; first type "
                    f"ros2 lifecycle set {self.get_fully_qualified_name()} deactivate"
                )
        self._on_live_change(old, new)
        self._configured = new


class RosHandler(logging.Handler):
    """Passes the package's warnings, for example a model's, on to the node's log: /rosout."""

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


def take_down(step: Callable[[], object]) -> None:
    """Run a shutdown step; after `TEARDOWN_S` leave it to `main.exit_if_stuck`."""
    thread = threading.Thread(target=step, name="teardown", daemon=True)
    thread.start()
    thread.join(TEARDOWN_S)


@contextmanager
def destroyed_on_failure(node: Node) -> Iterator[None]:
    """Destroy a node that cannot be constructed, which its exception would keep in the graph."""
    try:
        yield
    except Exception:
        take_down(node.destroy_node)
        raise


def bonded(node: Node) -> Any | None:
    """Return a node's `bondpy.bondpy.Bond`, started; None without bondpy, which is logged."""
    try:
        from bondpy.bondpy import Bond
    except ImportError:
        node.get_logger().info(
            "bondpy is not installed: no bond to a lifecycle manager; for Nav2's, install "
            "ros-$ROS_DISTRO-bondpy, or set its bond_timeout to 0.0"
        )
        return None
    bond = Bond(node, BOND_TOPIC, node.get_name())
    bond.set_heartbeat_period(HEARTBEAT_PERIOD_S)
    bond.set_heartbeat_timeout(HEARTBEAT_TIMEOUT_S)
    bond.start()
    return bond
