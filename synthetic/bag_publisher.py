# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The player's ROS side: publishers, /clock, pace, and waiting."""

from __future__ import annotations

import logging
import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.exceptions import InvalidTopicNameException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image

from synthetic.player_config import PlayerConfig
from uncertainty_depth.core.process import Interrupt
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.recording import Topic

CLOCK_PERIOD_S = 0.025
SETTLED_S = 3.0  # after which no further subscriber is expected
IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
DEPTH = 10
MAX_LATCHED = 1000
CDR_STAMP_END = 12  # bytes
CLOCK_RANGE_NS = (-(2**31) * SECOND_NS, 2**31 * SECOND_NS)  # of builtin_interfaces/Time
ACKNOWLEDGED_WITHIN = Duration(seconds=10)
MESSAGE_TYPE = re.compile(r"([a-z][a-z0-9_]*)/(?:msg/)?([A-Z][A-Za-z0-9]*)")
logger = logging.getLogger(__name__)


@dataclass
class Played:
    """Counts of published messages.

    Attributes:
        sent: messages by topic.
        skipped: topics left out, with the reason.
        unsendable: messages by topic that are damaged or have no ROS 2 counterpart.
        unanswered: camera images whose result did not come in time.
    """

    sent: Counter[str] = field(default_factory=Counter)
    unsendable: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    unanswered: int = 0


class BagPublisher:
    """Context manager: one reliable publisher per topic whose message type is installed.

    It has its own ROS context. Ctrl-C raises `KeyboardInterrupt` between two messages or two
    waits. Raised at any other place it could interrupt rclpy's executor in its work, and closing
    the executor would then wait forever.
    """

    def __init__(
        self, topics: Mapping[str, Topic], config: PlayerConfig, interrupt: Interrupt
    ) -> None:
        self._config = config
        self._interrupt = interrupt
        self._pace = Pace(config.rate)
        self.played = Played()
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = Node("player", context=self._context, start_parameter_services=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._publishers: dict[str, Publisher] = {}
        self.topics = {
            name: topic
            for name, topic in topics.items()
            if topic.count and self._create_publisher(name, topic)
        }
        self._images = {
            name for name, topic in self.topics.items() if topic.message_type in IMAGE_TYPES
        }
        self._clock = self._node.create_publisher(Clock, "/clock", DEPTH) if config.clock else None
        self._last_result_ns: int | None = None
        self._awaited_ns: int | None = None
        if config.wait_for_result:
            self._node.create_subscription(
                Image, config.wait_for_result, self._on_result, _qos(latched=False), raw=True
            )

    def _create_publisher(self, name: str, topic: Topic) -> bool:
        try:
            self._publishers[name] = self._node.create_publisher(
                message_class(topic.message_type), name, _qos_of(name, topic)
            )
        except ImportError as error:
            self.played.skipped[name] = (
                f"message type {topic.message_type} is not installed ({error})"
            )
        except InvalidTopicNameException as error:
            problem = " ".join(str(error).split())
            self.played.skipped[name] = f"ROS 2 has no topic of such a name ({problem})"
        except Exception as error:  # other topics are played, whatever the middleware rejects
            problem = " ".join(str(error).split()) or type(error).__name__
            self.played.skipped[name] = f"it cannot be published ({problem})"
        return name in self._publishers

    def __enter__(self) -> BagPublisher:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _check_interrupt(self) -> None:
        if self._interrupt.requested:
            raise KeyboardInterrupt

    def _spin(self, seconds: float) -> None:
        self._executor.spin_once(timeout_sec=seconds)
        self._check_interrupt()

    def wait_for_subscribers(self) -> None:
        """Wait for the subscribers, or until the time is up; warn of topics without one.

        Several nodes may want a topic, and nobody another: all are there once none has come for a
        while, but not before a camera image has one, whose node loads its model first.
        """
        counts = self._subscribers()
        changed_s = time.monotonic()

        def are_there() -> bool:
            nonlocal counts, changed_s
            before, counts = counts, self._subscribers()
            if counts != before:
                changed_s = time.monotonic()
            has_image = not self._images or any(counts[name] for name in self._images)
            return has_image and time.monotonic() - changed_s >= SETTLED_S

        self._wait(are_there, self._config.wait_for_subscribers)
        unheard = [name for name, count in counts.items() if not count]
        if self._config.wait_for_subscribers and unheard:
            logger.warning("no subscriber of %s", ", ".join(unheard))

    def _subscribers(self) -> dict[str, int]:
        return {
            name: publisher.get_subscription_count()
            for name, publisher in self._publishers.items()
        }

    def send(self, topic: str, log_ns: int, data: bytes) -> None:
        """Publish a message's CDR bytes when it is due.

        With `wait_for_result`, wait for an image's result before sending the next image. Messages
        between them in the bag are sent first: a camera info often follows its image.
        """
        self._check_interrupt()
        stamp_ns = None
        if self._config.wait_for_result and topic in self._images:
            stamp_ns = header_stamp_ns(data)
            if self._awaited_ns != stamp_ns:
                self._wait_for_result()
        self._wait_until_due(log_ns)
        try:
            self._publishers[topic].publish(data)
        except RuntimeError:  # of rcl, e.g. damaged bytes: rclpy has no public name for it
            self.played.unsendable[topic] += 1
            return
        self.played.sent[topic] += 1
        self._awaited_ns = self._awaited_ns if stamp_ns is None else stamp_ns

    def _wait_until_due(self, log_ns: int) -> None:
        while (seconds := self._pace.due_in(log_ns)) > 0:
            self._publish_clock(self._pace.now_ns())
            self._spin(min(seconds, CLOCK_PERIOD_S))
        self._publish_clock(log_ns)

    def _publish_clock(self, time_ns: int) -> None:
        if self._clock is not None and CLOCK_RANGE_NS[0] <= time_ns < CLOCK_RANGE_NS[1]:
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(time_ns, SECOND_NS)
            self._clock.publish(message)

    def _wait_for_result(self) -> None:
        """Wait for the last sent image's result, if it is still pending."""
        stamp_ns = self._awaited_ns
        self._awaited_ns = None
        if stamp_ns is None:
            return
        start = time.monotonic()
        if not self._wait(lambda: self._last_result_ns == stamp_ns, self._config.result_timeout):
            self.played.unanswered += 1
            logger.warning(
                "no result for the image at %.9f s within %g s",
                stamp_ns * 1e-9,
                self._config.result_timeout,
            )
        self._pace.stand_still(time.monotonic() - start)

    def _on_result(self, data: bytes) -> None:
        self._last_result_ns = header_stamp_ns(data)

    def _wait(self, is_done: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not is_done() and time.monotonic() < deadline:
            self._spin(0.05)
        return is_done()

    def finish_round(self) -> None:
        """Wait until reliable subscribers have everything, then reset the pace."""
        self._wait_for_result()
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(ACKNOWLEDGED_WITHIN)
            self._check_interrupt()
        self._pace.restart()


def header_stamp_ns(data: bytes) -> int | None:
    """Return the stamp in a CDR message that begins with a header; None if too short."""
    if len(data) < CDR_STAMP_END:
        return None
    seconds, nanoseconds = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, 4)
    return seconds * SECOND_NS + nanoseconds


def _qos_of(name: str, topic: Topic) -> QoSProfile:
    """Return a topic's quality of service; tf_static is latched, whatever its recorder knew."""
    is_static = name.rpartition("/")[2] == "tf_static"
    qos = _qos(topic.latched or is_static)
    if is_static:  # of several publishers: tf2 needs all of them
        qos.depth = max(DEPTH, min(topic.count, MAX_LATCHED))
    return qos


def _qos(latched: bool) -> QoSProfile:
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    return QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE, durability=durability)


