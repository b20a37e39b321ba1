# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames from a folder of colour and depth images, with poses if it has any.

Poses are rows of 4x4 matrices, or TUM's quaternions with times.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import (
    interpolated,
    parameters_from,
    transform_from,
)
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.image_files import read_metres, read_pixels
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.messages.images import as_ground_truth
from uncertainty_depth.frames.protocol import (
    FileSource,
    folder_and_options,
    folder_of,
    numbers,
    per_metre,
)

NANOSECOND_DIGITS = 16
"""An integer of so many digits is a time in nanoseconds, as of a system clock."""
logger = logging.getLogger(__name__)
MAX_SHEAR = 0.01
"""Largest entry of R R^T - 1 of a matrix that is printed in few digits, but a rotation."""


class Key(NamedTuple):
    """Key that associates files and poses: a time, nanoseconds, or a frame number."""

    value: int
    is_time: bool


def key_of(text: str) -> Key | None:
    """Return the time or number in a file's stem or column; None without one.

    `1305031102.175304` is seconds, `1403636579763555584` nanoseconds, `frame-000012` number 12.
    """
    if re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", text, re.IGNORECASE):
        return Key(int(Decimal(text) * SECOND_NS), True)
    digits = re.findall(r"\d+", text)
    if not digits:
        return None
    return Key(int(digits[-1]), len(digits[-1]) >= NANOSECOND_DIGITS)


