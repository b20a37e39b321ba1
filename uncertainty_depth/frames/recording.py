# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages of a bag of any format: rosbag2 (sqlite3, MCAP), a bare storage file, or ROS 1."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from rosbags import rosbag1, rosbag2
from rosbags.interfaces import ConnectionExtRosbag1, QosDurability
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from uncertainty_depth import strict_yaml
from uncertainty_depth.errors import SourceError
from uncertainty_depth.frames.mcap_file import McapFile

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
    """Return the files that the metadata lists, where each can be read by itself; else none.

    rosbags reads the others through the metadata: bags of compressed files or messages, and of
    versions and storages that it refuses with a sentence.
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
        file = McapFile(path)  # what it learnt of the file is kept

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
    """A message as its bytes lie in the bag: CDR, or ROS 1's own format where `is_ros1`."""

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
        """Raises `SourceError` where `path` does not exist or is not a bag."""
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
        """Open the files; raises `SourceError` where that fails."""
        with ExitStack() as stack:
            try:
                readers = [stack.enter_context(make()) for make in self._make_readers]
            except Exception as error:  # rosbags lets those of sqlite3, YAML, struct ... through
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
        sentences = _losses(reader)
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
        """Yield topic and message of each message on `topics`; None where deserialising fails."""
        for record in self.records(topics):
            yield record.topic, _deserialized(record.data, record.message_type, record.is_ros1)

    def records(self, topics: Collection[str]) -> Iterator[Record]:
        """Yield each message on `topics` as its bytes; several files are merged by log time."""
        streams = [self._records_of(reader, topics) for reader in self._readers]
        yield from heapq.merge(*streams, key=lambda record: record.log_ns)

    def first(self, topic: str) -> Any | None:
        """Return the first message on `topic` that can be read; None where there is none."""
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
    """Return what to do about a file that looks truncated: of SQLite, or of ROS 1."""
    if "malformed" in problem:
        return "; was it cut off?"
    return "; was it cut off? `rosbag reindex` may repair it" if "Bag index" in problem else ""


def _losses(file: McapFile) -> list[str]:
    """Return a sentence for each way in which an MCAP file is damaged."""
    name = file.path.name
    messages = sum(connection.msgcount for connection in file.connections)
    chunks = len(file.damaged_chunks)
    sentences = {
        f"{name} is truncated: {messages} messages were recovered from its "
        f"{file.path.stat().st_size} bytes, the rest is lost": file.is_truncated,
        f"{name} has a damaged index (its checksum is wrong): it is read from the beginning": (
            file.has_damaged_index
        ),
        f"{name} has {chunks} damaged {'chunk' if chunks == 1 else 'chunks'} (their checksums are "
        "wrong, or they do not decompress): their messages are lost": chunks,
        f"{name} is damaged: the checksum of its data is wrong, so any of its messages may be "
        "wrong": file.has_damaged_data,
    }
    return [sentence for sentence, holds in sentences.items() if holds]
