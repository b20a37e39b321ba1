# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A ROS graph for each test session, helpers that wait for events, and small real inputs."""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from uncertainty_depth.sigma.measurement_option import parse_measurements

DOMAINS = range(1, 101)
DEADLINE_S = 120.0  # of a busy machine; what is waited for comes within a second on a free one
ASK_AGAIN_S = 10.0
MS = 1_000_000
WIDTH, HEIGHT = 32, 24
POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
NODE_COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"


WITHOUT_ROS = ("command_line", "robot_files", "worker")
"""Files of tests that need no ROS, at least in part."""


class NeedsRos(pytest.File):
    def collect(self):
        pytest.skip("ROS 2 is not installed", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if find_spec("rclpy") is None and module_path.stem.removeprefix("test_") not in WITHOUT_ROS:
        return NeedsRos.from_parent(parent, path=module_path)
    return None


def lock_domain():
    """Return a domain that no other process of tests on this machine has, and its locked file."""
    for domain in DOMAINS:
        file = (Path(tempfile.gettempdir()) / f"uncertainty_depth_ros_domain_{domain}").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return domain, file
    raise RuntimeError("all domains are in use by other runs of these tests")


DOMAIN, DOMAIN_LOCK = lock_domain()
os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="ros_log_")


class Inbox:
    """Collects the messages of a subscription."""

    def __init__(self):
        self.messages = []
        self._changed = threading.Condition()

    def __call__(self, message):
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def wait(self, enough=1, seconds=DEADLINE_S):
        """Return the messages once there are `enough`, or once `enough(messages)` holds."""
        done = enough if callable(enough) else lambda messages: len(messages) >= enough
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.messages), seconds), (
                f"{len(self.messages)} messages: {self.messages[-3:]}"
            )
            return list(self.messages)

    def wait_for(self, predicate, seconds=DEADLINE_S):
        """Return the first message for which `predicate` holds."""
        return next(
            filter(predicate, self.wait(lambda messages: any(map(predicate, messages)), seconds))
        )


def of_topic(endpoints, topic):
    return [endpoint for endpoint in endpoints if endpoint.topic_name == topic]


