# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames from a KITTI raw drive: camera `image_02`, and the Velodyne scan with its number.

Geiger et al., Vision meets Robotics: The KITTI Dataset, IJRR 2013.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.geometry.camera import Camera, Distortion, ground_truth_from_cloud
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.core.records import Frame, Scan, Skipped, in_view
from uncertainty_depth.frames.image_files import read_pixels
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.protocol import FileSource


def open_source(rest: str, config: SourceConfig) -> KittiSource:
    """Return the source in a drive's folder."""
    return KittiSource(Path(rest), config)


class KittiSource(FileSource):
    """One drive's frames, `DATE/DATE_drive_NNNN_sync`, calibrated by files in `DATE`.

    Images are rectified in most drives; one whose images have the sensor's size, S_02, is
    rectified here.

    Attributes:
        names: image file stems, in order; the scan of an image has the same stem.
        lidar_to_camera: (4, 4), Velodyne to the optical frame of camera 2.
    """

    def __init__(self, folder: Path, config: SourceConfig) -> None:
        """Read calibration and stamps; raise `SourceError` if `folder` is no KITTI raw drive."""
        self.name = f"kitti:{folder}"
        self._folder = folder
        self._config = config
        if not folder.is_dir():
            raise SourceError(f"no such KITTI drive: {folder}")
        self.names = [file.stem for file in sorted((folder / "image_02" / "data").glob("*.png"))]
        if not self.names:
            raise SourceError(f"{folder} is not a KITTI drive: it has no image_02/data/*.png")
        self.stamps_ns = _stamps(folder / "image_02" / "timestamps.txt", self.names)
        path = folder.parent / "calib_cam_to_cam.txt"
        projection = _calibration(path, "P_rect_02", (3, 4))
        self.lidar_to_camera = lidar_to_camera(folder.parent, projection)
        self._intrinsics = projection[:, :3]
        self._rectifiers: dict[tuple[int, int], Rectifier] = {}

    def __len__(self) -> int:
        return len(self.names)

    def _stamp_ns(self, index: int) -> int:
        return self.stamps_ns[index]

    def _frame(self, index: int) -> Frame | Skipped:
        name = self.names[index]
        image, camera = self.image(index)
        scan = self.scan(index)
        if scan is None:
            raise MessageError(
                "no_lidar_within_max_time_difference",
                f"frame {name} of {self._folder} has no Velodyne scan",
            )
        points = scan[:, :3]
        ground_truth_m = ground_truth_from_cloud(points, self.lidar_to_camera, camera)
        frame = Frame(
            self.stamps_ns[index],
            name,
            camera,
            image,
            ground_truth_m=ground_truth_m,
            scan=Scan(points, self.lidar_to_camera),
        )
        return in_view(frame, f"no LiDAR point projects into frame {name} of {self._folder}")

    def image(self, index: int) -> tuple[NDArray[np.uint8], Camera]:
        """Return the rectified image, (H, W, 3) uint8 RGB, and its camera.

        Raise as `read_pixels`.
        """
        path = self._folder / "image_02" / "data" / f"{self.names[index]}.png"
        image = read_pixels(path, self._config.max_pixels)
        size = (image.shape[1], image.shape[0])
        if size not in self._rectifiers:
            cameras = self._cameras(*size)
            self._rectifiers[size] = Rectifier(*cameras, self._config.distorted_images)
        return self._rectifiers[size].image(image)

    def _cameras(self, width: int, height: int) -> tuple[Camera, Camera]:
        """Return the camera for images of this size, and the one that they are rectified to."""
        path = self._folder.parent / "calib_cam_to_cam.txt"
        if (width, height) != tuple(_calibration(path, "S_02", (2,), default=(0, 0))):
            rectified = Camera(width, height, self._intrinsics)
            return rectified, rectified
        turn = np.eye(4)
        turn[:3, :3] = _calibration(path, "R_rect_02", (3, 3)).T
        distortion = Distortion("plumb_bob", _calibration(path, "D_02", (5,)))
        raw = Camera(width, height, _calibration(path, "K_02", (3, 3)), turn, distortion)
        rectified_width, rectified_height = _calibration(path, "S_rect_02", (2,)).astype(int)
        rectified = Camera(int(rectified_width), int(rectified_height), self._intrinsics)
        return raw, rectified

    def scan(self, index: int) -> NDArray[np.float32] | None:
        """Return (N, 4) float32 x y z reflectance, None if missed; raise `MessageError` if cut."""
        path = self._folder / "velodyne_points" / "data" / f"{self.names[index]}.bin"
        if not path.exists():
            return None
        if path.stat().st_size % 16:
            raise MessageError(
                "cloud_wrong_size",
                f"{path} has {path.stat().st_size} bytes; expected 16 for each point",
            )
        return np.fromfile(path, dtype="<f4").reshape(-1, 4)


