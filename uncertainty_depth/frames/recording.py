# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages of a bag of any format: rosbag2 (sqlite3, MCAP), a bare storage file, or ROS 1."""

from __future__ import annotations

import heapq
import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.reader import Summary, make_reader
from mcap.records import Channel, Chunk, ChunkIndex, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags import rosbag1, rosbag2
from rosbags.interfaces import ConnectionExtRosbag1, ConnectionExtRosbag2, QosDurability
from rosbags.rosbag2.metadata import parse_qos
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from uncertainty_depth import strict_yaml
from uncertainty_depth.errors import SourceError

MAGIC = b"\x89MCAP0\r\n"
RECORD_HEADER_BYTES = 9
"""Opcode and length, before the content of a record."""
FOOTER = struct.Struct("<BQQQI8s")
"""Opcode, length, start of the index, of its offsets, checksum of the index, magic."""
CHECKSUM_BYTES = 4
MAX_INDEX_BYTES = 2**28


class McapConnection(NamedTuple):
    """A topic of the file: the part of rosbags' connections that is used here."""

    id: int
    topic: str
    msgtype: str
    msgcount: int
    ext: ConnectionExtRosbag2


class McapFile:
    """An MCAP file with the methods of a rosbags reader: by its index, else from its beginning.

    What is damaged is left out, and the rest is read: of a chunk whose checksum is wrong the
    messages, of a file that was cut all after the cut. A file without a sound index is read once
    more, to learn its topics. https://mcap.dev/spec

    Attributes:
        connections: the topics, with the messages that the index counts, or that can be read.
        is_sound: whether the file ends as an MCAP, and its index has the checksum beside it.
        damaged_chunks: offsets of the chunks that were met and do not decompress or have another
            checksum; their count if the file has no index.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: list[McapConnection] = []
        self.is_sound = True
        self.damaged_chunks: set[int] = set()
        self._chunk_indexes: list[ChunkIndex] = []

    def __enter__(self) -> McapFile:
        """Raises `McapError` unless the file is an MCAP."""
        if not self.connections:
            self._learn()
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: no file is open between iterations."""

    def messages(
        self, connections: Collection[McapConnection]
    ) -> Iterator[tuple[McapConnection, int, bytes]]:
        """Yield connection, log time (ns) and bytes of each complete message on `connections`."""
        by_channel = {connection.id: connection for connection in connections}
        messages = self._indexed(by_channel) if self._chunk_indexes else self._streamed(by_channel)
        for message in messages:
            yield by_channel[message.channel_id], message.log_time, message.data

    def losses(self) -> list[str]:
        """Return a sentence for each way in which the file is damaged."""
        sentences = []
        if not self.is_sound:
            messages = sum(connection.msgcount for connection in self.connections)
            sentences.append(
                f"{self.path.name} is cut off or has a damaged index: {messages} messages were "
                f"read from its {self.path.stat().st_size} bytes, and the rest is lost"
            )
        if self.damaged_chunks:
            sentences.append(
                f"the messages in {len(self.damaged_chunks)} damaged chunks of {self.path.name} "
                "are lost"
            )
        hint = f"; `mcap recover {self.path.name} -o repaired.mcap` writes what is left"
        return [sentence + hint for sentence in sentences]

    def _learn(self) -> None:
        with self.path.open("rb") as file:
            if not MAGIC.startswith(file.read(len(MAGIC))):
                raise McapError("File magic is invalid")
            self.is_sound = has_sound_index(file)
        summary = read_summary(self.path) if self.is_sound else None
        schemas: dict[int, str] = {}
        channels: dict[int, Channel] = {}
        counts: dict[int, int] = {}
        if summary is not None and summary.statistics is not None:
            self._chunk_indexes = sorted(
                summary.chunk_indexes, key=lambda index: index.message_start_time
            )
            schemas = {key: schema.name for key, schema in summary.schemas.items()}
            channels = summary.channels
            counts = summary.statistics.channel_message_counts
        else:
            for record in self._records():
                if isinstance(record, Schema):
                    schemas[record.id] = record.name
                elif isinstance(record, Channel):
                    channels[record.id] = record
                elif isinstance(record, Message):
                    counts[record.channel_id] = counts.get(record.channel_id, 0) + 1
        max_count = self.path.stat().st_size  # whatever the index claims
        for key, channel in channels.items():
            qos = parse_qos(channel.metadata.get("offered_qos_profiles", ""))
            extension = ConnectionExtRosbag2(channel.message_encoding, qos)
            name = schemas.get(channel.schema_id, "")
            messages = min(counts.get(key, 0), max_count)
            self.connections.append(McapConnection(key, channel.topic, name, messages, extension))

    def _indexed(self, channels: Collection[int]) -> Iterator[Message]:
        """Yield messages by log time; holds one chunk, more if their times overlap."""
        waiting: list[tuple[int, int, Message]] = []
        order = count()
        with self.path.open("rb") as file:
            for index in self._chunk_indexes:
                if (
                    index.message_index_offsets
                    and not channels & index.message_index_offsets.keys()
                ):
                    continue
                while waiting and waiting[0][0] < index.message_start_time:
                    yield heapq.heappop(waiting)[-1]
                for record in self._contents(file, index):
                    if isinstance(record, Message) and record.channel_id in channels:
                        heapq.heappush(waiting, (record.log_time, next(order), record))
        while waiting:
            yield heapq.heappop(waiting)[-1]

    def _contents(self, file: BinaryIO, index: ChunkIndex) -> list[McapRecord]:
        try:
            file.seek(index.chunk_start_offset + RECORD_HEADER_BYTES)
            return breakup_chunk(Chunk.read(ReadDataStream(file)), validate_crc=True)
        except Exception:  # mcap's, struct's, and each compression library's own
            self.damaged_chunks.add(index.chunk_start_offset)
            return []

    def _streamed(self, channels: Collection[int]) -> Iterator[Message]:
        """Yield messages in the order of the file."""
        for record in self._records():
            if isinstance(record, Message) and record.channel_id in channels:
                yield record

    def _records(self) -> Iterator[McapRecord]:
        limit = self.path.stat().st_size
        with self.path.open("rb") as file:
            reader = StreamReader(file, emit_chunks=True, record_size_limit=limit)
            records = reader.records
            for number in count():
                try:
                    record = next(records)
                except (StopIteration, McapError, struct.error, ValueError, OverflowError):
                    return  # the end, in the middle of a record or not
                if not isinstance(record, Chunk):
                    yield record
                    continue
                try:
                    contents = breakup_chunk(record, validate_crc=True)
                except Exception:  # as above
                    self.damaged_chunks.add(number)
                    continue
                yield from contents


