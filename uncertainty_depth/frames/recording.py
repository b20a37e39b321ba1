# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Read bags in any format by rosbags: rosbag2 folders, .mcap, .db3 and ROS 1 .bag files.

What rosbags cannot read is one sentence, with the tool that repairs the file.
"""

from __future__ import annotations

import heapq
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from rosbags import rosbag1
from rosbags.interfaces import ConnectionExtRosbag1, QosDurability
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.frames.limited_readers import METADATA, LimitedRosbag2, check_metadata

UNDAMAGED = re.compile(
    "version|File magic|empty|inflate|stand for|Serialization format|Storage plugin|ompression"
)
"""Matches errors about files that are sound, but cannot be read."""
SUFFIXES = (".mcap", ".db3", ".bag")
LOST_EVENT = "rosbag2_interfaces/msg/MessagesLostEvent"
"""What a recorder says of its losses, on `events/rosbag2_messages_lost`, since ROS 2 Lyrical."""
LOST_TYPES = {
    f"{LOST_EVENT}TopicStat": (
        "string topic_name\nuint64 messages_lost_in_transport\nuint64 messages_lost_in_recorder"
    ),
    LOST_EVENT: "string node_name\nMessagesLostEventTopicStat[] messages_lost_statistics",
}


class Topic(NamedTuple):
    """A topic in a recording; latched: late subscribers got the last message."""

    message_type: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    latched: bool = False


class Record(NamedTuple):
    """A message's raw bytes in the bag: CDR, or ROS 1's own format if `is_ros1`."""

    topic: str
    message_type: str
    log_ns: int
    data: bytes
    is_ros1: bool


class Recording:
    """A bag on disk, in any format.

    The message types read here are the same in every ROS 2 distribution: no definitions needed.
    """

    def __init__(self, path: Path) -> None:
        """Raises `SourceError` if `path` does not exist or is not a bag."""
        if not path.exists():
            raise SourceError(f"no such bag: {path}")
        self.path = path
        self.notes: list[str] = []
        self._files = _parts(path)

    @contextmanager
    def open(self) -> Iterator[OpenRecording]:
        """Open the files; raises `SourceError` if that fails."""
        with ExitStack() as stack:
            try:
                readers: list[Any] = []
                for file in self._files:
                    if not file.is_dir():
                        strict.check_file(file)
                    reader = rosbag1.Reader if file.suffix == ".bag" else LimitedRosbag2
                    readers.append(stack.enter_context(reader(file)))
                    _check_names(readers[-1].connections)
            except Exception as error:  # rosbags passes on errors from sqlite3, YAML, struct ...
                problem = f"{str(error).rstrip('.')}{_hint(self.path, error)}"
                sentence = f"{self.path} cannot be read as a bag: {problem}"
                raise SourceError(sentence) from error
            yield OpenRecording(readers, self)

    def note(self, sentence: str) -> None:
        """Add a note on lost data, unless it was added before."""
        if sentence not in self.notes:
            self.notes.append(sentence)


def _parts(path: Path) -> list[Path]:
    """Return what is opened: a file, a folder with metadata, or all files of one without."""
    if (path / METADATA).exists():
        check_metadata(path)
        return [path]
    if path.is_dir():
        files = [item for item in path.iterdir() if item.suffix in SUFFIXES and item.is_file()]
        if not files:
            raise SourceError(
                f"{path} is not a bag: it has no {METADATA} and no file that ends in "
                f"{', '.join(SUFFIXES)}"
            )
        return sorted(files, key=_natural_order)
    if path.suffix not in SUFFIXES:
        raise SourceError(
            f"{path} is not a bag: expected a rosbag2 folder, or a file that ends in "
            f"{', '.join(SUFFIXES)}"
        )
    return [path]


def _natural_order(path: Path) -> list[int | str]:
    """Return a key that sorts bag_10.mcap after bag_9.mcap."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