class Graph:
    """A ROS context with a helper node that spins in the background, and nodes under test."""

    def __init__(self, domain=DOMAIN):
        import rclpy
        import rclpy.exceptions
        from rclpy.executors import SingleThreadedExecutor

        self.rclpy = rclpy
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("helper", context=self.context)
        self._running = []
        self._clock = None
        self._spin(SingleThreadedExecutor(context=self.context), self.node)

    def _spin(self, executor, node):
        executor.add_node(node)
        stopping = threading.Event()
        thread = threading.Thread(target=self._run, args=(executor, stopping), daemon=True)
        thread.start()
        self._running.append((executor, thread, node, stopping))
        return node

    def _run(self, executor, stopping):
        from rclpy.executors import ExternalShutdownException

        with suppress(ExternalShutdownException):
            while not stopping.is_set():
                executor.spin_once(timeout_sec=1.0)

    def start(self, node_class, arguments=(), **parameters):
        """Start a node class with parameters, on the executor it asks for."""
        from rclpy.executors import SingleThreadedExecutor

        gc.collect()  # a lifecycle node that was stopped lives in the graph until then
        overrides = [
            self.rclpy.Parameter(name.replace("__", "."), value=value)
            for name, value in parameters.items()
        ]
        cli = ["--ros-args", *arguments] if arguments else None
        executor = SingleThreadedExecutor(context=self.context)
        node = node_class(
            context=self.context,
            parameter_overrides=overrides,
            cli_args=cli,
            use_global_arguments=False,
        )
        return self._spin(executor, node)

    def stop(self, node):
        entry = next(entry for entry in self._running if entry[2] is node)
        executor, thread, _, stopping = entry
        stopping.set()
        executor.create_task(lambda: None)  # `wake` would not end its wait
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
        self._running.remove(entry)
        executor.shutdown()  # only now: Jazzy's cannot be shut down while it spins
        (node.close if hasattr(node, "close") else node.destroy_node)()

    def close(self):
        for entry in reversed(list(self._running)):
            self.stop(entry[2])
        self.rclpy.try_shutdown(context=self.context)

    def inbox(self, message_type, topic, qos=10, matched=True):
        inbox = Inbox()
        subscription = self.node.create_subscription(message_type, topic, inbox, qos)
        if matched:
            self.until(
                lambda: (
                    self.node.count_publishers(topic)
                    and subscription.get_publisher_count()
                    and self._is_found(subscription.topic_name)
                ),
                f"a publisher of {topic}",
            )
        return inbox

    def publisher(self, message_type, topic, qos=10):
        publisher = self.node.create_publisher(message_type, topic, qos)
        self.until(
            lambda: publisher.get_subscription_count() and self._is_found(publisher.topic_name),
            f"a subscriber of {topic}",
        )
        return publisher

    def _is_found(self, topic):
        """Whether the nodes of this process have found the helper: each side finds the other."""
        nodes = [entry[2] for entry in self._running if entry[2] is not self.node]
        try:
            publishers = of_topic(self.node.publishers, topic)
            subscriptions = of_topic(self.node.subscriptions, topic)
            readers = of_topic(chain.from_iterable(node.subscriptions for node in nodes), topic)
            writers = of_topic(chain.from_iterable(node.publishers for node in nodes), topic)
            return (
                all(node.count_publishers(topic) >= len(publishers) for node in nodes)
                and all(node.count_subscribers(topic) >= len(subscriptions) for node in nodes)
                and all(reader.get_publisher_count() >= len(publishers) for reader in readers)
                and all(
                    writer.get_subscription_count() >= len(subscriptions) for writer in writers
                )
            )
        except self.rclpy.exceptions.InvalidHandle:  # of one that a node just closed
            return False

    def set_clock(self, node, seconds):
        """Publish a /clock, which the node then has."""
        from rosgraph_msgs.msg import Clock

        if self._clock is None:
            self._clock = self.publisher(Clock, "/clock")
        time_ns = seconds * 1000 * MS
        self._clock.publish(Clock(clock=header(time_ns).stamp))
        now = node.get_clock().now
        self.until(lambda: now().nanoseconds == time_ns, f"the clock at {seconds} s")

    def call(self, service_type, service, request=None):
        """Return the answer; ask again where none came: discovery may have lost it."""
        client = self.node.create_client(service_type, service)
        assert client.wait_for_service(DEADLINE_S), service
        for deadline_s in (ASK_AGAIN_S, DEADLINE_S):
            answered = threading.Event()
            future = client.call_async(request or service_type.Request())
            future.add_done_callback(lambda _, answered=answered: answered.set())
            if answered.wait(deadline_s):
                return future.result()
        raise AssertionError(f"{service} does not answer")

    def set_parameters(self, node_name, **values):
        """Set parameters together through the node's service; return the result message."""
        from rcl_interfaces.srv import SetParametersAtomically

        parameters = [
            self.rclpy.Parameter(name, value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        request = SetParametersAtomically.Request(parameters=parameters)
        return self.call(
            SetParametersAtomically, f"{node_name}/set_parameters_atomically", request
        ).result

    def refuses(self, node_name, reason, **values):
        """Expect that a node does not take these parameters, and says why."""
        result = self.set_parameters(node_name, **values)
        assert not result.successful
        assert reason in result.reason

    @staticmethod
    def until(condition, what, seconds=DEADLINE_S):
        """Wait for discovery, of which the middleware sends no event."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"no {what} after {seconds} s"
            time.sleep(0.01)


class ProcessOnThread(threading.Thread):
    """Starts at once, and cannot be killed. As a process, it has its own end of a connection."""

    def __init__(self, args, **options):
        super().__init__(args=[Connection(os.dup(one.fileno())) for one in args], **options)

    def kill(self):
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Save reports on threads: a process takes seconds to start. Timers are five times as fast."""
    if find_spec("rclpy") is not None:
        from uncertainty_depth.ros import evaluator_node, node, report_saver

        monkeypatch.setattr(report_saver, "START_PROCESS", ProcessOnThread)
        monkeypatch.setattr(node, "DIAGNOSTICS_PERIOD_S", 0.2)
        monkeypatch.setattr(evaluator_node, "PERIOD_S", 0.2)


@pytest.fixture
def graph():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    gc.collect()  # a lifecycle node of the test before lives in the graph as long as its object
    gc.freeze()  # what lives now, mostly of torch, is not looked through again: 0.2 s each time
    graph = Graph()
    yield graph
    graph.close()


class Process:
    """A node as a process; its output is collected as it comes."""

    def __init__(self, command):
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self._lines = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    @property
    def output(self):
        return "".join(self._lines)

    @property
    def pid(self):
        return self._process.pid

    def wait_for_output(self, text):
        with self._changed:
            assert self._changed.wait_for(lambda: text in self.output, DEADLINE_S), self.output

    def send(self, number):
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, number=None):
        """Send a signal, if any, and return the exit code."""
        if number is not None:
            self._process.send_signal(number)
        try:
            code = self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()
        self._reader.join(DEADLINE_S)
        return code


@pytest.fixture
def start_python():
    """Start Python as a process with these arguments."""
    processes = []

    def start_process(*arguments):
        processes.append(Process([sys.executable, *arguments]))
        return processes[-1]

    yield start_process
    for process in processes:
        process.end(signal.SIGKILL)


@pytest.fixture
def start_node(start_python):
    """Start a node as a process with these ROS arguments."""

    def start(node, *arguments):
        return start_python("-c", NODE_COMMAND.format(node), "--ros-args", *arguments)

    return start


def header(stamp_ns, frame_id="camera"):
    from builtin_interfaces.msg import Time
    from std_msgs.msg import Header

    seconds, nanoseconds = divmod(stamp_ns, 1_000_000_000)
    return Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=frame_id)


