"""Reading an MCAP file from its beginning as far as it goes: for files that were cut, or that have no index."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from mcap.exceptions import McapError
from mcap.reader import Summary, make_reader
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags.interfaces import ConnectionExtRosbag2
from rosbags.rosbag2.metadata import parse_qos

MAGIC = b"\x89MCAP0\r\n"


class StreamedConnection(NamedTuple):
    """A topic of the file: the part of rosbags' connections that is used here."""

    id: int
    topic: str
    msgtype: str
    msgcount: int
    ext: ConnectionExtRosbag2


def begins_as_mcap(path: Path) -> bool:
    """Whether the file starts with MCAP's magic, or with as much of it as there is."""
    with path.open("rb") as file:
        return MAGIC.startswith(file.read(len(MAGIC)))


def is_truncated(path: Path) -> bool:
    """Whether an MCAP file begins as one but does not end as one."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - len(MAGIC)))
        return begins_as_mcap(path) and (size < 2 * len(MAGIC) or file.read() != MAGIC)


def read_summary(path: Path) -> Summary | None:
    """The index at the end of an MCAP file; None where there is none that can be read."""
    with path.open("rb") as file:
        try:
            return make_reader(file).get_summary()
        except (McapError, struct.error, ValueError, OSError):
            return None


class StreamedMcap:
    """The same methods as a rosbags reader, in the order of the file. A file without a summary is read once more to learn what is in it.

    Attributes:
        connections: the topics, with the messages that can be read.
        damaged_chunks: chunks whose content does not decompress or has another checksum; they are left out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: list[StreamedConnection] = []
        self.damaged_chunks = 0

    def __enter__(self) -> StreamedMcap:
        if not self.connections:
            summary = read_summary(self.path)
            if summary is not None and summary.statistics is not None:
                names = {key: schema.name for key, schema in summary.schemas.items()}
                self._connect(names, summary.channels, summary.statistics.channel_message_counts)
            else:
                self._scan()
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is held open between iterations."""

    def messages(
        self, connections: Collection[StreamedConnection]
    ) -> Iterator[tuple[StreamedConnection, int, bytes]]:
        """Connection, log time in nanoseconds and bytes of each message on `connections` that is there in full."""
        wanted = {connection.id: connection for connection in connections}
        for record in self._records():
            if isinstance(record, Message) and record.channel_id in wanted:
                yield wanted[record.channel_id], record.log_time, record.data

    def _scan(self) -> None:
        schemas: dict[int, str] = {}
        channels: dict[int, Channel] = {}
        counts: dict[int, int] = {}
        for record in self._records():
            if isinstance(record, Schema):
                schemas[record.id] = record.name
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message):
                counts[record.channel_id] = counts.get(record.channel_id, 0) + 1
        self._connect(schemas, channels, counts)

    def _connect(
        self, schemas: dict[int, str], channels: dict[int, Channel], counts: dict[int, int]
    ) -> None:
        for key, channel in channels.items():
            qos = parse_qos(channel.metadata.get("offered_qos_profiles", ""))
            extension = ConnectionExtRosbag2(channel.message_encoding, qos)
            kind = schemas.get(channel.schema_id, "")
            self.connections.append(
                StreamedConnection(key, channel.topic, kind, counts.get(key, 0), extension)
            )

    def _records(self) -> Iterator[McapRecord]:
        self.damaged_chunks = 0
        with self.path.open("rb") as file:
            records = StreamReader(
                file, emit_chunks=True, record_size_limit=self.path.stat().st_size
            ).records
            while True:
                try:
                    record = next(records)
                except (StopIteration, McapError, struct.error, ValueError):
                    return  # the end, in the middle of a record or not
                yield from self._contents(record) if isinstance(record, Chunk) else (record,)

    def _contents(self, chunk: Chunk) -> list[McapRecord]:
        try:
            return breakup_chunk(chunk, validate_crc=True)
        except Exception:  # each compression library has its own exceptions
            self.damaged_chunks += 1
            return []