class OpenRecording:
    """A recording's messages while its files are open, in the order they were recorded."""

    def __init__(self, readers: Sequence[Any], recording: Recording) -> None:
        self._readers = readers
        self._recording = recording
        self.is_damaged = False
        self.topics: dict[str, Topic] = {}
        for connection in chain.from_iterable(reader.connections for reader in readers):
            earlier = self.topics.get(connection.topic, Topic(connection.msgtype, 0))
            latched = earlier.latched
            if isinstance(connection.ext, ConnectionExtRosbag1):
                latched |= bool(connection.ext.latching)
            else:
                durabilities = {qos.durability for qos in connection.ext.offered_qos_profiles}
                latched |= QosDurability.TRANSIENT_LOCAL in durabilities
            self.topics[connection.topic] = Topic(
                connection.msgtype, earlier.count + connection.msgcount, latched
            )

    def messages(self, topics: Collection[str]) -> Iterator[tuple[str, Any | None]]:
        """Yield topic and message for each message on `topics`; None if deserialising fails."""
        for record in self.records(topics):
            store = _typestore(record.is_ros1)
            deserialize = store.deserialize_ros1 if record.is_ros1 else store.deserialize_cdr
            try:
                message = deserialize(record.data, record.message_type)
            except Exception:  # the generated code raises whatever the damaged bytes lead it to
                message = None
            yield record.topic, message

    def records(self, topics: Collection[str]) -> Iterator[Record]:
        """Yield each message on `topics` as bytes; several files are merged by log time."""
        streams = [self._records_of(reader, topics) for reader in self._readers]
        yield from heapq.merge(*streams, key=attrgetter("log_ns"))

    def lost(self) -> dict[str, tuple[int, int]]:
        """Return what the recorder says that it lost on a topic: in transport, and by itself."""
        events = [name for name, topic in self.topics.items() if topic.message_type == LOST_EVENT]
        lost: dict[str, tuple[int, int]] = {}
        for _, event in self.messages(events):
            for stat in event.messages_lost_statistics if event is not None else ():
                transport, recorder = lost.get(stat.topic_name, (0, 0))
                transport += int(stat.messages_lost_in_transport)
                recorder += int(stat.messages_lost_in_recorder)
                lost[stat.topic_name] = transport, recorder
        return lost

    def first(self, topic: str) -> Any | None:
        """Return the first readable message on `topic`; None if there is none."""
        return next(
            (message for _, message in self.messages([topic]) if message is not None), None
        )

    def _records_of(self, reader: Any, topics: Collection[str]) -> Iterator[Record]:
        connections = [
            connection for connection in reader.connections if connection.topic in topics
        ]
        records = iter(reader.messages(connections) if connections else ())
        is_ros1 = isinstance(reader, rosbag1.Reader)
        while True:
            try:
                connection, log_ns, data = next(records)
                if not isinstance(log_ns, int):
                    raise SourceError(f"a message's time is {reprlib.repr(log_ns)}")
            except StopIteration:
                break
            except Exception as error:  # damaged: what was read so far counts
                path = self._recording.path
                self._recording.note(f"reading {path} stopped early: {error}{_hint(path, error)}")
                self.is_damaged = True
                break
            yield Record(connection.topic, connection.msgtype, log_ns, data, is_ros1)


@cache
def _typestore(is_ros1: bool) -> Any:
    if not is_ros1:
        store = get_typestore(Stores.LATEST)
        for name, definition in LOST_TYPES.items():
            if name not in store.types:
                store.register(get_types_from_msg(definition, name))
        return store
    store = get_typestore(Stores.ROS1_NOETIC)  # which lacks these
    for name in ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage"):
        store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", name))
    return store


def _check_names(connections: Iterable[Any]) -> None:
    """Raise `SourceError` for a name that is no text: SQLite takes values of any type."""
    for connection in connections:
        for name in (connection.topic, connection.msgtype):
            if not isinstance(name, str):
                raise SourceError(
                    f"a topic's name or type is {reprlib.repr(name)}; expected a text"
                )


def _hint(path: Path, error: Exception) -> str:
    """Return what may repair a file that looks damaged."""
    problem = str(error)
    if "malformed" in problem:
        return "; was it cut off?"
    if "Bag index" in problem:
        return "; was it cut off? `rosbag reindex` may repair it"
    if "Profile is not ros2" in problem:
        return (
            "; an MCAP of ROS 1 is not read: give the .bag that it was made from, or convert that "
            "by `rosbags-convert --src recording.bag --dst recording`"
        )
    files = [path] if path.is_file() else sorted(path.glob("*.mcap"))
    if files and files[0].suffix == ".mcap" and not UNDAMAGED.search(problem):
        return f"; `mcap recover {files[0].name} -o repaired.mcap` writes what is left"
    return ""
