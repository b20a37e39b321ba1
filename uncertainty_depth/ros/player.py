"""`uncertainty-depth play`: publishes a bag into ROS 2 where there is no `ros2 bag play`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from uncertainty_depth.config import PlayerConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.ros.bag_messages import BagMessages
from uncertainty_depth.ros.requirements import require_ros

if TYPE_CHECKING:
    from uncertainty_depth.ros.bag_publisher import BagPublisher, Played

logger = logging.getLogger(__name__)


def play(bag: Path, config: PlayerConfig | None = None, progress: bool = True) -> Played:
    """Publish a bag in the order and at the pace it was recorded, as the bytes lie in it.

    Args:
        bag: a rosbag2, or a ROS 1 bag, whose messages are converted on the way.
        config: pace, clock, and what to wait for.
        progress: show a bar.

    Raises:
        RosMissingError: without ROS 2.
        SourceError: when the bag cannot be read, breaks off, or holds no topic that can be published.
    """
    require_ros()
    from uncertainty_depth.ros.bag_publisher import BagPublisher

    config = config or PlayerConfig()
    with BagMessages(bag) as messages, BagPublisher(messages.topics().values(), config) as publisher:
        for topic, reason in publisher.played.skipped.items():
            logger.warning("%s is not played: %s", topic, reason)
        if not publisher.topics:
            raise SourceError(f"{bag} holds no topic whose message type is installed here")
        publisher.wait_for_subscribers()
        _play_round(messages, publisher, bag.name, progress)
        while config.loop:
            _play_round(messages, publisher, bag.name, progress)
        logger.info("sent %s", ", ".join(f"{count} {topic}" for topic, count in sorted(publisher.played.sent.items())))
        return publisher.played


def _play_round(messages: BagMessages, publisher: BagPublisher, name: str, progress: bool) -> None:
    total = sum(topic.count for topic in publisher.topics)
    names = {topic.name for topic in publisher.topics}
    for topic, log_ns, data in tqdm(messages.messages(names), total=total, unit="message", desc=name, disable=not progress):
        publisher.send(topic, log_ns, data)
    publisher.finish_round()