def lidar_to_camera(calibration: Path, projection: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (4, 4): Velodyne to the optical frame of the camera with the (3, 4) `projection`.

    KITTI projects with x = P_rect R_rect_00 [R|T] X. The last column of P_rect, the camera's
    offset from camera 0, goes into the transform, so that K = P_rect[:, :3] remains. Its rotation,
    printed with seven digits, is made one exactly, as it will be in a bag.
    """
    rectify = np.eye(4)
    velodyne = np.eye(4)
    offset = np.eye(4)
    rectify[:3, :3] = _calibration(calibration / "calib_cam_to_cam.txt", "R_rect_00", (3, 3))
    velodyne[:3, :3] = _calibration(calibration / "calib_velo_to_cam.txt", "R", (3, 3))
    velodyne[:3, 3] = _calibration(calibration / "calib_velo_to_cam.txt", "T", (3,))
    offset[:3, 3] = np.linalg.solve(projection[:, :3], projection[:, 3])
    return transform_from(*parameters_from(offset @ rectify @ velodyne))


def _calibration(
    path: Path, key: str, shape: tuple[int, ...], default: tuple[float, ...] | None = None
) -> NDArray[np.float64]:
    """Return the numbers beside `key`; `default` if the file lacks them."""
    if not path.exists():
        raise SourceError(f"no such KITTI calibration file: {path}")
    lines = dict(line.split(":", 1) for line in strict.read_text(path).splitlines() if ":" in line)
    if key not in lines and default is not None:
        return np.array(default, dtype=np.float64)
    try:
        return np.array(lines[key].split(), dtype=np.float64).reshape(shape)
    except (KeyError, ValueError):
        raise SourceError(
            f"{path} has {key}: {lines.get(key, 'nothing').strip()!r}; "
            f"expected {int(np.prod(shape))} numbers"
        ) from None


def _stamps(path: Path, names: list[str]) -> list[int]:
    """Return each frame's time from `timestamps.txt`, nanoseconds since 1970."""
    if not path.exists():
        raise SourceError(f"no such KITTI timestamps: {path}")
    lines = strict.read_text(path).splitlines()
    try:
        return [_nanoseconds(lines[int(name)]) for name in names]
    except (IndexError, ValueError) as error:
        raise SourceError(
            f"{path} has {len(lines)} lines; expected the time of every image, on line N + 1 "
            f"for image N: {error}"
        ) from error


def _nanoseconds(line: str) -> int:
    """Return nanoseconds since 1970 of a text such as `2011-09-26 13:02:25.964389445`, as UTC."""
    date, _, fraction = line.strip().partition(".")
    seconds = int(datetime.strptime(date, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())
    return seconds * SECOND_NS + int(fraction[:9].ljust(9, "0") or 0)


IMAGE_TOPIC = "/camera/image"
CAMERA_INFO_TOPIC = "/camera/camera_info"
LIDAR_TOPIC = "/lidar/points"
CAMERA_FRAME = "camera"
LIDAR_FRAME = "lidar"


def write_bag(drive_dir: Path | str, out_bag: Path | str) -> int:
    """Write the drive to the new bag `out_bag` and return how many images it has.

    The synchronised drives pair image N with scan N, whatever their own clocks say to the
    millisecond; the scan gets the image's stamp, which keeps that pairing in a bag.
    """
    drive = KittiSource(Path(drive_dir), SourceConfig())
    with BagWriter(out_bag) as writer:
        writer.static_transforms([(CAMERA_FRAME, LIDAR_FRAME, drive.lidar_to_camera)])
        for index in tqdm(range(len(drive.names)), "convert", unit="frame", disable=None):
            stamp_ns = drive.stamps_ns[index]
            image, camera = drive.image(index)
            writer.camera_info(CAMERA_INFO_TOPIC, stamp_ns, CAMERA_FRAME, camera)
            writer.image(IMAGE_TOPIC, stamp_ns, CAMERA_FRAME, image)
            if (scan := drive.scan(index)) is not None:
                writer.cloud(LIDAR_TOPIC, stamp_ns, LIDAR_FRAME, scan)
    return len(drive.names)
