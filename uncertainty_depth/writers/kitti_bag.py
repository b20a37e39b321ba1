# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write a KITTI raw drive as a rosbag2: image, camera info, LiDAR points and transform."""

from __future__ import annotations

from pathlib import Path

from tqdm import tqdm

from uncertainty_depth.frames.kitti import KittiDrive
from uncertainty_depth.writers.bag_writer import BagWriter

IMAGE_TOPIC = "/camera/image"
CAMERA_INFO_TOPIC = "/camera/camera_info"
LIDAR_TOPIC = "/lidar/points"
CAMERA_FRAME = "camera"
LIDAR_FRAME = "lidar"


def write_kitti_bag(drive_dir: Path | str, out_bag: Path | str, progress: bool = True) -> int:
    """Write the drive to the new bag `out_bag` and return its number of images.

    The synchronised drives pair image N with scan N, whatever their own clocks say to the
    millisecond; the scan gets the image's stamp, which keeps that pairing in a bag.

    Raises:
        SourceError: the drive is none, or `out_bag` exists.
        MessageError: an image or scan cannot be read.
    """
    drive = KittiDrive(Path(drive_dir))
    with BagWriter(out_bag) as writer:
        writer.static_transforms([(CAMERA_FRAME, LIDAR_FRAME, drive.lidar_to_camera)])
        for index in tqdm(
            range(len(drive.names)), desc="convert", unit="frame", disable=not progress
        ):
            _write_frame(writer, drive, index)
    return len(drive.names)


def _write_frame(writer: BagWriter, drive: KittiDrive, index: int) -> None:
    stamp_ns = drive.stamps_ns[index]
    image, camera = drive.image(index)
    scan = drive.scan(index)
    writer.camera_info(CAMERA_INFO_TOPIC, stamp_ns, CAMERA_FRAME, camera)
    writer.image(IMAGE_TOPIC, stamp_ns, CAMERA_FRAME, image)
    if scan is not None:
        writer.cloud(LIDAR_TOPIC, stamp_ns, LIDAR_FRAME, scan)
