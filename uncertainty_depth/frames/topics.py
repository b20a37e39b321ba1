# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose the topics for camera, camera info and ground truth in a recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from uncertainty_depth.core.config.source import PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.geometry.transforms import POSE_NUMBERS
from uncertainty_depth.frames.messages.clouds import is_predicted
from uncertainty_depth.frames.messages.compressed import encoding_of, is_depth_encoding
from uncertainty_depth.frames.published import info_beside

if TYPE_CHECKING:
    from uncertainty_depth.frames.recording import Topic  # rosbags, which no node needs

IMAGE = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
CAMERA_INFO = ("sensor_msgs/msg/CameraInfo",)
PREDICTION_INFO = ("diagnostic_msgs/msg/DiagnosticArray",)
CLOUD = ("sensor_msgs/msg/PointCloud2",)
TRANSFORMS = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
"""The second is tf's own, in bags of the first years of ROS."""
TRANSPORTS = ("/zstd", "/compressedDepth", "/compressed")
"""Those without loss first."""

PACKED = (
    "point_cloud_interfaces/msg/CompressedPointCloud2",
    "ffmpeg_image_transport_msgs/msg/FFMPEGPacket",
    "theora_image_transport/msg/Packet",
)
"""Images and clouds of transports that are not read here."""
OUTPUTS = ("depth/", "uncertainty/", "evaluator_node/")
"""Namespaces that the nodes' images have."""
SIGMA = "uncertainty/image_rect"
NO_PREDICTIONS = PredictionTopics()
DRIVERS = (
    ("this package", "depth/corrected/image_rect", SIGMA, "sigma"),
    ("this package", "depth/image_rect", SIGMA, "sigma"),
    ("ZED", "depth/depth_registered", "confidence/confidence_map", "uncertainty_rank"),
    ("RealSense L515", "depth/image_rect_raw", "confidence/image_rect_raw", "certainty_rank"),
    ("Roboception", "stereo/depth", "stereo/error_depth", "sigma"),
    ("Roboception", "stereo/depth", "stereo/confidence", "confidence_0_1"),
    ("RealSense", "depth/image_rect_raw", "", "none"),
    ("OAK", "stereo/image_raw", "", "none"),
)
"""How nodes and cameras' drivers name depth and confidence, and its type. A sigma node's sigma
is of the depth that it corrected."""
NAMED_CONFIDENCE = re.compile("conf|uncert|sigma|varian|error", re.IGNORECASE)
NAMED_DEPTH = re.compile("depth|dispar", re.IGNORECASE)
"""Words in the names of topics of drivers that are not known."""
FirstMessage = Callable[[str], Any]
"""Returns the first message on a topic; None if none can be read."""


class Topics(NamedTuple):
    """Names of the topics that frames are made from.

    Attributes:
        image: camera images.
        camera_info: of the same camera; may be empty if a depth image is the ground truth.
        lidars: point clouds; none if a depth image is the ground truth.
        depth_image: empty if the LiDAR is the ground truth.
        truth_camera_info: of a depth image that is the ground truth of maps; empty if there is
            none, and for the ground truth of images, which is registered to them.
        prediction_info: of how the depth to score was made; empty if there is none.
    """

    image: str
    camera_info: str
    lidars: tuple[str, ...]
    depth_image: str = ""
    truth_camera_info: str = ""
    prediction_info: str = ""

    @property
    def ground_truths(self) -> tuple[str, ...]:
        """The LiDARs' topics, or the depth image's."""
        return self.lidars or (self.depth_image,)


