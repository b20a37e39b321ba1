# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""rosbags' readers, within size limits, and with patience for what decides no score.

A kilobyte of zstd can stand for gigabytes, and rosbags inflates whatever it reads. It has tables
of decompressors, and a parser of QoS, which are replaced here.
"""

from __future__ import annotations

import sys
from bz2 import BZ2Decompressor
from collections.abc import Collection, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from rosbags import rosbag1, rosbag2
from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import storage_mcap, storage_sqlite3
from rosbags.rosbag2.metadata import parse_qos
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import DECOMPRESSORS, McapReader

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import SourceError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

METADATA = "metadata.yaml"
ABOUT = "rosbag2_bagfile_information"
MAX_METADATA_BYTES = 2**22
MAX_RATIO = 1000
"""Sensors' recordings reach 2 to 100, images in one colour 30,000."""
FREE_BYTES = 2**25
"""Up to here the ratio does not matter."""
MAX_BYTES = 2**30
"""Most that is held in memory at one time, whatever the ratio."""
COPIED_BYTES = 2**20
MAX_QOS_CHARACTERS = 2**16
_NO_TIME = {"sec": 0, "nsec": 0}
UNKNOWN_QOS: dict[str, Any] = {
    **dict.fromkeys(("history", "reliability", "durability", "liveliness"), "unknown"),
    **dict.fromkeys(("deadline", "lifespan", "liveliness_lease_duration"), _NO_TIME),
    "depth": 0,
    "avoid_ros_namespace_conventions": False,
}


def most_bytes(packed: int) -> int:
    """Return to how many bytes in memory this many may inflate."""
    return min(max(MAX_RATIO * packed, FREE_BYTES), MAX_BYTES)


def inflated(data: bytes, decompressor: Any, size: int | None = None) -> bytes:
    """Return what one compressed frame stands for.

    Raise `SourceError` beyond `size` or `most_bytes`.
    """
    limit = most_bytes(len(data))
    if size is not None and size > limit:
        raise SourceError(f"{len(data)} bytes stand for {size}; expected at most {limit}")
    limit = limit if size is None else size
    content: bytes = decompressor.decompress(data, max_length=limit + 1)
    if len(content) > limit:
        raise SourceError(f"{len(data)} bytes inflate to more than {limit}, the most allowed")
    if not decompressor.eof:
        raise SourceError(f"{len(data)} bytes inflate to {len(content)} and have no end")
    return content


# LZ4 is left as it is: it inflates to at most 255 times its size.
DECOMPRESSORS["zstd"] = lambda data, size: inflated(data, zstd.ZstdDecompressor(), size)
rosbag1.reader.decompressors["bz2"] = lambda data: inflated(data, BZ2Decompressor())


def parse_known_qos(dcts: Any) -> list[Qos]:
    """Return QoS profiles, a list or its YAML, of which any policy may be missing; else none.

    rosbags asks for all nine, and refuses bags of writers that name four. No score depends on one.
    """
    try:
        if isinstance(dcts, str):
            if len(dcts) > MAX_QOS_CHARACTERS:
                return []
            strict.check_yaml(dcts)
            dcts = yaml.safe_load(dcts)
        completed: Any = [{**UNKNOWN_QOS, **profile} for profile in dcts or []]
        return parse_qos(completed)
    except (strict.FormatError, yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError):
        return []


rosbag2.reader.parse_qos = parse_known_qos
storage_mcap.parse_qos = parse_known_qos
storage_sqlite3.parse_qos = parse_known_qos


