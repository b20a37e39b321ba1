"""Which topics of a recording are the camera, its camera info and the LiDAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.data.recording import Topic
from uncertainty_depth.errors import SourceError

IMAGE = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
CAMERA_INFO = ("sensor_msgs/msg/CameraInfo",)
CLOUD = ("sensor_msgs/msg/PointCloud2",)
TRANSFORMS = ("tf2_msgs/msg/TFMessage",)


class Topics(NamedTuple):
    """The names of the three topics that frames are made of."""

    image: str
    camera_info: str
    lidar: str


def choose_topics(bag: str, topics: Mapping[str, Topic], config: SourceConfig) -> Topics:
    """The topics that `config` names, else those that are alone in the bag.

    Raises:
        SourceError: where one is missing or ambiguous; it names the candidates, or what there is.
    """
    image = config.image_topic or _only(
        bag, _raw_first(_of(topics, IMAGE)), "camera image", "--image-topic", topics
    )
    _check(bag, topics, image, IMAGE, "image_topic")
    lidar = config.lidar_topic or _only(
        bag, _of(topics, CLOUD), "LiDAR point cloud", "--lidar-topic", topics
    )
    _check(bag, topics, lidar, CLOUD, "lidar_topic")
    info = config.camera_info_topic or _camera_info(bag, topics, image)
    _check(bag, topics, info, CAMERA_INFO, "camera_info_topic")
    return Topics(image, info, lidar)


def transform_topics(topics: Mapping[str, Topic]) -> list[str]:
    """The topics of fixed transforms, in whatever namespace."""
    return [name for name in _of(topics, TRANSFORMS) if name.rpartition("/")[2] == "tf_static"]


def _camera_info(bag: str, topics: Mapping[str, Topic], image: str) -> str:
    """The camera info in the image's namespace, which a transport's suffix (image/compressed) does not belong to."""
    candidates = _of(topics, CAMERA_INFO)
    namespace, slash, _ = image.removesuffix("/compressed").rpartition("/")
    sibling = f"{namespace}{slash}camera_info"
    return (
        sibling
        if sibling in candidates
        else _only(bag, candidates, "camera info", "--camera-info-topic", topics)
    )


def _of(topics: Mapping[str, Topic], kinds: tuple[str, ...]) -> list[str]:
    return sorted(name for name, topic in topics.items() if topic.kind in kinds and topic.count)


def _raw_first(names: list[str]) -> list[str]:
    """Without the compressed form of images that are there uncompressed too."""
    return [
        name
        for name in names
        if name.removesuffix("/compressed") == name
        or name.removesuffix("/compressed") not in names
    ]


def _only(
    bag: str, candidates: list[str], what: str, flag: str, topics: Mapping[str, Topic]
) -> str:
    if not candidates:
        raise SourceError(f"{bag} has no messages on any {what} topic; it has {_listed(topics)}")
    if len(candidates) > 1:
        raise SourceError(
            f"{bag} has {len(candidates)} {what} topics, {', '.join(candidates)}; choose one with {flag}"
        )
    return candidates[0]


def _check(
    bag: str, topics: Mapping[str, Topic], name: str, kinds: tuple[str, ...], option: str
) -> None:
    if name not in topics or not topics[name].count:
        raise SourceError(f"{bag} has no messages on {option} {name!r}; it has {_listed(topics)}")
    if topics[name].kind not in kinds:
        raise SourceError(
            f"{option} {name!r} in {bag} is {topics[name].kind}; expected {' or '.join(kinds)}"
        )


def _listed(topics: Mapping[str, Topic]) -> str:
    return (
        ", ".join(
            f"{name} ({topic.kind}, {topic.count})" for name, topic in sorted(topics.items())
        )
        or "no topics"
    )