class TopicChooser:
    """Chooses the topics named by a config, or else the only candidates in the bag.

    Camera and depth images are distinguished by encoding: 16UC1 and 32FC1 are depth.
    """

    def __init__(
        self,
        bag: str,
        topics: Mapping[str, Topic],
        config: SourceConfig,
        first: FirstMessage,
        predictions: PredictionTopics = NO_PREDICTIONS,
    ) -> None:
        """Take the bag's name and topics, and what its first messages show."""
        self._bag = bag
        self._topics = topics
        self._config = config
        self._first = first
        self._predictions = predictions

    def choose(self) -> Topics:
        """Return the topics to read, or raise `SourceError`, which names the candidates."""
        config = self._config
        if config.lidar_topic and config.ground_truth_topic:
            raise SourceError(
                f"lidar_topic is {config.lidar_topic!r} and ground_truth_topic "
                f"{config.ground_truth_topic!r}; expected one of them, which is the ground truth"
            )
        image = self._image()
        lidars, depth_image = self._ground_truth(image)
        self._check_measured((*lidars, depth_image))
        if len(lidars) > 1 and len(config.lidar_to_camera) == POSE_NUMBERS:
            raise SourceError(
                f"lidar_topic names {len(lidars)} LiDARs and lidar_to_camera is one pose; "
                "expected x y z qx qy qz qw of each, or their poses on /tf_static"
            )
        info = config.camera_info_topic
        candidates = self._of(CAMERA_INFO)
        if not info and (candidates or lidars):
            sibling = camera_info_beside(image)
            flag = "--camera-info-topic"
            is_there = sibling in candidates
            info = sibling if is_there else self._only(candidates, "camera info", flag)
        if info:
            self._check(info, CAMERA_INFO, "camera_info_topic")
        of_truth = ""
        if depth_image and self._predictions.depth_topic:
            beside = camera_info_beside(depth_image)
            of_truth = beside if beside in candidates else ""
        made = info_beside(self._predictions.depth_topic)
        is_described = made in self._of(PREDICTION_INFO)
        return Topics(image, info, lidars, depth_image, of_truth, made if is_described else "")

    def _image(self) -> str:
        """Return the topic with the depth to score, or else with the camera image."""
        predictions = self._predictions
        if predictions.depth_topic:
            self._check(predictions.depth_topic, IMAGE, "depth_topic")
            if predictions.confidence_topic:
                self._check(predictions.confidence_topic, IMAGE, "confidence_topic")
            shown = self._config.image_topic
            if shown:
                self._check(shown, IMAGE, "image_topic")
                scored = (predictions.depth_topic, predictions.confidence_topic)
                if self._is_depth(shown) or shown in scored:
                    raise SourceError(
                        f"image_topic {shown!r} in {self._bag} holds depth or confidence; "
                        "expected the camera image to show beside them, or no image_topic"
                    )
            return predictions.depth_topic
        image = self._config.image_topic
        if not image:
            images = self._images(depth=False)
            depths = self._images(depth=True)
            if depths and not images:
                own = recorded_predictions(self._topics, self._first)
                words = own.options() if own else f"--depth-topic {depths[0]}"
                raise SourceError(
                    f"{self._bag} has depth images and no camera image; expected one for a model, "
                    f"or {words} to score the recorded depth"
                )
            image = self._only(images, "camera image", "--image-topic")
        self._check(image, IMAGE, "image_topic")
        return image

    def _ground_truth(self, image: str) -> tuple[tuple[str, ...], str]:
        """Return the LiDAR topics and the depth image topic, one of them empty."""
        config = self._config
        if config.ground_truth_topic:
            self._check(config.ground_truth_topic, IMAGE, "ground_truth_topic")
            return (), config.ground_truth_topic
        lidars = tuple(filter(None, map(str.strip, config.lidar_topic.split(","))))
        clouds = [name for name in self._of(CLOUD) if not self._is_predicted(name)]
        if clouds and not lidars:
            flag = "--lidar-topic, or several with commas between them"
            lidars = (self._only(clouds, "LiDAR point cloud", flag),)
        if lidars:
            for lidar in lidars:
                self._check(lidar, CLOUD, "lidar_topic")
                if self._is_predicted(lidar):
                    raise SourceError(
                        f"lidar_topic {lidar!r} in {self._bag} holds points of predicted depth, "
                        "with their uncertainty, not ground truth; expected the cloud of a LiDAR"
                    )
            return tuple(dict.fromkeys(lidars)), ""
        depth_images = self._images(depth=True, besides=image)
        if not depth_images:
            self._only([], "LiDAR point cloud or depth image", "--lidar-topic")
        return (), self._only(depth_images, "depth image", "--ground-truth-topic")

    def _images(self, depth: bool, besides: str = "") -> list[str]:
        """Return image topics with or without depth, each in one transport: raw if recorded."""
        confidences = [it.topics.confidence_topic for it in driver_predictions(self._topics)]
        named = (besides, self._predictions.confidence_topic, *confidences)
        others = set(map(without_transport, named))
        return [
            name
            for name in _raw_first(self._of(IMAGE))
            if without_transport(name) not in others
            and not is_published(name, self._topics)
            and self._is_depth(name) == depth
        ]

    def _is_depth(self, image: str) -> bool:
        """Return whether the first image on a topic holds depth; False if none can be read."""
        return _has_depth_encoding(self._first(image))

    def _is_predicted(self, cloud: str) -> bool:
        """Return whether the first cloud on a topic was made from predicted depth."""
        message = self._first(cloud)
        return message is not None and is_predicted(message)

    def _of(self, types: tuple[str, ...]) -> list[str]:
        """Return the topics with these types that nothing else is read from."""
        config = self._config
        taken = (config.measured_points_topic, config.measured_depth_topic)
        return sorted(
            name
            for name, topic in self._topics.items()
            if topic.message_type in types and topic.count and name not in taken
        )

    def _only(self, candidates: list[str], role: str, flag: str) -> str:
        if not candidates:
            raise SourceError(
                f"{self._bag} has no messages on any {role} topic; it has "
                f"{_listed(self._topics)}{_hint(self._topics)}"
            )
        if len(candidates) > 1:
            raise SourceError(
                f"{self._bag} has {len(candidates)} {role} topics, {', '.join(candidates)}; "
                f"choose one with {flag}"
            )
        return candidates[0]

    def _check_measured(self, ground_truths: Collection[str]) -> None:
        """Check the topics that measure beside the model: none is the ground truth."""
        config = self._config
        for name, types, option in (
            (config.measured_points_topic, CLOUD, "measured_points_topic"),
            (config.measured_depth_topic, IMAGE, "measured_depth_topic"),
        ):
            if not name:
                continue
            self._check(name, types, option)
            if name in ground_truths:
                raise SourceError(
                    f"{option} is {name!r}, which is the ground truth of {self._bag}; expected "
                    "another topic, or measurements lidar, which holds part of it out"
                )

    def _check(self, name: str, types: tuple[str, ...], option: str) -> None:
        topic = self._topics.get(name)
        if topic is None or not topic.count:
            raise SourceError(
                f"{self._bag} has no messages on {option} {name!r}; it has {_listed(self._topics)}"
            )
        if topic.message_type not in types:
            raise SourceError(
                f"{option} {name!r} in {self._bag} is {topic.message_type}; "
                f"expected {' or '.join(types)}"
            )


