# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Bags whose compressed parts stand for far more than they hold: refused, before memory is taken.

Their sound counterparts are read in test_bag.py.
"""

import struct
import tracemalloc
from pathlib import Path

import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags import rosbag1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.frames.recording import Recording

BOMB_BYTES = 80_000_000
TYPE = "std_msgs/msg/UInt8MultiArray"


def write_mcap(
    path: Path, messages: list[tuple[int, int]], compression: CompressionType, chunk_bytes: int
) -> Path:
    """Messages of a time and a number of zeros; the chunks end after `chunk_bytes`."""
    with path.open("wb") as file:
        writer = McapWriter(file, chunk_size=chunk_bytes, compression=compression)
        writer.start("ros2", "test")
        schema = writer.register_schema(TYPE, "ros2msg", b"uint8[] data")
        channel = writer.register_channel("/zeros", "cdr", schema)
        for time_ns, size in messages:
            writer.add_message(channel, time_ns, bytes(size), time_ns)
        writer.finish()
    return path


def one_chunk(folder: Path) -> Path:
    return write_mcap(folder / "a.mcap", [(1, BOMB_BYTES)], CompressionType.ZSTD, 1)


def overlapping_chunks(folder: Path) -> Path:
    """Each of 160 small chunks lasts from the first time to the last."""
    messages = [(time_ns, BOMB_BYTES // 320) for _ in range(160) for time_ns in (1, 10**9)]
    return write_mcap(folder / "a.mcap", messages, CompressionType.ZSTD, BOMB_BYTES // 300)


def chunk_that_claims_less(folder: Path) -> Path:
    path = one_chunk(folder)
    with path.open("rb") as file:
        (index,) = make_reader(file).get_summary().chunk_indexes
    size = struct.pack("<Q", index.uncompressed_size)
    data = path.read_bytes()
    assert data.count(size) == 2  # the chunk's and its index's
    path.write_bytes(data.replace(size, struct.pack("<Q", 1000)))
    return path


def chunk_without_index(folder: Path) -> Path:
    path = one_chunk(folder)
    data = path.read_bytes()
    footer = struct.pack("<BQ", 2, 20)
    end = data.rindex(footer) + len(footer)
    path.write_bytes(data[:end] + bytes(20) + data[-8:])
    return path


def rosbag2_of_zeros(folder: Path, mode: CompressionMode) -> Path:
    writer = Writer(folder / "a", version=8, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        store = get_typestore(Stores.ROS2_JAZZY)
        connection = writer.add_connection("/zeros", TYPE, typestore=store)
        writer.write(connection, 1, bytes(BOMB_BYTES))
    return folder / "a"


def whole_file(folder: Path) -> Path:
    return rosbag2_of_zeros(folder, CompressionMode.FILE)


def one_message(folder: Path) -> Path:
    return rosbag2_of_zeros(folder, CompressionMode.MESSAGE)


def ros1_chunk(folder: Path) -> Path:
    store = get_typestore(Stores.ROS1_NOETIC)
    writer = rosbag1.Writer(folder / "a.bag")
    writer.set_compression(writer.CompressionFormat.BZ2)
    with writer:
        connection = writer.add_connection("/zeros", TYPE, typestore=store)
        writer.write(connection, 1, bytes(BOMB_BYTES))
    return folder / "a.bag"


BOMBS = [
    one_chunk,
    overlapping_chunks,
    chunk_that_claims_less,
    chunk_without_index,
    whole_file,
    one_message,
    ros1_chunk,
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_stands_for_far_more_than_it_holds_is_one_sentence(bomb, tmp_path):
    path = bomb(tmp_path)
    recording = Recording(path)
    said = ""
    tracemalloc.start()
    try:
        with recording.open() as bag:
            assert list(bag.topics) == ["/zeros"]
            assert list(bag.records(["/zeros"])) == []
            said = "; ".join(recording.notes)
    except SourceError as error:
        said = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert "stand for" in said or "inflate" in said
    assert "\n" not in said
    assert "recover" not in said  # there is nothing to repair
    assert peak < 72e6


@pytest.mark.parametrize("compression", list(CompressionType))
def test_a_sound_bag_of_one_colour_is_read_though_it_packs_ten_thousand_to_one(
    compression, tmp_path
):
    messages = [(time_ns, 1_000_000) for time_ns in range(100)]
    path = write_mcap(tmp_path / "a.mcap", messages, compression, 2_000_000)
    with Recording(path).open() as bag:
        sizes = [len(record.data) for record in bag.records(["/zeros"])]
    assert sizes == [1_000_000] * 100