def read_summary(path: Path) -> Summary | None:
    """Return the index at the end of an MCAP file; None if none can be read."""
    with path.open("rb") as file:
        try:
            return make_reader(file).get_summary()
        except (McapError, struct.error, ValueError, OSError, OverflowError, MemoryError):
            return None


def has_sound_index(file: BinaryIO) -> bool:
    """Return whether an MCAP file ends as one, and its index has the checksum in the footer.

    mcap's own reader does not check it; a flipped bit would rename a topic.
    """
    size = file.seek(0, os.SEEK_END)
    if size < FOOTER.size:
        return False
    file.seek(size - FOOTER.size)
    _, _, start, _, checksum, magic = FOOTER.unpack(file.read())
    if magic != MAGIC or checksum == 0 or start == 0:
        return bool(magic == MAGIC)
    if not size - MAX_INDEX_BYTES <= start < size - FOOTER.size:
        return False
    file.seek(start)
    index = file.read(size - start - len(MAGIC) - CHECKSUM_BYTES)
    return zlib.crc32(index) == checksum


SUFFIXES = (".mcap", ".db3", ".bag")
METADATA = "metadata.yaml"
MAX_METADATA_BYTES = 2**22


class StorageFiles:
    """The readers of a bag: one for each of its files, so that they can be merged by time.

    Attributes:
        makers: each opens a file anew.
        notes: sentences about files that are left out.
    """

    def __init__(self, path: Path) -> None:
        """Raises `SourceError` unless `path` is a bag."""
        self.notes: list[str] = []
        self.makers: list[Callable[[], Any]]
        if not path.is_dir():
            self.makers = [_maker(path)]
            return
        files = sorted((item for item in path.iterdir() if _is_storage(item)), key=_natural_order)
        if not (path / METADATA).exists():
            if not files:
                raise SourceError(
                    f"{path} is not a bag: it has no {METADATA} and no file that ends in "
                    f"{', '.join(SUFFIXES)}"
                )
            self.makers = [_maker(file) for file in files]
            return
        self._read_folder(path, files)

    def _read_folder(self, path: Path, files: list[Path]) -> None:
        listed = _listed_files(path / METADATA)
        if not listed:
            self.makers = [partial(rosbag2.Reader, path)]
            return
        self.makers = [_maker(path / name) for name in listed]
        if unlisted := [file.name for file in files if file.name not in listed]:
            self.notes.append(
                f"{', '.join(unlisted)}: not read, for {path / METADATA} does not list it"
            )


