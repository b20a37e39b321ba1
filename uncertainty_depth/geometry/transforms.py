# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Rigid transforms: (4, 4) float64 matrices, and the seven numbers x y z qx qy qz qw.

A transform maps column vectors: `lidar_to_camera @ [x, y, z, 1]`. SciPy's rotations are imported
only when needed: they take longer to import than everything else here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError

if TYPE_CHECKING:
    from uncertainty_depth.config import ProjectionConfig

QUATERNION_LENGTHS = (1e-6, 1e6)  # outside, squares over- or underflow
POSE_NUMBERS = 7  # of a transform: x y z qx qy qz qw


def transform_from(
    x: float, y: float, z: float, qx: float, qy: float, qz: float, qw: float
) -> NDArray[np.float64]:
    """Return the (4, 4) transform of a translation in metres and a quaternion of any length.

    Raises:
        ConfigError: a value is not finite, or the quaternion's length is not in (1e-6, 1e6).
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
    """Return the (4, 4) transforms in the option `lidar_to_camera`, one per LiDAR.

    Raises:
        ConfigError: the values are not seven usable numbers per LiDAR.
    """
    expected = POSE_NUMBERS * lidars
    if len(values) != expected:
        per_lidar = f" of each of {lidars} LiDARs" if lidars > 1 else ""
        raise ConfigError(
            f"lidar_to_camera has {len(values)} numbers; expected {expected}: "
            f"x y z qx qy qz qw{per_lidar}"
        )
    starts = range(0, expected, POSE_NUMBERS)
    return tuple(transform_from(*values[start : start + POSE_NUMBERS]) for start in starts)


def refuse_pose_and_fixed_frame(config: ProjectionConfig) -> None:
    """Raise `ConfigError` if both are set: a pose that names no frames cannot be moved."""
    if config.lidar_to_camera and config.fixed_frame:
        raise ConfigError(
            f"lidar_to_camera is set and fixed_frame is {config.fixed_frame!r}; expected one of "
            "them: motion is looked up in tf, with the frames of camera and LiDAR; publish the "
            "LiDAR's pose on /tf_static"
        )


def parameters_from(
    transform: NDArray[np.floating],
) -> tuple[float, float, float, float, float, float, float]:
    """Return a (4, 4) transform's x y z qx qy qz qw: the inverse of `transform_from`.

    It uses the nearest rotation.
    """
    from scipy.spatial.transform import Rotation

    x, y, z = transform[:3, 3].tolist()
    qx, qy, qz, qw = Rotation.from_matrix(transform[:3, :3]).as_quat().tolist()
    return x, y, z, qx, qy, qz, qw


def option_from(transform: NDArray[np.floating]) -> str:
    """Return the `--lidar-to-camera` value for a (4, 4) transform.

    It has no exponents: argparse takes a negative number with an exponent for an option.
    """
    numbers = parameters_from(transform)
    return " ".join(np.format_float_positional(number, trim="0") for number in numbers)


def interpolated(
    before: NDArray[np.float64], after: NDArray[np.float64], fraction: float
) -> NDArray[np.float64]:
    """Return the (4, 4) transform between two: translation linear, rotation by slerp.

    Args:
        before: at fraction 0.
        after: at fraction 1.
        fraction: 0 to 1.

    Source: Shoemake, Animating Rotation with Quaternion Curves, SIGGRAPH 1985; tf2 does the same.
    """
    from scipy.spatial.transform import Rotation, Slerp

    ends = Rotation.from_matrix(np.stack([before[:3, :3], after[:3, :3]]))
    transform = np.eye(4)
    transform[:3, :3] = Slerp([0.0, 1.0], ends)(fraction).as_matrix()
    transform[:3, 3] = (1 - fraction) * before[:3, 3] + fraction * after[:3, 3]
    return transform