def camera_info(stamp_ns, width=WIDTH, height=HEIGHT, focal=40.0, **fields):
    from sensor_msgs.msg import CameraInfo

    k = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]])
    given = {
        "distortion_model": "plumb_bob",
        "d": [0.0] * 5,
        "k": k.ravel(),
        "p": np.insert(k, 3, 0, axis=1).ravel(),
        "r": np.eye(3).ravel(),
        **fields,
    }
    return CameraInfo(header=header(stamp_ns), width=width, height=height, **given)


def cloud(points, stamp_ns, frame_id="lidar", names="xyz"):
    from sensor_msgs.msg import PointCloud2, PointField

    rows = np.ascontiguousarray(points, np.float32)
    message = PointCloud2(
        header=header(stamp_ns, frame_id),
        height=1,
        width=len(rows),
        point_step=4 * len(names),
        row_step=4 * len(names) * len(rows),
    )
    message.fields = [
        PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
        for index, name in enumerate(names)
    ]
    message.data = rows.tobytes()
    return message


def points_on_plane(count=400, depth=4.0, spread=3.0, seed=0):
    """Points in the camera's own optical frame, all at one depth."""
    across = np.random.default_rng(seed).uniform(-spread, spread, (count, 2))
    return np.column_stack([across, np.full(count, depth)])


def maps(seed=0, size=(HEIGHT, WIDTH)):
    """Depth and sigma, metres."""
    random = np.random.default_rng(seed)
    return [random.uniform(*limits, size).astype(np.float32) for limits in ((3, 5), (0.1, 1))]


def frame_messages(stamp_ns, points, seed=0):
    """What an evaluator gets for one frame, by topic: from the depth node, and from a LiDAR."""
    from uncertainty_depth.ros.messages import image_message

    depth, sigma = (image_message(values, header(stamp_ns)) for values in maps(seed))
    return {
        "depth/camera_info": camera_info(stamp_ns),
        "depth/image_rect": depth,
        "uncertainty/image_rect": sigma,
        "lidar/points": cloud(points, stamp_ns),
    }