def transform_topics(
    topics: Mapping[str, Topic], sensors: Collection[str], name: str = "tf_static"
) -> list[str]:
    """Return the topics of fixed, or with the name tf of moving transforms.

    Robots in namespaces have tf of their own, with the same names of frames: only those count
    whose namespace has a sensor's topic, unless none has.
    """
    found = sorted(
        topic
        for topic, about in topics.items()
        if about.message_type in TRANSFORMS and about.count and topic.rpartition("/")[2] == name
    )
    own = [
        topic
        for topic in found
        if any(sensor.startswith(topic.removesuffix(name)) for sensor in sensors)
    ]
    return own or found


class DriverPredictions(NamedTuple):
    """Topics of recorded depth, as this package's nodes or a camera's driver name them.

    What is not known, or not published, is empty: maker, confidence topic, confidence type.
    """

    camera: str
    topics: PredictionTopics
    confidence_type: str

    def options(self) -> str:
        """Return the options that score this depth."""
        words = f"--depth-topic {self.topics.depth_topic}"
        if not self.topics.confidence_topic:
            return words
        words += f" --confidence-topic {self.topics.confidence_topic}"
        return f"{words} --confidence-type {self.confidence_type or 'TYPE'}"


def driver_predictions(topics: Collection[str]) -> Iterator[DriverPredictions]:
    """Yield recorded depth whose names are known, see `DRIVERS`, in their order."""
    for camera, depth, confidence, confidence_type in DRIVERS:
        for name in sorted(topics):
            namespace, found, rest = name.rpartition(f"/{depth}")
            beside = confidence and f"{namespace}/{confidence}"
            if found and not rest and (not beside or beside in topics):
                yield DriverPredictions(camera, PredictionTopics(name, beside), confidence_type)