class Trajectory:
    """Camera-to-world poses by frame number, by order, or by time."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Each row is 16 numbers of a row-major 4x4 matrix, or those behind a frame's number or its
        time in seconds, or `time x y z qx qy qz qw` (TUM). Lines that begin with # are comments.
        """
        self._in_order: list[NDArray[np.float64] | None] = []
        self._by_number: dict[int, NDArray[np.float64]] = {}
        timed: dict[int, NDArray[np.float64]] = {}
        for number, line in enumerate(strict.read_text(path).splitlines(), 1):
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

    @staticmethod
    def _row(words: list[str], place: str) -> tuple[Key | None, NDArray[np.float64] | None]:
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
        if not np.isfinite(numbers).all():  # tracking failed
            return key, None
        try:
            pose = transform_from(*numbers) if len(values) == 8 else _rigid(numbers)
        except ConfigError as error:
            raise SourceError(f"{place}: {error}") from error
        return key, pose

    def at(self, key: Key, index: int, tolerance_ns: int) -> NDArray[np.float64] | None:
        """Return a frame's (4, 4) camera-to-world pose, by key or index; None if there is none.

        At a time between two poses, both within `tolerance_ns`, the pose is interpolated.
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
    """Return the rigid transform nearest to 16 rounded numbers; raise `ConfigError` for none."""
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


NOMINAL_RATE = 30
"""Frames per second of images whose names are numbers: that of the usual RGB-D cameras."""
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
TRAJECTORIES = ("poses.txt", "groundtruth.txt")
OPTIONS = ("per_metre", "k", "depth_k", "depth_xyz")
LAYOUT = "expected the folders rgb and depth, K.txt, and poses.txt or groundtruth.txt if any"


class _Item(NamedTuple):
    """An image and its depth image."""

    image: Path
    depth: Path | None
    key: Key


def open_source(rest: str, config: SourceConfig) -> RgbdSource:
    """Return the source of `DIR[,option=value...]`."""
    return RgbdSource(f"rgbd:{rest}", config)


def frames_of(rest: str) -> tuple[Path, set[object]]:
    """Return the folder, without the options."""
    return folder_of(rest), {""}


IMAGE_TOPIC = "/camera/image"
CAMERA_INFO_TOPIC = "/camera/camera_info"
DEPTH_TOPIC = "/camera/depth_registered/image"
CAMERA_FRAME = "camera"
WORLD_FRAME = "odom"


def write_bag(rest: str, out_bag: Path | str) -> int:
    """Write `DIR[,option=value...]` to the new bag `out_bag` and return how many images it has.

    The depth is written as it is scored, in metres at the colour image's pixels, poses as
    /tf. Images whose names are no times begin at 1 s: a stamp of 0 is none. Those that cannot be
    read, or have no depth, are left out with a warning.
    """
    source = open_source(rest, SourceConfig())
    left_out = []
    with BagWriter(out_bag) as writer:
        for index in tqdm(range(len(source)), "convert", unit="frame", disable=None):
            frame = source[index]
            if isinstance(frame, Skipped):
                left_out.append(frame.message)
                continue
            stamp_ns = frame.stamp_ns
            if not source._items[index].key.is_time:
                stamp_ns += SECOND_NS
            if frame.pose is not None:
                writer.transform(stamp_ns, WORLD_FRAME, CAMERA_FRAME, frame.pose)
            if frame.camera is not None:
                writer.camera_info(CAMERA_INFO_TOPIC, stamp_ns, CAMERA_FRAME, frame.camera)
            writer.image(IMAGE_TOPIC, stamp_ns, CAMERA_FRAME, frame.need_image())
            writer.image(DEPTH_TOPIC, stamp_ns, CAMERA_FRAME, frame.need_ground_truth())
        if len(left_out) == len(source):
            raise SourceError(f"no image of {source.name} can be written: {left_out[0]}")
    if left_out:
        logger.warning("%d images are left out; the first: %s", len(left_out), left_out[0])
    return len(source) - len(left_out)


class RgbdSource(FileSource):
    """The colour images in `DIR/rgb`, each with its depth image in `DIR/depth`. A `Source`.

    Files belong together if their names have the same number. Names that are times are associated
    with the nearest time within `max_time_difference`. Depth is 16 bits, `per_metre` to the metre,
    0 or 65535 is none. `K.txt` is the 3x3 camera matrix of the colour images. A pose of
    `poses.txt` or `groundtruth.txt` takes points from the camera that saw the depth to the world.

    Colour and depth are taken as registered, pixel by pixel, unless `depth_k` gives the depth its
    own camera: then each depth image is projected into the colour camera like a LiDAR's cloud.
    """

    def __init__(self, notation: str, config: SourceConfig) -> None:
        """List the files, and read camera and poses.

        `rgbd:DIR` has the options `per_metre=1000`, `k=fx/fy/cx/cy` in place of K.txt,
        `depth_k=fx/fy/cx/cy` of a depth camera of its own, and `depth_xyz=x/y/z`, metres, its
        place in the colour camera's axes. Raises `SourceError` if one has another form.
        """
        folder, options = folder_and_options(notation, OPTIONS)
        self.name = notation
        self._notes: list[str] = []
        self._pixels = 0
        self._holes = 0
        self._config = config
        self._per_metre = per_metre(notation, options)
        self._tolerance_ns = round(config.max_time_difference * SECOND_NS)
        images = _files(folder / "rgb")
        depths = _files(folder / "depth")
        keys = sorted(depths)
        self._items = [
            _Item(images[key], self._depth_of(key, keys, depths), key) for key in sorted(images)
        ]
        self._read_cameras(folder, options)
        paths = [folder / name for name in TRAJECTORIES if (folder / name).is_file()]
        self._trajectory = Trajectory(paths[0]) if paths else None
        if unused := len(depths) - len({item.depth for item in self._items} - {None}):
            self._notes.append(f"{unused} depth images belong to no colour image")
        if self._trajectory is not None:
            poses = [self._pose(index, item.key) for index, item in enumerate(self._items)]
            if missing := sum(pose is None for pose in poses):
                self._notes.append(
                    f"{missing} of {len(poses)} images have no pose in {paths[0].name}"
                )

    @property
    def notes(self) -> list[str]:
        """What is assumed or missing, and how much of the depth images read so far is none."""
        if not self._holes:
            return super().notes
        share = self._holes / self._pixels
        sentence = f"{share:.1%} of the depth images' pixels hold no depth and are not scored"
        return [*super().notes, sentence]

    def __len__(self) -> int:
        return len(self._items)

    def _stamp_ns(self, index: int) -> int:
        key = self._items[index].key
        return key.value if key.is_time else key.value * SECOND_NS // NOMINAL_RATE

    def _frame(self, index: int) -> Frame:
        item = self._items[index]
        image = read_pixels(item.image, self._config.max_pixels)
        height, width = image.shape[:2]
        camera = None if self._k is None else Camera(width, height, self._k)
        return Frame(
            self._stamp_ns(index),
            item.image.stem,
            camera,
            image,
            ground_truth_m=self._ground_truth(item, camera, (height, width)),
            pose=self._pose(index, item.key),
        )

    def _ground_truth(
        self, item: _Item, camera: Camera | None, shape: tuple[int, int]
    ) -> NDArray[np.float32]:
        if item.depth is None:
            raise MessageError("no_depth_image", f"{item.image} has no depth image")
        max_pixels = self._config.max_pixels
        depth_m = read_metres(item.depth, self._per_metre, max_pixels=max_pixels)
        self._pixels += depth_m.size
        self._holes += depth_m.size - int(np.isfinite(depth_m).sum())
        if self._depth_k is None or camera is None:
            return as_ground_truth(depth_m, shape)
        rays = _rays(*depth_m.shape, self._depth_k)
        points = (rays * depth_m[..., None])[np.isfinite(depth_m)]
        return ground_truth_from_cloud(points, self._depth_to_camera, camera)

    def _pose(self, index: int, key: Key) -> NDArray[np.float64] | None:
        if self._trajectory is None:
            return None
        pose = self._trajectory.at(key, index, self._tolerance_ns)
        # RGB-D trackers follow the depth camera; the frame's pose is the colour camera's.
        return None if pose is None else pose @ np.linalg.inv(self._depth_to_camera)

    def _read_cameras(self, folder: Path, options: dict[str, str]) -> None:
        self._depth_to_camera = np.eye(4)
        self._k: NDArray[np.float64] | None = None
        self._depth_k: tuple[float, ...] | None = None
        if "k" in options:
            self._k = _matrix(numbers(self.name, "k", options["k"], "fx/fy/cx/cy"))
        elif (folder / "K.txt").is_file():
            self._k = _read_k(folder / "K.txt")
        else:
            self._notes.append(
                f"{folder} has no K.txt, so its camera is unknown; expected the 3x3 matrix of the "
                "colour camera there, or the option k=fx/fy/cx/cy"
            )
        if "depth_xyz" in options:
            place = numbers(self.name, "depth_xyz", options["depth_xyz"], "x/y/z")
            self._depth_to_camera[:3, 3] = place
        if "depth_k" in options:
            self._depth_k = numbers(self.name, "depth_k", options["depth_k"], "fx/fy/cx/cy")
            if self._k is None:
                raise SourceError(
                    f"{self.name} has depth_k, but the colour camera is unknown; expected k too"
                )
            self._notes.append(
                "colour and depth have cameras of their own: depth is projected into the colour "
                "camera, and what the colour camera cannot see is left out"
            )
        elif not (folder / "K.txt").is_file():
            self._notes.append(
                "the depth is taken as registered to the colour images, pixel by pixel, which "
                "nothing in the folder says; if it has a camera of its own give "
                "depth_k=fx/fy/cx/cy and depth_xyz=x/y/z, or scores at edges are wrong"
            )

    def _depth_of(self, key: Key, keys: list[Key], depths: dict[Key, Path]) -> Path | None:
        if key in depths or not key.is_time:
            return depths.get(key)
        after = bisect_left(keys, key)
        near = keys[max(after - 1, 0) : after + 1]
        nearest = min(near, key=lambda other: abs(other.value - key.value))
        is_near = nearest.is_time and abs(nearest.value - key.value) <= self._tolerance_ns
        return depths[nearest] if is_near else None


def _files(folder: Path) -> dict[Key, Path]:
    """Return a folder's image files by the time or number in their names."""
    if not folder.is_dir():
        raise SourceError(f"no such folder: {folder}; {LAYOUT}")
    files: dict[Key, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in IMAGE_SUFFIXES:
            continue
        key = key_of(path.stem)
        if key is None or key in files:
            problem = "no number" if key is None else f"the number of {files[key].name}"
            raise SourceError(
                f"{path} has {problem} in its name; expected a number or time of its own"
            )
        files[key] = path
    if not files:
        raise SourceError(f"{folder} has no file of {', '.join(IMAGE_SUFFIXES)}; {LAYOUT}")
    return files


def _read_k(path: Path) -> NDArray[np.float64]:
    try:
        values = [float(word) for word in strict.read_text(path).replace(",", " ").split()]
    except ValueError:
        values = []
    if len(values) != 9 or values[0] <= 0 or values[4] <= 0 or values[6:] != [0, 0, 1]:
        raise SourceError(
            f"{path} has {len(values)} numbers; expected the 3x3 camera matrix: "
            "fx 0 cx, 0 fy cy, 0 0 1"
        )
    return np.array(values).reshape(3, 3)


def _matrix(values: tuple[float, ...]) -> NDArray[np.float64]:
    fx, fy, cx, cy = values
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])


@cache
def _rays(height: int, width: int, k: tuple[float, ...]) -> NDArray[np.float64]:
    return Camera(width, height, _matrix(k)).rays()