class Pace:
    """Maps a recording's times, from the first one on, to the wall clock, `rate` times as fast."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._origin: tuple[int, float] | None = None

    def due_in(self, log_ns: int) -> float:
        """Return the seconds until the message recorded at `log_ns` is due; negative when late."""
        if self._origin is None:
            self._origin = (log_ns, self._clock())
        first_ns, start = self._origin
        return start + (log_ns - first_ns) * 1e-9 / self._rate - self._clock()

    def now_ns(self) -> int:
        """Return the recording's current time."""
        if self._origin is None:
            return 0
        first_ns, start = self._origin
        return first_ns + round((self._clock() - start) * self._rate * 1e9)

    def stand_still(self, seconds: float) -> None:
        """Delay all later messages by a pause's duration."""
        if self._origin is not None:
            self._origin = (self._origin[0], self._origin[1] + seconds)

    def restart(self) -> None:
        """Restart with the next message."""
        self._origin = None


def message_class(name: str) -> type:
    """Return a message type's Python class, `package/msg/Name` or ROS 1's `package/Name`.

    A bag is untrusted, and importing a module runs it. So rosidl must have generated the package,
    with that message in it.

    Raises:
        ImportError: the type is not a message, or is not installed.
    """
    match = MESSAGE_TYPE.fullmatch(name)
    if match is None:
        raise ImportError(f"{name!r} is not a message type; expected package/msg/Name")
    package, message = match.groups()
    if not _is_generated(package, message):
        raise ImportError(
            f"no interface package {package!r} with message {message!r} is installed"
        )
    return getattr(import_module(f"{package}.msg"), message)


def _is_generated(package: str, message: str) -> bool:
    """Return whether rosidl generated the message's Python module; it only looks at files."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module made at run time
        return False
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    return any(
        (folder / "msg" / f"_{_snake_case(message)}.py").is_file()
        and any(folder.glob(f"{package}_s__rosidl_typesupport_*"))
        for folder in folders
    )


def _snake_case(name: str) -> str:
    """Return rosidl's module name of a message: PointCloud2 -> point_cloud2."""
    words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", words).lower()