@pytest.fixture
def make():
    """Builders of messages."""
    from uncertainty_depth.ros.messages import image_message

    def image(stamp_ns, values, frame_id="camera"):
        return image_message(values, header(stamp_ns, frame_id))

    return SimpleNamespace(
        header=header,
        image=image,
        camera_info=camera_info,
        cloud=cloud,
        points_on_plane=points_on_plane,
    )


class ManualClock:
    """A clock that the test moves, seconds."""

    now = 10.0

    def __call__(self):
        return self.now


class FakeNode:
    """What a part of a node asks rclpy for, in no graph; `heard` topics have a subscriber."""

    def __init__(self, **parameters):
        self.logs = []
        self.sent = {}
        self.types = {}
        self.heard = set()
        self.asked = {}
        self.parameters = parameters

    def get_subscriptions_info_by_topic(self, topic):
        return [SimpleNamespace(qos_profile=self.asked[topic])] if topic in self.asked else []

    def resolve_topic_name(self, topic):
        return f"/{topic.lstrip('/')}"

    def count_publishers(self, topic):
        return 1

    def get_logger(self):
        log = lambda text, **_: self.logs.append(text)  # noqa: E731
        return SimpleNamespace(info=log, warning=log, error=log)

    def create_publisher(self, message_type, topic, qos):
        self.types[topic] = message_type
        sent = self.sent.setdefault(topic, [])
        count = lambda: int(topic in self.heard)  # noqa: E731
        return SimpleNamespace(publish=sent.append, get_subscription_count=count)


def dropped(node):
    """How many frames a node dropped, by reason."""
    counts = node.health.counts().items()
    return {
        name.removeprefix("dropped."): count
        for name, count in counts
        if name.startswith("dropped.")
    }


def facts(array):
    """The values of a DiagnosticArray's only status."""
    return {item.key: item.value for item in array.status[0].values}


def numbers(array):
    """Its whole numbers."""
    return {name: int(text) for name, text in facts(array).items() if text.isdigit()}


def type_of(topic):
    """A topic's message type, and whether it is latched, by the end of its name."""
    from diagnostic_msgs.msg import DiagnosticArray
    from rcl_interfaces.msg import Log
    from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
    from std_msgs.msg import String

    types = {
        ("camera_info",): CameraInfo,
        ("points", "confident", "clearing", "uncertainty_color"): PointCloud2,
        ("diagnostics", "metrics", "prediction_info", "calibration"): DiagnosticArray,
        ("compressed", "compressedDepth"): CompressedImage,
        ("model",): String,
        ("rosout",): Log,
    }
    end = topic.rpartition("/")[2]
    found = (message_type for ends, message_type in types.items() if end in ends)
    return next(found, Image), end in ("model", "calibration")