def _listed_files(metadata: Path) -> list[str]:
    """Return the files listed in the metadata if each can be read by itself, else none.

    rosbags reads other bags through the metadata: those with compressed files or messages, or with
    versions and storages that it rejects with a message.
    """
    try:
        content = strict_yaml.read_file(metadata, MAX_METADATA_BYTES)
        information = content["rosbag2_bagfile_information"]
        names = [PurePath(name).name for name in information["relative_file_paths"]]
        is_compressed = information.get("compression_mode", "").lower() in ("file", "message")
        is_supported = int(information["version"]) <= 9
    except strict_yaml.YamlError as error:
        raise SourceError(f"{metadata} cannot be read: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    if is_compressed or not is_supported:
        return []
    readable = all(_is_storage(metadata.parent / name) for name in names)
    return names if readable else []


def _is_storage(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file()


def _maker(path: Path) -> Callable[[], Any]:
    if path.suffix not in SUFFIXES:
        raise SourceError(
            f"{path} is not a bag: expected a rosbag2 folder, or a file that ends in "
            f"{', '.join(SUFFIXES)}"
        )
    if path.suffix == ".mcap":
        file = McapFile(path)  # the file's index is kept

        def reopened() -> McapFile:
            return file

        return reopened
    return partial(rosbag1.Reader if path.suffix == ".bag" else rosbag2.Reader, path)


def _natural_order(path: Path) -> list[int | str]:
    """Return a key that sorts bag_10.mcap after bag_9.mcap."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


class Topic(NamedTuple):
    """A topic of a recording.

    Attributes:
        message_type: e.g. `package/msg/Name`.
        count: number of messages.
        latched: whether late subscribers got the last message.
    """

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
    """A bag on disk, of any format.

    The message types read here are the same in every ROS 2 distribution: no definitions needed.

    Attributes:
        path: the folder or file.
        notes: sentences about what could not be read.
    """

    def __init__(self, path: Path) -> None:
        """Raises `SourceError` if `path` does not exist or is not a bag."""
        if not path.exists():
            raise SourceError(f"no such bag: {path}")
        self.path = path
        self.notes: list[str] = []
        self._losses: dict[Path, list[str]] = {}
        files = StorageFiles(path)
        self._make_readers = files.makers
        for sentence in files.notes:
            self.note(sentence)

    @contextmanager
    def open(self) -> Iterator[OpenRecording]:
        """Open the files; raises `SourceError` if that fails."""
        with ExitStack() as stack:
            try:
                readers = [stack.enter_context(make()) for make in self._make_readers]
            except Exception as error:  # rosbags passes on errors from sqlite3, YAML, struct ...
                sentence = f"{self.path} cannot be read as a bag: {error}{_hint(str(error))}"
                raise SourceError(sentence) from error
            for reader in readers:
                self.note_losses(reader)
            yield OpenRecording(readers, self)

    def note(self, sentence: str) -> None:
        """Add a note on lost data, unless it was added before."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def note_losses(self, reader: Any) -> None:
        """Replace the sentences about losses of an MCAP file by the latest ones."""
        if not isinstance(reader, McapFile):
            return
        sentences = reader.losses()
        for earlier in self._losses.get(reader.path, []):
            if earlier not in sentences:
                self.notes.remove(earlier)
        for sentence in sentences:
            self.note(sentence)
        self._losses[reader.path] = sentences


class OpenRecording:
    """The messages of a recording whose files are open, in the order they were recorded.

    Attributes:
        topics: name to `Topic`.
        is_damaged: whether messages were met that cannot be read from the storage.
    """

    def __init__(self, readers: Sequence[Any], recording: Recording) -> None:
        self._readers = readers
        self._recording = recording
        self.is_damaged = False
        self.topics: dict[str, Topic] = {}
        for connection in chain.from_iterable(reader.connections for reader in readers):
            earlier = self.topics.get(connection.topic, Topic(connection.msgtype, 0))
            latched = earlier.latched or _is_latched(connection)
            self.topics[connection.topic] = Topic(
                connection.msgtype, earlier.count + connection.msgcount, latched
            )

    def messages(self, topics: Collection[str]) -> Iterator[tuple[str, Any | None]]:
        """Yield topic and message for each message on `topics`; None if deserialising fails."""
        for record in self.records(topics):
            yield record.topic, _deserialized(record.data, record.message_type, record.is_ros1)

    def records(self, topics: Collection[str]) -> Iterator[Record]:
        """Yield each message on `topics` as bytes; several files are merged by log time."""
        streams = [self._records_of(reader, topics) for reader in self._readers]
        yield from heapq.merge(*streams, key=lambda record: record.log_ns)

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
            except StopIteration:
                break
            except Exception as error:  # damaged: what was read so far counts
                self._recording.note(f"reading {self._recording.path} stopped early: {error}")
                self.is_damaged = True
                break
            yield Record(connection.topic, connection.msgtype, log_ns, data, is_ros1)
        self._recording.note_losses(reader)
        self.is_damaged |= bool(getattr(reader, "damaged_chunks", ()))


def _is_latched(connection: Any) -> bool:
    if isinstance(connection.ext, ConnectionExtRosbag1):
        return bool(connection.ext.latching)
    return any(
        qos.durability is QosDurability.TRANSIENT_LOCAL
        for qos in connection.ext.offered_qos_profiles
    )


def _deserialized(data: bytes, message_type: str, is_ros1: bool) -> Any | None:
    store = _typestore(is_ros1)
    try:
        return (store.deserialize_ros1 if is_ros1 else store.deserialize_cdr)(data, message_type)
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


def _hint(problem: str) -> str:
    """Return what to do about a SQLite or ROS 1 file that looks truncated."""
    if "malformed" in problem:
        return "; was it cut off?"
    return "; was it cut off? `rosbag reindex` may repair it" if "Bag index" in problem else ""
