# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Find the storage files of a bag and their readers: a rosbag2 folder, files, or one file."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from rosbags import rosbag1, rosbag2

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
