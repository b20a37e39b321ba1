# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Poses of a camera from a text file: rows of 4x4 matrices, or TUM's quaternions with times."""

from __future__ import annotations

import re
from bisect import bisect_left
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.geometry.transforms import interpolated, parameters_from, transform_from
from uncertainty_depth.messages.stamps import SECOND_NS

NANOSECOND_DIGITS = 16
"""An integer of so many digits is a time in nanoseconds, as of a system clock."""
MAX_SHEAR = 0.01
"""Largest entry of R R^T - 1 of a matrix that is printed in few digits, but a rotation."""


class Key(NamedTuple):
    """What associates files and poses: a time, or the number of a frame.

    Attributes:
        value: nanoseconds, or the number.
        is_time: which of the two.
    """

    value: int
    is_time: bool


def key_of(text: str) -> Key | None:
    """Return the time or the number in a file's stem or a file's column; None without one.

    `1305031102.175304` is seconds, `1403636579763555584` nanoseconds, `frame-000012` number 12.
    """
    if re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", text, re.IGNORECASE):
        return Key(int(Decimal(text) * SECOND_NS), True)
    digits = re.findall(r"\d+", text)
    if not digits:
        return None
    return Key(int(digits[-1]), len(digits[-1]) >= NANOSECOND_DIGITS)


class Trajectory:
    """Camera-to-world poses: of frames by their number or order, or at times.

    Attributes:
        lost: rows whose pose is not finite: tracking had failed there.
    """

    def __init__(self, path: Path) -> None:
        """Read a file.

        Each row is 16 numbers of a row-major 4x4 matrix, or those behind a frame's number or its
        time in seconds, or `time x y z qx qy qz qw` (TUM). Lines that begin with # are comments.

        Raises:
            SourceError: a row has another form, or is no rigid transform.
        """
        self.lost = 0
        self._in_order: list[NDArray[np.float64] | None] = []
        self._by_number: dict[int, NDArray[np.float64]] = {}
        timed: dict[int, NDArray[np.float64]] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.partition("#")[0].replace(",", " ").split()
            if not words:
                continue
            key, pose = self._row(words, f"{path}, line {number}")
            if key is None:
                self._in_order.append(pose)
            elif pose is not None and key.is_time:
                timed[key.value] = pose
            elif pose is not None:
                self._by_number[key.value] = pose
        self._times_ns = sorted(timed)
        self._timed = [timed[time_ns] for time_ns in self._times_ns]

    def _row(self, words: list[str], place: str) -> tuple[Key | None, NDArray[np.float64] | None]:
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            values = np.empty(0)
        if len(values) not in (8, 16, 17):
            raise SourceError(
                f"{place} is {' '.join(words)[:60]!r}; expected 16 numbers of a 4x4 matrix, with "
                "the frame's number or time before them or without, or time x y z qx qy qz qw"
            )
        key = None if len(values) == 16 else key_of(words[0])
        numbers = values if len(values) == 16 else values[1:]
        if not np.isfinite(numbers).all():
            self.lost += 1
            return key, None
        try:
            pose = transform_from(*numbers) if len(values) == 8 else _rigid(numbers)
        except ConfigError as error:
            raise SourceError(f"{place}: {error}") from error
        return key, pose

    def at(self, key: Key, index: int, tolerance_ns: int) -> NDArray[np.float64] | None:
        """Return the (4, 4) camera-to-world pose of a frame; None if there is none.

        Args:
            key: of the frame. At a time between two poses the pose is interpolated.
            index: the frame's place in the order of all.
            tolerance_ns: a pose farther away in time is not that of the frame.
        """
        if self._in_order:
            return self._in_order[index] if index < len(self._in_order) else None
        if not key.is_time:
            return self._by_number.get(key.value)
        after = bisect_left(self._times_ns, key.value)
        near = [
            place
            for place in (after - 1, after)
            if 0 <= place < len(self._times_ns)
            and abs(self._times_ns[place] - key.value) <= tolerance_ns
        ]
        if len(near) < 2:
            return self._timed[near[0]] if near else None
        before_ns = self._times_ns[after - 1]
        fraction = (key.value - before_ns) / (self._times_ns[after] - before_ns)
        return interpolated(self._timed[after - 1], self._timed[after], fraction)


def _rigid(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rigid transform that 16 numbers of a matrix round.

    Raises:
        ConfigError: they are no rotation and translation.
    """
    matrix = numbers.reshape(4, 4)
    rotation = matrix[:3, :3]
    shear = np.abs(rotation @ rotation.T - np.eye(3)).max()
    is_rigid = shear < MAX_SHEAR and np.linalg.det(rotation) > 0
    if not (is_rigid and np.allclose(matrix[3], (0, 0, 0, 1))):
        raise ConfigError(
            "the matrix is no rigid transform; expected a rotation, a translation in metres, and "
            "0 0 0 1 as its last row"
        )
    return transform_from(*parameters_from(matrix))
