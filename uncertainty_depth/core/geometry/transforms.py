# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Rigid transforms, as matrices and as the numbers x y z qx qy qz qw; poses given by mistake.

A transform maps column vectors: `lidar_to_camera @ [x, y, z, 1]`. SciPy's rotations are imported
only when needed: they take longer to import than everything else here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ConfigError

QUATERNION_LENGTHS = (1e-6, 1e6)  # outside, squares over- or underflow
POSE_NUMBERS = 7  # of a transform: x y z qx qy qz qw


def transform_from(
    x: float, y: float, z: float, qx: float, qy: float, qz: float, qw: float
) -> NDArray[np.float64]:
    """Return the (4, 4) transform of a translation in metres and a quaternion of any length.

    Raises `ConfigError`: a value is not finite, or the quaternion's length is not in (1e-6, 1e6).
    """
    quaternion = np.array([qx, qy, qz, qw], dtype=np.float64)
    shortest, longest = QUATERNION_LENGTHS
    is_finite = np.isfinite([x, y, z, *quaternion]).all()
    if not is_finite or not shortest < np.linalg.norm(quaternion) < longest:
        raise ConfigError(
            f"a transform is {(x, y, z, qx, qy, qz, qw)}; expected x y z qx qy qz qw, finite, "
            "with a quaternion that is not zero and of length below 1e6"
        )
    from scipy.spatial.transform import Rotation

    transform = np.eye(4)
    transform[:3, :3] = Rotation.from_quat(quaternion).as_matrix()
    transform[:3, 3] = x, y, z
    return transform


def transforms_from_option(
    values: Sequence[float], lidars: int = 1
) -> tuple[NDArray[np.float64], ...]:
    """Return the (4, 4) transforms in `lidar_to_camera`, one per LiDAR, or raise `ConfigError`."""
    expected = POSE_NUMBERS * lidars
    if len(values) != expected:
        per_lidar = f" of each of {lidars} LiDARs" if lidars > 1 else ""
        raise ConfigError(
            f"lidar_to_camera has {len(values)} numbers; expected {expected}: "
            f"x y z qx qy qz qw{per_lidar}"
        )
    starts = range(0, expected, POSE_NUMBERS)
    return tuple(transform_from(*values[start : start + POSE_NUMBERS]) for start in starts)


def parameters_from(
    transform: NDArray[np.floating],
) -> tuple[float, float, float, float, float, float, float]:
    """Return x y z qx qy qz qw for a (4, 4) transform, by the nearest rotation."""
    from scipy.spatial.transform import Rotation

    x, y, z = transform[:3, 3].tolist()
    qx, qy, qz, qw = Rotation.from_matrix(transform[:3, :3]).as_quat().tolist()
    return x, y, z, qx, qy, qz, qw


def option_from(transform: NDArray[np.floating]) -> str:
    """Return the `--lidar-to-camera` of a (4, 4) transform, without exponents, for argparse."""
    numbers = parameters_from(transform)
    return " ".join(np.format_float_positional(number, trim="0") for number in numbers)


def interpolated(
    before: NDArray[np.float64], after: NDArray[np.float64], fraction: float
) -> NDArray[np.float64]:
    """Return the (4, 4) transform at a fraction between two: linear, rotation by slerp.

    Source: Shoemake, Animating Rotation with Quaternion Curves, SIGGRAPH 1985; tf2 does the same.
    """
    from scipy.spatial.transform import Rotation, Slerp

    ends = Rotation.from_matrix(np.stack([before[:3, :3], after[:3, :3]]))
    transform = np.eye(4)
    transform[:3, :3] = Slerp([0.0, 1.0], ends)(fraction).as_matrix()
    transform[:3, 3] = (1 - fraction) * before[:3, 3] + fraction * after[:3, 3]
    return transform


# Body frame (x forward, y left, z up) to optical frame (z forward, x right, y down), REP 103.
BODY_TO_OPTICAL = np.array([[0.0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
BODY_TO_OPTICAL_OPTION = "0 0 0 0.5 -0.5 0.5 0.5"  # the same as x y z qx qy qz qw


def candidate_poses(lidar_to_camera: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return by name the poses that correct common mistakes in a (4, 4) pose, if they differ."""
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
    others = {}
    for name, pose in candidates.items():
        difference = np.abs(pose - lidar_to_camera)
        turn = difference[:3, :3].max()
        shift = difference[:3, 3].max()
        if turn >= np.deg2rad(1) or shift >= 0.01:
            others[name] = pose
    return others


def _turn(axis: str, degrees: float) -> NDArray[np.float64]:
    """Return the (4, 4) rotation about an axis."""
    from scipy.spatial.transform import Rotation

    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler(axis, degrees, degrees=True).as_matrix()
    return turn


def looks_like_body_frame(points: NDArray[np.floating]) -> bool:
    """Return whether the up axis of (N, 3) points is z (body frame) rather than y (optical frame).

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