class LimitedMcap(McapReader):
    """An MCAP, whose index tells before anything is inflated what its chunks take."""

    def open(self) -> None:
        """Open the file.

        Raise `SourceError` if chunks that rosbags holds at once exceed `most_bytes`.
        """
        with ExitStack() as stack:
            super().open()
            stack.callback(self.close)
            self._check_chunks()
            stack.pop_all()

    def _check_chunks(self) -> None:
        edges = []
        for chunk in self.chunks:
            edges.append((chunk.message_start_time, 1, chunk))
            edges.append((max(chunk.message_start_time, chunk.message_end_time), -1, chunk))
        size = packed = 0
        for _, sign, chunk in sorted(edges, key=lambda edge: (edge[0], -edge[1])):
            size += sign * chunk.uncompressed_size
            packed += sign * chunk.compressed_size
            if size > most_bytes(packed):
                raise SourceError(
                    f"chunks of {packed} bytes that overlap in time stand for {size}; expected at "
                    f"most {most_bytes(packed)}"
                )


class LimitedFolder(DirectoryReader):
    """A folder with metadata; its files or messages may be compressed by themselves."""

    STORAGE_PLUGINS: Mapping[str, Any] = {
        **DirectoryReader.STORAGE_PLUGINS,
        "mcap": LimitedMcap,
    }

    def open(self) -> None:
        """Open the folder, or an inflated copy.

        Raise `SourceError` beyond `MAX_RATIO` times its size.
        """
        with ExitStack() as stack:
            check_metadata(self.path)
            about = yaml.safe_load((self.path / METADATA).read_text())[ABOUT]
            for file in _files_of(self.path, about):
                strict.check_file(file)
            if about.get("compression_mode", "").lower() == "file":
                copy = Path(stack.enter_context(TemporaryDirectory()))
                _copy_inflated(self.path, about, copy)
                self.path = copy
            super().open()
            self._copy = stack.pop_all()
        self._are_messages_packed = self.metadata.compression_mode == "message"
        self.metadata = self.metadata._replace(compression_mode=None)

    def close(self) -> None:
        """Close the files, and remove the copy."""
        super().close()
        self._copy.close()

    def messages(
        self,
        connections: Collection[Connection],
        start: int | None = None,
        stop: int | None = None,
    ) -> Generator[tuple[Connection, int, bytes], None, None]:
        """Yield messages as `DirectoryReader` does."""
        for connection, time_ns, data in super().messages(connections, start, stop):
            if self._are_messages_packed:
                data = inflated(data, zstd.ZstdDecompressor())
            yield connection, time_ns, data


class LimitedRosbag2(rosbag2.Reader):
    """A folder with metadata, or a file from one."""

    STORAGE_PLUGINS: Mapping[str, Any] = {
        **rosbag2.Reader.STORAGE_PLUGINS,
        "dir": LimitedFolder,
        ".mcap": LimitedMcap,
    }


def check_metadata(folder: Any) -> None:
    """Raise `SourceError` unless metadata.yaml is within the limits, before rosbags parses it."""
    path = folder / METADATA
    try:
        strict.read_yaml_file(path, MAX_METADATA_BYTES)
    except strict.FormatError as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _files_of(folder: Any, about: dict[str, Any]) -> list[Any]:
    names = about.get("relative_file_paths", [])
    return [folder / PurePath(name).name for name in names]


def _copy_inflated(folder: Any, about: dict[str, Any], copy: Path) -> None:
    """Write a rosbag2 of the same messages whose files are not compressed."""
    files = _files_of(folder, about)
    for file in files:
        packed_bytes = file.stat().st_size
        limit = max(MAX_RATIO * packed_bytes, FREE_BYTES)
        with zstd.open(file, "rb") as packed, (copy / file.stem).open("wb") as plain:
            while content := packed.read(COPIED_BYTES):
                plain.write(content)
                if plain.tell() > limit:
                    raise SourceError(
                        f"{file.name}, {packed_bytes} bytes, inflates to more than {limit}"
                    )
    about = {**about, "relative_file_paths": [file.stem for file in files]}
    about |= {"compression_mode": "", "compression_format": ""}
    text = yaml.safe_dump({ABOUT: about})
    (copy / METADATA).write_text(text)
