# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scans of several LiDARs as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uncertainty_depth.records import Scan


def merged_scan(scans: Sequence[Scan]) -> Scan:
    """Return the points of all scans in the frame of the first LiDAR, with its pose.

    Projected, each pixel has the nearest point of all, and the occlusion filter sees them all:
    what one LiDAR sees past an edge is hidden by what another sees of it.

    Args:
        scans: at least one, each with the pose of its LiDAR at the same camera.
    """
    first = scans[0]
    if len(scans) == 1:
        return first
    camera_to_first = np.linalg.inv(first.lidar_to_camera)
    points = [first.points[:, :3]]
    for scan in scans[1:]:
        to_first = camera_to_first @ scan.lidar_to_camera
        points.append(scan.points[:, :3] @ to_first[:3, :3].T + to_first[:3, 3])
    return Scan(np.concatenate(points), first.lidar_to_camera)