class Robot:
    """Cameras and a LiDAR around the nodes under test, which are there before it is asked.

    A topic is made at its first use. Stamps are in milliseconds.
    """

    def __init__(self, graph, namespace=""):
        self.graph = graph
        self.namespace = namespace
        self._inboxes = {}
        self._publishers = {}

    def _made(self, made, make, topic):
        if topic not in made:
            from uncertainty_depth.ros.qos import LATCHED_QOS

            message_type, is_latched = type_of(topic)
            name = topic if topic.startswith("/") else self.namespace + topic
            made[topic] = make(message_type, name, LATCHED_QOS if is_latched else 100)
        return made[topic]

    def heard(self, topic):
        """The inbox of a topic that a node publishes."""
        return self._made(self._inboxes, self.graph.inbox, topic)

    def publisher(self, topic):
        """The publisher of a topic that a node subscribes to."""
        return self._made(self._publishers, self.graph.publisher, topic)

    def send(self, topic, message):
        self.publisher(topic).publish(message)

    def image(self, stamp, pixels=None, frame_id="camera"):
        from uncertainty_depth.ros.messages import image_message

        pixels = red() if pixels is None else pixels
        self.send("image", image_message(pixels, header(stamp * MS, frame_id)))

    def info(self, stamp=0, topic="camera_info", **options):
        self.send(topic, camera_info(stamp * MS, **options))

    def predict(self, stamp, depth_and_sigma=None, info=True):
        """Publish maps as the depth node does."""
        from uncertainty_depth.ros.messages import image_message

        if info:
            self.info(stamp, "depth/camera_info")
        for name, values in zip(("depth", "uncertainty"), depth_and_sigma or maps(), strict=True):
            self.send(f"{name}/image_rect", image_message(values, header(stamp * MS)))

    def scan(self, stamp, points=None, **options):
        points = points_on_plane() if points is None else points
        self.send("lidar/points", cloud(points, stamp * MS, **options))

    def informed(self):
        """Wait until the depth node has a camera info."""
        self.told(lambda values: not values.get("camera_info", "missing").startswith("missing"))

    def told(self, predicate):
        """The first diagnostics for whose values, and their text, `predicate` holds."""
        return self.heard("/diagnostics").wait_for(
            lambda array: predicate(facts(array) | {"message": array.status[0].message})
        )


@pytest.fixture
def robot(graph):
    return Robot(graph)


def red(value=4, width=WIDTH, height=HEIGHT):
    """An image of one depth, for the fake network."""
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0] = value
    return image


class FakePredictor:
    """Depth = red channel in metres, or the LiDAR's; sigma a tenth; waits while `gate` is closed.

    It fails at a red of 66, and its memory runs out at one of 67.

    Attributes:
        newest: the one that a node loaded last.
        measured: what corrected each prediction.
    """

    model = SimpleNamespace(method="mc_dropout")
    device = "cpu"
    depth_range = (0.3, 12.0)
    sigma_name = "fake"
    loads = 0
    newest = None

    def __init__(self, config):
        from uncertainty_depth.core.errors import ModelError
        from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION

        if config.method == "multi_epochs":
            raise ModelError(f"{config.model} has no snapshots")
        if config.method == "mc_dropout" and config.samples == 13:
            raise MemoryError("no room for a network")
        self.measurements = parse_measurements(config.measurements)
        self.measured = []
        self.half_widths = BY_DISTRIBUTION["gaussian"]
        self.method = config.method or self.model.method
        self.config = config
        FakePredictor.loads += 1
        FakePredictor.newest = self
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.gate.set()

    @property
    def passes(self):
        return self.config.samples

    def predict_frame(self, frame, samples=None):
        from uncertainty_depth.core.errors import MessageError
        from uncertainty_depth.core.records import DepthPrediction

        self.measured.append(frame.measurements)
        self.begun.release()
        assert self.gate.wait(DEADLINE_S)
        if frame.image[0, 0, 0] == 66:
            raise RuntimeError("the network fails")
        if frame.image[0, 0, 0] == 67:
            raise MessageError("out_of_memory", "the memory of cuda is too small for a frame")
        depth_m = frame.image[..., 0].astype(np.float32)
        if frame.sparse_m is not None:
            depth_m = np.where(np.isnan(frame.sparse_m), depth_m, frame.sparse_m)
        return DepthPrediction(depth_m, depth_m / 10)

    def describe(self):
        described = {"method": self.method, "samples": self.config.samples}
        return described | {"measurements": self.config.measurements}


@pytest.fixture
def start_depth(graph, monkeypatch):
    """Start a depth node with a fake network."""
    from uncertainty_depth.ros import depth_node

    def start(arguments=(), predictor=FakePredictor, **parameters):
        monkeypatch.setattr(depth_node, "load_predictor", predictor)
        options = {"model": "fake", "max_frame_age": 0.0, **parameters}
        return graph.start(depth_node.DepthNode, arguments, **options)

    return start


