# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Synthetic worlds as a source of frames, and as a bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from synthetic import furnishing, sensors
from synthetic.config import SynthesisConfig
from synthetic.render import Renderer, Scene
from synthetic.solids import Solid
from uncertainty_depth.core.config.source import ODOMETRY_FRAME
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import Frame, Scan
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import SECOND_NS

START_NS = 1_000 * SECOND_NS  # stamp of the first image
MAX_DEPTH_M = 80.0  # of exact ground truth; no room is that long
PAUSE_NS = SECOND_NS  # between the last image of a world and the first of the next
CLOUD_DELAY_NS = 4_000_000  # the LiDAR's stamp is this much later than the camera's

IMAGE_TOPIC = "/camera/image"
INFO_TOPIC = "/camera/camera_info"
CLOUD_TOPIC = "/lidar/points"
DEPTH_TOPIC = "/camera/depth"
CAMERA_FRAME = "camera"
LIDAR_FRAME = "lidar"
BASE_FRAME = "base_link"
STATIC_TRANSFORMS = [
    (BASE_FRAME, LIDAR_FRAME, sensors.LIDAR_TO_BASE),
    (BASE_FRAME, "camera_link", sensors.CAMERA_LINK_TO_BASE),
    ("camera_link", CAMERA_FRAME, sensors.OPTICAL_TO_CAMERA_LINK),
]
ROOMS = "rooms"
# streams of random numbers; `furnishing` uses those below
LOOK = 2
CAMERA = 3
LIDAR = 4


class World:
    """One world and the robot in it: all data depend on (seed, world, frame) alone."""

    def __init__(self, config: SynthesisConfig, number: int) -> None:
        self._config = config
        self._number = number
        scene, self._rig = _builder(config.scenes)(config, number, self._random(LOOK))
        self._renderer = Renderer(scene)

    @property
    def camera(self) -> Camera:
        """Return the camera's intrinsics."""
        return self._rig.camera

    @property
    def lidar_to_camera(self) -> NDArray[np.float64]:
        """Return the transform of the LiDAR into the optical frame, (4, 4)."""
        return self._rig.lidar_to_camera

    @property
    def solids(self) -> list[Solid]:
        """Return the solids that the indices in `CameraView.solid` refer to."""
        return self._renderer.scene.solids

    def stamp_ns(self, frame: int) -> int:
        """Return the stamp of a frame's image; each world begins after the one before."""
        duration = round(self._config.frames / self._config.rate * SECOND_NS) + PAUSE_NS
        return START_NS + self._number * duration + round(frame / self._config.rate * SECOND_NS)

    def camera_to_world(self, frame: int) -> NDArray[np.float64]:
        """Return the exact pose of the camera's optical frame at the image's stamp, (4, 4)."""
        return self.base_to_world(frame) @ self._rig.camera_to_base

    def base_to_world(self, frame: int) -> NDArray[np.float64]:
        """Return the exact pose of the robot at the image's stamp, (4, 4)."""
        return self._pose(frame, 0)

    def view(self, frame: int) -> sensors.CameraView:
        """Render what the camera sees in this frame, before noise."""
        return sensors.CameraView(self._renderer, self.camera, self.camera_to_world(frame))

    def photograph(self, frame: int, view: sensors.CameraView) -> NDArray[np.uint8]:
        """Return the camera image of a view, (H, W, 3) uint8 RGB."""
        return sensors.expose(
            view.radiance, self._config.noise, self._random(CAMERA, frame), self._rig.look
        )

    def cloud(self, frame: int) -> NDArray[np.float32]:
        """Return the LiDAR turn of this frame, taken `CLOUD_DELAY_NS` after the image.

        (N, 4) x y z intensity in the LiDAR's frame.
        """
        to_world = self._pose(frame, CLOUD_DELAY_NS) @ sensors.LIDAR_TO_BASE
        return sensors.scan(
            self._renderer,
            self._config.rings,
            self._config.noise,
            to_world,
            self._random(LIDAR, frame),
        )

    def _pose(self, frame: int, later_ns: int) -> NDArray[np.float64]:
        return sensors.base_to_world(
            *self._renderer.scene.drive.pose(frame / self._config.rate + later_ns / SECOND_NS)
        )

    def _random(self, stream: int, *frame: int) -> np.random.Generator:
        return np.random.default_rng([self._config.seed, self._number, stream, *frame])


Builder = Callable[[SynthesisConfig, int, np.random.Generator], tuple[Scene, sensors.Rig]]
"""Options, number of a world and what draws its camera's look, to the world and its robot."""


def _rooms(config: SynthesisConfig, number: int, look: np.random.Generator) -> Any:
    scene = furnishing.build(config.seed, number, config.test_objects)
    return scene, sensors.Rig.usual(config.width, config.height, look)


