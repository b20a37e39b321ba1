# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Common mistakes in extrinsics, as the poses that correct them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.transforms import parameters_from, transform_from

# Body frame (x forward, y left, z up) to optical frame (z forward, x right, y down), REP 103.
BODY_TO_OPTICAL = np.array([[0.0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
BODY_TO_OPTICAL_OPTION = "0 0 0 0.5 -0.5 0.5 0.5"  # the same as x y z qx qy qz qw


def candidate_poses(lidar_to_camera: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the poses that correct common mistakes in a (4, 4) pose, by name.

    Poses within a degree and a centimetre of the given one are left out.
    """
    inverse = np.linalg.inv(lidar_to_camera)
    candidates: dict[str, NDArray[Any]] = {
        "the inverse of lidar_to_camera": inverse,
        "the cloud without any transform, as if it were in the optical frame": np.eye(4),
        "lidar_to_camera followed by body frame (x forward) to optical frame (z forward)": (
            BODY_TO_OPTICAL @ lidar_to_camera
        ),
        "lidar_to_camera without the step from body frame to optical frame": (
            BODY_TO_OPTICAL.T @ lidar_to_camera
        ),
    }
    for degrees in (90, 180, 270):
        name = f"the LiDAR turned by {degrees} degrees about its vertical axis"
        candidates[name] = lidar_to_camera @ _turn("z", degrees)
    candidates["the LiDAR upside down"] = lidar_to_camera @ _turn("x", 180)
    candidates["the LiDAR upside down and turned by 180 degrees"] = lidar_to_camera @ _turn(
        "y", 180
    )
    x, y, z, qw, qx, qy, qz = parameters_from(lidar_to_camera)
    candidates["the quaternion read as w x y z, not x y z w"] = transform_from(
        x, y, z, qx, qy, qz, qw
    )
    for number, root in enumerate(_square_roots(lidar_to_camera), start=1):
        name = f"lidar_to_camera as if it had been applied twice (square root {number})"
        candidates[name] = root
    return {
        name: pose for name, pose in candidates.items() if not _is_close(pose, lidar_to_camera)
    }


def _turn(axis: str, degrees: float) -> NDArray[np.float64]:
    """Return the (4, 4) rotation about an axis."""
    from scipy.spatial.transform import Rotation

    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return turn


def looks_like_body_frame(points: NDArray[np.floating]) -> bool:
    """Return whether a cloud's up axis is z (body frame) rather than y (optical frame).

    Floors and ceilings make a cloud's extent smallest along its up axis.
    """
    low, high = np.percentile(points, (10, 90), axis=0)
    extent = high - low
    return bool(extent[2] < 0.5 * extent[1])


def _square_roots(pose: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the two rigid transforms about the axis of `pose` whose square is `pose`."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_matrix(pose[:3, :3]).as_rotvec()
    angle = float(np.linalg.norm(turn))
    axis = turn / angle if angle > 1e-6 else np.array([0.0, 0.0, 1.0])
    roots = []
    for half in (angle / 2, angle / 2 + np.pi):
        root = np.eye(4)
        root[:3, :3] = Rotation.from_rotvec(axis * half).as_matrix()
        sum_of_turns = np.eye(3) + root[:3, :3]  # singular for half a turn
        root[:3, 3] = np.linalg.lstsq(sum_of_turns, pose[:3, 3], rcond=None)[0]
        roots.append(root)
    return roots


def _is_close(first: NDArray[np.floating], second: NDArray[np.floating]) -> bool:
    turn = np.abs(first[:3, :3] - second[:3, :3]).max()
    shift = np.abs(first[:3, 3] - second[:3, 3]).max()
    return bool(turn < np.deg2rad(1) and shift < 0.01)
