# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Reading an MCAP file: by its index where it has one, else from its beginning as far as it goes.

What is damaged is left out and counted, and the rest is read: of a chunk whose checksum is wrong
the messages, of a file that was cut all after the cut. https://mcap.dev/spec
"""

from __future__ import annotations

import heapq
import struct
import zlib
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.reader import Summary, make_reader
from mcap.records import Channel, Chunk, ChunkIndex, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags.interfaces import ConnectionExtRosbag2
from rosbags.rosbag2.metadata import parse_qos

MAGIC = b"\x89MCAP0\r\n"
_RECORD_HEADER = struct.Struct("<BQ")  # opcode, length
_FOOTER = struct.Struct("<BQQQI8s")  # ... summary start, summary offset start, summary CRC, magic
_DATA_END = struct.Struct("<BQI")  # ... data section CRC
_DATA_END_OPCODE = 0x0F
_BLOCK = 2**20


class McapConnection(NamedTuple):
    """A topic of the file: the part of rosbags' connections that is used here."""

    id: int
    topic: str
    msgtype: str
    msgcount: int
    ext: ConnectionExtRosbag2


class McapFile:
    """An MCAP file with the methods of a rosbags reader.

    A file without an index is read once more, to learn its topics.

    Attributes:
        connections: the topics, with the messages that the index counts, or that can be read.
        is_truncated: whether the file begins as an MCAP and does not end as one.
        has_damaged_index: whether the checksum of the index is wrong; it is not used then.
        has_damaged_data: whether the checksum of all data is wrong, where no chunk has its own.
        damaged_chunks: offsets of the chunks that were met and do not decompress or have another
            checksum; the count of chunks where the file has no index.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: list[McapConnection] = []
        self.is_truncated = False
        self.has_damaged_index = False
        self.has_damaged_data = False
        self.damaged_chunks: set[int] = set()
        self._chunk_indexes: list[ChunkIndex] = []
        self._has_unchecked_data = False

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
        if self._has_unchecked_data and not self.is_truncated:
            self.has_damaged_data = not data_checksum_holds(self.path)

    def _learn(self) -> None:
        if not begins_as_mcap(self.path):
            raise McapError("File magic is invalid")
        self.is_truncated = not ends_as_mcap(self.path)
        self.has_damaged_index = not self.is_truncated and not index_checksum_holds(self.path)
        summary = None if self.has_damaged_index else read_summary(self.path)
        if summary is None or summary.statistics is None:
            self._scan()
            return
        self._chunk_indexes = sorted(
            summary.chunk_indexes, key=lambda index: index.message_start_time
        )
        names = {key: schema.name for key, schema in summary.schemas.items()}
        self._connect(names, summary.channels, summary.statistics.channel_message_counts)

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
        max_count = self.path.stat().st_size  # whatever the index claims
        for key, channel in channels.items():
            qos = parse_qos(channel.metadata.get("offered_qos_profiles", ""))
            extension = ConnectionExtRosbag2(channel.message_encoding, qos)
            name = schemas.get(channel.schema_id, "")
            self.connections.append(
                McapConnection(
                    key, channel.topic, name, min(counts.get(key, 0), max_count), extension
                )
            )

    def _indexed(self, channels: Collection[int]) -> Iterator[Message]:
        """Yield messages by log time; holds one chunk, more where their times overlap."""
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
                for record in self._contents_at(file, index):
                    if isinstance(record, Message) and record.channel_id in channels:
                        heapq.heappush(waiting, (record.log_time, next(order), record))
        while waiting:
            yield heapq.heappop(waiting)[-1]

    def _contents_at(self, file: BinaryIO, index: ChunkIndex) -> list[McapRecord]:
        try:
            file.seek(index.chunk_start_offset + _RECORD_HEADER.size)
            chunk = Chunk.read(ReadDataStream(file))
        except (McapError, struct.error, ValueError, OSError, OverflowError, MemoryError):
            self.damaged_chunks.add(index.chunk_start_offset)
            return []
        return self._contents(chunk, index.chunk_start_offset)

    def _streamed(self, channels: Collection[int]) -> Iterator[Message]:
        """Yield messages in the order of the file."""
        for record in self._records():
            if isinstance(record, Message) and record.channel_id in channels:
                yield record

    def _records(self) -> Iterator[McapRecord]:
        with self.path.open("rb") as file:
            records = StreamReader(
                file, emit_chunks=True, record_size_limit=self.path.stat().st_size
            ).records
            for number in count():
                try:
                    record = next(records)
                except (StopIteration, McapError, struct.error, ValueError, OverflowError):
                    return  # the end, in the middle of a record or not
                if isinstance(record, Chunk):
                    yield from self._contents(record, number)
                else:
                    self._has_unchecked_data |= isinstance(record, Message)
                    yield record

    def _contents(self, chunk: Chunk, place: int) -> list[McapRecord]:
        self._has_unchecked_data |= chunk.uncompressed_crc == 0
        try:
            return breakup_chunk(chunk, validate_crc=True)
        except Exception:  # each compression library has its own exceptions
            self.damaged_chunks.add(place)
            return []


def begins_as_mcap(path: Path) -> bool:
    """Return whether the file starts with MCAP's magic, or with as much of it as there is."""
    with path.open("rb") as file:
        return MAGIC.startswith(file.read(len(MAGIC)))


def ends_as_mcap(path: Path) -> bool:
    """Return whether the file ends with MCAP's magic, and has another at its beginning."""
    size = path.stat().st_size
    return size >= 2 * len(MAGIC) and _tail(path, len(MAGIC)) == MAGIC


def read_summary(path: Path) -> Summary | None:
    """Return the index at the end of an MCAP file; None where none can be read."""
    with path.open("rb") as file:
        try:
            return make_reader(file).get_summary()
        except (McapError, struct.error, ValueError, OSError, OverflowError, MemoryError):
            return None


def index_checksum_holds(path: Path) -> bool:
    """Return whether the summary section has the checksum in its footer, or none."""
    footer = _footer(path)
    if footer is None:
        return True
    start, checksum = footer
    end = path.stat().st_size - len(MAGIC) - 4
    return checksum == 0 or start == 0 or _checksum(path, start, end) == checksum


def data_checksum_holds(path: Path) -> bool:
    """Return whether the data section has the checksum in the record behind it, or none."""
    footer = _footer(path)
    if footer is None:
        return True
    end = (footer[0] or path.stat().st_size - _FOOTER.size) - _DATA_END.size
    with path.open("rb") as file:
        file.seek(max(0, end))
        record = file.read(_DATA_END.size)
    if len(record) < _DATA_END.size:
        return True
    opcode, _, checksum = _DATA_END.unpack(record)
    return opcode != _DATA_END_OPCODE or checksum == 0 or _checksum(path, 0, end) == checksum


def _footer(path: Path) -> tuple[int, int] | None:
    """Return the start and the checksum of the summary section, each 0 where there is none."""
    tail = _tail(path, _FOOTER.size)
    if len(tail) < _FOOTER.size:
        return None
    _, _, start, _, checksum, _ = _FOOTER.unpack(tail)
    return start, checksum


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read()


def _checksum(path: Path, start: int, end: int) -> int:
    """Return the CRC-32 of the bytes from `start` to `end`."""
    checksum = 0
    with path.open("rb") as file:
        file.seek(min(start, end))
        while block := file.read(min(_BLOCK, max(0, end - file.tell()))):
            checksum = zlib.crc32(block, checksum)
    return checksum