def _builder(scenes: str) -> Builder:
    """Return what builds the worlds: the rooms, or `build` of a Python module."""
    if scenes == ROOMS:
        return _rooms
    try:
        build: Builder = import_module(scenes).build
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"scenes is {scenes!r}: {error}; expected rooms, or a Python module with a function "
            "build, as experiments.worlds.varied (from a clone: python -m uncertainty_depth)"
        ) from error
    return build


@dataclass(frozen=True)
class Moment:
    """One frame of one world."""

    world: World
    number: int
    frame: int

    @property
    def name(self) -> str:
        """Return the frame's name, e.g. "world 3 frame 17"."""
        return f"world {self.number} frame {self.frame}"


def _moments(config: SynthesisConfig) -> Iterator[Moment]:
    """Yield all frames in the order of their stamps, with one world in memory at a time."""
    for number in range(config.worlds):
        world = World(config, number)
        yield from (Moment(world, number, frame) for frame in range(config.frames))


class SyntheticSource:
    """Frames of synthetic worlds, rendered as they are read.

    Ground truth is made from the LiDAR, or with `config.dense` is the exact depth of each pixel.

    Args:
        config: which worlds, and the robot's sensors.
    """

    def __init__(self, config: SynthesisConfig) -> None:
        _builder(config.scenes)  # an unknown module is an error now, not at the first frame
        self._config = config
        self.name = _notation(config)
        self.notes: list[str] = []

    def __len__(self) -> int:
        return self._config.worlds * self._config.frames

    def __iter__(self) -> Iterator[Frame]:
        for moment in _moments(self._config):
            view = moment.world.view(moment.frame)
            truth: NDArray[Any] = np.where(view.depth_m > MAX_DEPTH_M, np.nan, view.depth_m)
            scan = None
            if not self._config.dense:
                points = moment.world.cloud(moment.frame)[:, :3]
                scan = Scan(points, moment.world.lidar_to_camera)
                truth = ground_truth_from_cloud(
                    scan.points, scan.lidar_to_camera, moment.world.camera
                )
            image = moment.world.photograph(moment.frame, view)
            stamp_ns = moment.world.stamp_ns(moment.frame)
            camera = moment.world.camera
            pose = moment.world.camera_to_world(moment.frame)
            yield Frame(
                stamp_ns, moment.name, camera, image, ground_truth_m=truth, scan=scan, pose=pose
            )


def _notation(config: SynthesisConfig) -> str:
    """Return the source string that opens these worlds again.

    It always has worlds, frames and seed; other options if they differ from the default.
    """
    values = to_mapping(config)
    defaults = to_mapping(SynthesisConfig())
    options = [
        f"{key}={str(value).lower()}"
        for key, value in values.items()
        if value != defaults[key] or key in ("worlds", "frames", "seed")
    ]
    return "synthetic:" + ",".join(options)


def synthesize(out_bag: Path | str, config: SynthesisConfig, progress: bool = True) -> None:
    """Render synthetic worlds into a rosbag2 (MCAP).

    The bag has images, camera info, clouds, the transforms between the sensors, and exact odometry
    at each image: every world begins anew at another place. With
    `config.dense` it also has the exact depth of each pixel, a 32FC1 image that
    `ground_truth_topic` takes instead of the LiDAR.

    Raises:
        SourceError: `out_bag` exists.
        ConfigError: `config.scenes` are not the rooms, which share the one camera of a bag.
    """
    if config.scenes != ROOMS:
        raise ConfigError(
            f"scenes is {config.scenes!r}, whose worlds may each have another camera, and a bag "
            f"has one; expected rooms, or the source synthetic:scenes={config.scenes}"
        )
    camera = sensors.make_camera(config.width, config.height)
    with BagWriter(out_bag) as bag:
        bag.static_transforms(STATIC_TRANSFORMS)
        for moment in tqdm(
            _moments(config),
            "convert",
            config.worlds * config.frames,
            unit="frame",
            disable=not progress,
        ):
            _write(bag, moment, camera, config.dense)


def _write(bag: BagWriter, moment: Moment, camera: sensors.Camera, dense: bool) -> None:
    stamp_ns = moment.world.stamp_ns(moment.frame)
    view = moment.world.view(moment.frame)
    bag.transform(stamp_ns, ODOMETRY_FRAME, BASE_FRAME, moment.world.base_to_world(moment.frame))
    bag.image(IMAGE_TOPIC, stamp_ns, CAMERA_FRAME, moment.world.photograph(moment.frame, view))
    bag.camera_info(INFO_TOPIC, stamp_ns, CAMERA_FRAME, camera)
    if dense:
        bag.image(DEPTH_TOPIC, stamp_ns, CAMERA_FRAME, view.depth_m)
    bag.cloud(
        CLOUD_TOPIC, stamp_ns + CLOUD_DELAY_NS, LIDAR_FRAME, moment.world.cloud(moment.frame)
    )
