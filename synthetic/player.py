# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`python -m synthetic.player BAG`: publishes a bag into ROS 2 without `ros2 bag play`."""

from __future__ import annotations

import argparse
import faulthandler
import logging
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rosbags.convert.converter import migrate_bytes
from rosbags.typesys import Stores, get_typestore
from tqdm import tqdm

from synthetic.player_config import PlayerConfig
from uncertainty_depth.cli.main import exit_code_of
from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.options import add_arguments, from_arguments
from uncertainty_depth.core.output import MARK, OutputFile
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.frames.recording import OpenRecording, Record, Recording
from uncertainty_depth.ros.main import require_ros

if TYPE_CHECKING:
    from synthetic.bag_publisher import BagPublisher, Played

TEARDOWN_S = 10.0
logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Play a bag; user errors become one sentence and exit code 1."""
    parser = argparse.ArgumentParser("python -m synthetic.player", description="Play a bag.")
    parser.add_argument("bag", type=Path, help="bag to publish, a ROS 1 bag too")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the number of messages sent and skipped, by topic",
    )
    add_arguments(parser, PlayerConfig, expert_help=True)
    arguments = parser.parse_args(argv)
    config = from_arguments(PlayerConfig, arguments)
    return exit_code_of("player", lambda: _play_and_tell(arguments.bag, config, arguments.json))


def _play_and_tell(bag: Path, config: PlayerConfig, json: Path | None) -> None:
    account_file = OutputFile(json) if json else None
    if account_file:
        account_file.check([bag])

    def tell(played: Played) -> None:
        sent = ", ".join(f"{count} {topic}" for topic, count in sorted(played.sent.items()))
        print(f"sent {sent or 'nothing'}", flush=True)
        for topic, count in sorted(played.unsendable.items()):
            logger.warning("%d messages on %s cannot be published", count, topic)
        if account_file:
            account = {
                "origin": MARK,
                "sent": dict(played.sent),
                "skipped": played.skipped,
                "unsendable": dict(played.unsendable),
                "unanswered": played.unanswered,
            }
            account_file.write(strict.json_bytes(account))
        # The middleware can hang while it is left, and then holds the interpreter's lock.
        faulthandler.dump_traceback_later(TEARDOWN_S, exit=True)

    try:
        play(bag, config, at_end=tell)
    finally:
        faulthandler.cancel_dump_traceback_later()


def play(
    bag: Path,
    config: PlayerConfig | None = None,
    progress: bool = True,
    at_end: Callable[[Played], None] | None = None,
) -> Played:
    """Publish a bag in the order and at the pace it was recorded, as the bytes lie in it.

    ROS 1 messages are converted on the way. `at_end` is called with the counts, interrupted or
    not, before ROS shuts down, because that can hang.

    Raises:
        RosMissingError: without ROS 2.
        SourceError: when the bag cannot be read, or holds no topic that can be published.
    """
    require_ros()
    from synthetic.bag_publisher import BagPublisher

    config = config or PlayerConfig()
    recording = Recording(bag)
    with (
        recording.open() as messages,
        deferred_interrupt() as interrupt,
        BagPublisher(messages.topics, config, interrupt) as publisher,
    ):
        for topic, reason in publisher.played.skipped.items():
            logger.warning("%s is not played: %s", topic, reason)
        if not publisher.topics:
            raise SourceError(
                f"{bag} holds no topic whose message type is installed here; it has "
                f"{', '.join(messages.topics) or 'none at all'}"
            )
        publisher.wait_for_subscribers()
        try:
            _play_once(messages, publisher, bag.name, progress)
            while config.loop:
                _play_once(messages, publisher, bag.name, progress)
        finally:
            for note in recording.notes:
                logger.warning("%s", note)
            if at_end is not None:
                at_end(publisher.played)
        return publisher.played


def _play_once(
    messages: OpenRecording, publisher: BagPublisher, name: str, progress: bool
) -> None:
    total = sum(topic.count for topic in publisher.topics.values())
    convert = cdr_converter()
    for record in tqdm(
        messages.records(publisher.topics),
        total=total,
        unit="message",
        desc=name,
        disable=not progress,
    ):
        try:
            data = convert(record)
        except Exception:  # rosbags' converter raises whatever a damaged message leads to
            publisher.played.unsendable[record.topic] += 1
            continue
        publisher.send(record.topic, record.log_ns, data)
    publisher.finish_round()


def cdr_converter() -> Callable[[Record], bytes]:
    """Return a function that converts records to CDR.

    ROS 1 messages become ROS 2 messages of the same name, whose headers have no `seq`.
    """
    plans: dict[str, object] = {}

    def convert(record: Record) -> bytes:
        if not record.is_ros1:
            return bytes(record.data)
        ros1, ros2 = _stores()
        return bytes(
            migrate_bytes(
                ros1,
                ros2,
                record.message_type,
                record.message_type,
                plans,
                record.data,
                src_is2=False,
                dst_is2=True,
            )
        )

    return convert


@cache
def _stores() -> tuple[Any, Any]:
    return get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)


if __name__ == "__main__":
    sys.exit(main())