@pytest.fixture(scope="session")
def tiny_model(make_model, tmp_path_factory):
    """A model folder with random weights and two members, for mc_dropout and multi_epochs."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    return make_model(folder, input_size=(64, 64), dropout=0.5)


@pytest.fixture
def start_beside(start_depth, robot):
    """Start a depth node with what measures beside the image; return its counts, and `predict`.

    That sends a message, if any, waits until it is counted, then sends an image of 9 m, and
    returns the depth.
    """
    from uncertainty_depth.frames.messages.images import decode_depth

    def start(info=True, **parameters):
        node = start_depth(**parameters)
        depths = robot.heard("depth/image_rect")
        if info:
            robot.info()
            robot.informed()
        counts = node.health.counts

        def predict(stamp, topic="", message=None):
            if message is not None:
                received = f"received.{topic}"
                expected = counts().get(received, 0) + 1
                robot.send(topic, message)
                robot.graph.until(lambda: counts().get(received) == expected, "the message")
            before = len(depths.messages)
            robot.image(stamp, red(9))
            return decode_depth(depths.wait(before + 1)[-1])

        return SimpleNamespace(counts=counts, predict=predict)

    return start


RUNS = {
    "depth_node": (
        {"model": "fake", "lidar_to_camera": POSE, "measurements": "lidar,points,depth"},
        {"model": "fake", "lidar_to_camera": POSE, "compressed_input": True, "use_sim_time": True},
    ),
    "evaluator_node": (
        {"lidars": 4, "lidar_to_camera": 4 * POSE},
        {"use_ground_truth_image": True, "lidar_to_camera": POSE, "use_sim_time": True},
    ),
    "sigma_node": (
        {"use_sim_time": True},
        {"measurements": "lidar,points,depth,motion", "lidar_to_camera": POSE},
    ),
    "empty_node": ({"use_sim_time": True},),
}
"""Parameters that together make a node have all of its topics."""


@pytest.fixture(scope="session")
def interfaces():
    """What each node has: full names of its subscriptions, publishers and services, with types.

    `empty_node` has what every lifecycle node has.
    """
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from rclpy.lifecycle import LifecycleNode

    from test.ros import tf2_stand_in
    from uncertainty_depth.frames.transforms import TransformTree
    from uncertainty_depth.ros import depth_node, evaluator_node, sigma_node

    class EmptyNode(LifecycleNode):
        def __init__(self, **options):
            super().__init__("empty_node", **options)

    classes = (depth_node.DepthNode, evaluator_node.EvaluatorNode, sigma_node.SigmaNode, EmptyNode)
    found = {name: ({}, {}, {}) for name in RUNS}
    domain, lock = lock_domain()  # a separate one: nodes with these names may outlive their tests
    graph = Graph(domain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth_node, "load_predictor", FakePredictor)
        tf2_stand_in.install(patch, TransformTree())
        for (name, runs), node_class in zip(RUNS.items(), classes, strict=True):
            for parameters in runs:
                node = graph.start(node_class, **parameters)
                graph.until(lambda node=node: is_listed(node), "all of the node in the graph")
                for types, more in zip(found[name], names_and_types(node), strict=True):
                    types |= more
                assert not node.get_client_names_and_types_by_node(name, "/")
                graph.stop(node)
                del node
    graph.close()
    lock.close()
    return found


def names_and_types(node):
    """What the graph has of a node: subscribed, published and served names, with their types."""
    queries = (
        node.get_subscriber_names_and_types_by_node,
        node.get_publisher_names_and_types_by_node,
        node.get_service_names_and_types_by_node,
    )
    return [{name: types[0] for name, types in query(node.get_name(), "/")} for query in queries]


def is_listed(node):
    """Whether the graph, which is filled some time later, has what the node has made."""
    subscribed, published, served = names_and_types(node)
    return (
        published.keys() >= {item.topic_name for item in node.publishers}
        and subscribed.keys() >= {item.topic_name for item in node.subscriptions}
        and len(served) >= len(list(node.services))
        and f"/{node.get_name()}/transition_event" in published
    )
