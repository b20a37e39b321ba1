"""A recording of messages, whatever kind of bag holds it: rosbag2 (sqlite3, MCAP), a bare storage file, or a ROS 1 bag."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from rosbags import rosbag1, rosbag2
from rosbags.interfaces import ConnectionExtRosbag1, QosDurability
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from uncertainty_depth.data.mcap_stream import (
    StreamedMcap,
    begins_as_mcap,
    is_truncated,
    read_summary,
)
from uncertainty_depth.errors import SourceError

SUFFIXES = (".mcap", ".db3", ".bag")


class Topic(NamedTuple):
    """What a recording has under one topic name: message type, as `package/msg/Name`, messages, and whether late subscribers got the last one."""

    kind: str
    count: int
    latched: bool = False


class Record(NamedTuple):
    """A message as its bytes lie in the bag: CDR, or ROS 1's own format where `is_ros1`."""

    topic: str
    kind: str
    log_ns: int
    data: bytes
    is_ros1: bool


class Recording:
    """A bag on disk, whatever kind. The message types read here have been the same in every ROS 2 distribution: definitions are not needed.

    Attributes:
        path: the folder or file.
        notes: sentences about what could not be read.
    """

    def __init__(self, path: Path) -> None:
        """Raises `SourceError` where `path` does not exist or is no bag."""
        if not path.exists():
            raise SourceError(f"no such bag: {path}")
        self.path = path
        self.notes: list[str] = []
        self._make_readers = _reader_makers(path)

    @contextmanager
    def open(self) -> Iterator[OpenRecording]:
        """Open the files, each time anew. Raises `SourceError` where that fails."""
        with ExitStack() as stack:
            try:
                readers = [stack.enter_context(make()) for make in self._make_readers]
            except Exception as error:  # rosbags lets those of sqlite3, YAML, struct ... through
                raise SourceError(f"{self.path} cannot be read as a bag: {error}") from error
            for reader in readers:
                self._note_losses(reader)
            yield OpenRecording(readers, self)

    def note(self, sentence: str) -> None:
        """Keep a sentence about a loss, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _note_losses(self, reader: Any) -> None:
        if not isinstance(reader, StreamedMcap):
            return
        count = sum(connection.msgcount for connection in reader.connections)
        if is_truncated(reader.path):
            size = reader.path.stat().st_size
            self.note(
                f"{reader.path.name} is truncated: {count} messages were recovered from its {size} bytes, the rest is lost"
            )
        if reader.damaged_chunks:
            self.note(
                f"{reader.path.name} has {reader.damaged_chunks} damaged chunks: their messages are lost"
            )


class OpenRecording:
    """The messages of a recording whose files are open, in the order they were recorded.

    Attributes:
        topics: name to `Topic`.
    """

    def __init__(self, readers: Sequence[Any], recording: Recording) -> None:
        self._readers = readers
        self._recording = recording
        self.topics: dict[str, Topic] = {}
        for connection in (connection for reader in readers for connection in reader.connections):
            earlier = self.topics.get(connection.topic, Topic(connection.msgtype, 0))
            latched = earlier.latched or _is_latched(connection)
            self.topics[connection.topic] = Topic(
                connection.msgtype, earlier.count + connection.msgcount, latched
            )

    def messages(self, topics: Collection[str]) -> Iterator[tuple[str, Any | None]]:
        """Topic and message, for each message on `topics`; None in place of a message that cannot be deserialised."""
        for record in self.records(topics):
            yield record.topic, _deserialized(record.data, record.kind, record.is_ros1)

    def records(self, topics: Collection[str]) -> Iterator[Record]:
        """Each message on `topics` as it lies in the bag."""
        for reader in self._readers:
            yield from self._records_of(reader, topics)

    def first(self, topic: str) -> Any | None:
        """The first message on `topic` that can be read, None where there is none."""
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
            except StopIteration:
                return
            except (
                Exception
            ) as error:  # a damaged file: what was read so far counts, the loss is said
                self._recording.note(f"reading {self._recording.path} stopped early: {error}")
                return
            yield Record(connection.topic, connection.msgtype, log_ns, data, is_ros1)


def _is_latched(connection: Any) -> bool:
    if isinstance(connection.ext, ConnectionExtRosbag1):
        return bool(connection.ext.latching)
    return any(
        qos.durability is QosDurability.TRANSIENT_LOCAL
        for qos in connection.ext.offered_qos_profiles
    )


def _deserialized(data: bytes, kind: str, is_ros1: bool) -> Any | None:
    store = _typestore(is_ros1)
    try:
        return (store.deserialize_ros1 if is_ros1 else store.deserialize_cdr)(data, kind)
    except Exception:  # the generated code raises whatever the damaged bytes lead it to
        return None


@cache
def _typestore(is_ros1: bool) -> Any:
    if not is_ros1:
        return get_typestore(Stores.LATEST)
    store = get_typestore(Stores.ROS1_NOETIC)  # which lacks this one
    store.register(
        get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage")
    )
    return store


def _reader_makers(path: Path) -> list[Callable[[], Any]]:
    """One reader for a whole rosbag2, or one per file where its metadata is missing or a file is cut."""
    if not path.is_dir():
        return [_file_reader_maker(path)]
    files = sorted(
        (item for item in path.iterdir() if item.suffix in SUFFIXES), key=_natural_order
    )
    if (path / "metadata.yaml").exists() and not any(_needs_stream(file) for file in files):
        return [partial(rosbag2.Reader, path)]
    if not files:
        raise SourceError(
            f"{path} is no bag: it has no metadata.yaml and no file that ends in {', '.join(SUFFIXES)}"
        )
    return [_file_reader_maker(file) for file in files]


def _file_reader_maker(path: Path) -> Callable[[], Any]:
    if path.suffix not in SUFFIXES:
        raise SourceError(
            f"{path} is no bag: expected a rosbag2 folder, or a file that ends in {', '.join(SUFFIXES)}"
        )
    if _needs_stream(path):
        streamed = StreamedMcap(path)  # what it learnt of the file is kept
        return lambda: streamed
    return partial(rosbag1.Reader if path.suffix == ".bag" else rosbag2.Reader, path)


def _needs_stream(path: Path) -> bool:
    """Whether an MCAP has no chunk index: it was cut, or written for speed. rosbags reads such a file only where its times ascend."""
    if path.suffix != ".mcap" or not begins_as_mcap(path):
        return False
    summary = read_summary(path)
    return summary is None or not summary.chunk_indexes


def _natural_order(path: Path) -> list[int | str]:
    """bag_10.mcap after bag_9.mcap."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