def recorded_predictions(
    topics: Mapping[str, Topic], first: FirstMessage
) -> DriverPredictions | None:
    """Return depth whose names are known, or else what looks like a camera's; None for none.

    Depth and confidence are images of one channel; their names tell one from the other. A depth
    image alone is a camera's only beside a LiDAR, and else the ground truth.
    """
    known = next(driver_predictions(topics), None)
    if known is not None:
        return known
    images = _raw_first([name for name, it in topics.items() if it.message_type in IMAGE])
    own = [name for name in images if not is_published(name, topics)]
    confidences = [name for name in own if NAMED_CONFIDENCE.search(name)]
    depths = [name for name in {*own} - {*confidences} if _has_depth_encoding(first(name))]
    depths.sort(key=lambda name: (not NAMED_DEPTH.search(name), name))
    has_lidar = any(it.message_type in CLOUD for it in topics.values())
    if not depths or not (confidences or has_lidar):
        return None
    beside = confidences[0] if confidences else ""
    return DriverPredictions("", PredictionTopics(depths[0], beside), "")


def is_published(name: str, topics: Collection[str]) -> bool:
    """Return whether the depth node or the evaluator made an image: sigma lies beside it.

    `ns/depth/image_rect` alone may be a camera's; with `ns/uncertainty/image_rect` it is this
    package's.
    """
    for part in OUTPUTS:
        namespace, found, _ = name.rpartition(part)
        if found and any(topic.startswith(namespace + SIGMA) for topic in topics):
            return True
    return False


def camera_info_beside(image: str) -> str:
    """Return an image's camera info topic: in its namespace, by convention."""
    namespace, slash, _ = without_transport(image).rpartition("/")
    return f"{namespace}{slash}camera_info"


def without_transport(name: str) -> str:
    """Return the topic that image_transport derives `name` from: without /compressed."""
    for suffix in TRANSPORTS:
        name = name.removesuffix(suffix)
    return name


def _has_depth_encoding(message: Any) -> bool:
    with suppress(MessageError):
        return message is not None and is_depth_encoding(encoding_of(message))
    return False


def _raw_first(names: list[str]) -> list[str]:
    """Return one transport per image: raw if it was recorded."""
    by_image: dict[str, str] = {}
    for suffix in ("", *TRANSPORTS):
        for name in names:
            image = without_transport(name)
            if name == image + suffix:
                by_image.setdefault(image, name)
    return sorted(by_image.values())


def _hint(topics: Mapping[str, Topic]) -> str:
    """Return what to do with messages in transports that are not read."""
    packed = [name for name, topic in topics.items() if topic.message_type in PACKED]
    if not packed:
        return ""
    return (
        f"; {', '.join(sorted(packed))} can be read once they are raw, or images JPEG or PNG: "
        "`republish` of image_transport and point_cloud_transport makes them so"
    )


def _listed(topics: Mapping[str, Topic]) -> str:
    return (
        ", ".join(
            f"{name} ({topic.message_type}, {topic.count})"
            for name, topic in sorted(topics.items())
        )
        or "no topics"
    )
