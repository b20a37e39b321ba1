# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`sensor_msgs/CameraInfo`, from rclpy and rosbags, ROS 1 and ROS 2 alike, and its cameras.

The reference is `image_geometry::PinholeCameraModel`: points of the frame that the message names
fall into the rectified image by P = K' [I | t], fourth column included, and into the raw image by
K, D and the inverse of R, at the same place t. The region of interest is cut out first, then
pixels are binned. Binned pixels are scaled as in `Camera.scaled`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import (
    COEFFICIENT_COUNTS,
    EQUIDISTANT,
    Camera,
    Distortion,
)
from uncertainty_depth.core.geometry.rectification import RECTIFY, Rectifier
from uncertainty_depth.frames.messages.decoding import total

MATRICES = {"k": (3, 3), "r": (3, 3), "p": (3, 4)}
POSE_DIGITS = 12  # a message changes a pose's last bits, which must have no effect

MAX_OFFSET_M = 5.0
"""Longest distance from a camera to its frame: no stereo pair is wider."""
MAX_ZOOM = 1.5
"""Between raw and rectified image, beyond which it is said."""
MODEL_ALIASES = {
    "fisheye": EQUIDISTANT,
    "kannala_brandt": EQUIDISTANT,
    "kannala_brandt4": EQUIDISTANT,
    "radtan": "plumb_bob",
}
"""Names of OpenCV, librealsense and Kalibr."""
MAX_COEFFICIENT = 1e6  # beyond any lens; keeps polynomials finite
UNDECODABLE = ("camera_info_undecodable", "a camera info")


class CameraInfoFields(NamedTuple):
    """The fields in a camera info that describe a camera; region and binning stay zero."""

    height: int
    width: int
    distortion_model: str
    d: NDArray[np.float64]
    k: NDArray[np.float64]
    r: NDArray[np.float64]
    p: NDArray[np.float64]


@total(*UNDECODABLE)
@np.errstate(all="ignore")  # overflows are rejected at the end
def rectifier_from_info(message: Any, distorted_images: str = RECTIFY) -> Rectifier:
    """Return the raw and the rectified image's camera, with what to do with raw images.

    Zeros and identity count as not given: K is taken from P, P from K, and R is no rotation.

    Raises `MessageError`: camera_info_zero if neither K nor P has a focal length,
    camera_info_zero_size if width or height is zero, camera_info_not_finite,
    camera_info_no_rotation for R, camera_info_unknown_distortion, camera_info_wrong_offset, or
    camera_info_undecodable for anything else.
    """
    matrix = _matrix(message, "k")
    projection = _matrix(message, "p")
    given = filter(_is_given, (matrix, projection[:, :3]))
    intrinsics = _intrinsics(next(given, np.zeros((3, 3))))
    if not _is_given(projection):
        projection = np.insert(intrinsics, 3, 0, axis=1)
    rectified_intrinsics = _intrinsics(projection[:, :3])
    if message.width == 0 or message.height == 0:
        raise MessageError(
            "camera_info_zero_size",
            f"a camera info has size {message.width}x{message.height}; expected the image's",
        )
    beside = np.eye(4)
    beside[:2, 3] = _offset(rectified_intrinsics, projection)
    turned = np.eye(4)
    turned[:3, :3] = _rotation(message).T
    size = (message.width, message.height)
    rectified = Camera(*size, rectified_intrinsics, beside.round(POSE_DIGITS))
    raw_pose = (turned @ beside).round(POSE_DIGITS)
    raw = Camera(*size, intrinsics, raw_pose, _distortion(message))
    cameras = (_of_image(raw, message), _of_image(rectified, message))
    # Numbers may be so large or small that the camera's overflow.
    for camera in cameras:
        focal_lengths = camera.intrinsics[[0, 1], [0, 1]]
        is_finite = np.isfinite(camera.intrinsics).all()
        is_finite &= np.isfinite(camera.frame_to_camera).all()
        if not is_finite or not (focal_lengths > 0).all():
            raise MessageError(
                "camera_info_not_finite",
                f"a camera info gives intrinsics {camera.intrinsics.tolist()} at "
                f"{camera.frame_to_camera[:3, 3].tolist()}; expected finite numbers",
            )
    return Rectifier(*cameras, distorted_images)


def camera_from_info(message: Any) -> Camera:
    """Return a raw image's camera, distorted if it is; raise as `rectifier_from_info`."""
    rectifier = rectifier_from_info(message)
    return rectifier.rectified if rectifier.is_rectified else rectifier.raw


def fields_from_camera(camera: Camera) -> CameraInfoFields:
    """Return a camera's fields in a camera info; P has the same intrinsics as K."""
    rotation = camera.frame_to_camera[:3, :3].T
    shift = rotation @ camera.frame_to_camera[:3, 3]
    projection = camera.intrinsics @ np.column_stack([np.eye(3), shift])
    model = "plumb_bob" if camera.distortion is None else camera.distortion.model
    coefficients = np.zeros(5) if camera.distortion is None else camera.distortion.coefficients
    matrices = (camera.intrinsics.ravel(), rotation.ravel(), projection.ravel())
    return CameraInfoFields(camera.height, camera.width, model, coefficients, *matrices)


@total(*UNDECODABLE)
def description_key(message: Any) -> tuple[Any, ...]:
    """Return a camera info's content without header, to compare: drivers repeat it every image."""
    roi = message.roi
    region = (roi.x_offset, roi.y_offset, roi.width, roi.height)
    matrices = tuple(_field(message, name).tobytes() for name in "dkrp")
    binning = (message.binning_x, message.binning_y)
    return (message.width, message.height, message.distortion_model, *matrices, *binning, *region)


def _field(message: Any, name: str) -> NDArray[np.float64]:
    """Return a field's values (its name is a capital letter in ROS 1); empty if missing."""
    values = getattr(message, name, getattr(message, name.upper(), ()))
    return np.asarray(values, dtype=np.float64)


def _matrix(message: Any, name: str) -> NDArray[np.float64]:
    values = _field(message, name)
    if values.size == 0:
        return np.zeros(MATRICES[name])
    if not np.isfinite(values).all():
        raise MessageError(
            "camera_info_not_finite", f"a camera info has {name.upper()} {values.tolist()}"
        )
    return values.reshape(MATRICES[name])


def _is_given(matrix: NDArray[np.float64]) -> bool:
    return matrix[0, 0] != 0 and not np.array_equal(matrix[:, :3], np.eye(3))


def _offset(
    intrinsics: NDArray[np.float64], projection: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return x and y, metres, from Tx and Ty of P; image_geometry ignores P[2,3] too."""
    offset_m = np.linalg.solve(intrinsics[:2, :2], projection[:2, 3]).astype(np.float64)
    if np.isfinite(offset_m).all() and np.abs(offset_m).max() > MAX_OFFSET_M:
        raise MessageError(
            "camera_info_wrong_offset",
            f"a camera info has {projection[:2, 3].tolist()} in P's last column, which puts the "
            f"camera {np.hypot(*offset_m):.3g} m beside its frame; expected at most "
            f"{MAX_OFFSET_M:g} m: focal length times metres, not millimetres",
        )
    return offset_m


def oddities(message: Any) -> list[str]:
    """Return sentences, to follow the topic, on what is odd in a valid camera info."""
    sentences = []
    matrix = _matrix(message, "k")
    projection = _matrix(message, "p")
    if projection[2, 3] != 0:
        sentences.append(f"has {projection[2, 3]:g} in P[2,3], which is ignored: expected 0")
    if message.width and message.height and _is_given(matrix):
        centre = matrix[:2, 2]
        if not ((centre > 0) & (centre < (message.width, message.height))).all():
            sentences.append(
                f"has its principal point at {centre.tolist()} of {message.width}x"
                f"{message.height} pixels: expected it inside, K[2] across and K[5] down"
            )
    if projection[0, 0] != 0 and not _is_given(projection):
        sentences.append("has the identity as P: it is taken from K")
    scale = projection[0, 0] / matrix[0, 0] if _is_given(matrix) and _is_given(projection) else 1.0
    resized = np.allclose(projection[:2, :3], scale * matrix[:2], atol=0.1 * projection[0, 0])
    if resized and not 1 / MAX_ZOOM < scale < MAX_ZOOM:
        sentences.append(
            f"has a P of {scale:.2g} times K: rectified images show what P says; if it is of "
            "another resolution than K, mend it"
        )
    if _model(message) == EQUIDISTANT and not _field(message, "d").any():
        sentences.append(
            "has distortion model equidistant with D = 0: its images are taken for those of a "
            "pinhole; expected the four coefficients of the lens, or plumb_bob if the images are "
            "rectified"
        )
    return sentences


def _intrinsics(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    focal_lengths = matrix[:2, :2]
    if not (matrix[0, 0] > 0 and matrix[1, 1] > 0 and np.linalg.det(focal_lengths) > 0):
        raise MessageError(
            "camera_info_zero",
            "a camera info has no focal length in P or K; is the camera calibrated?",
        )
    return np.vstack([matrix[:2], [0.0, 0.0, 1.0]])


def _rotation(message: Any) -> NDArray[np.float64]:
    """Return the rotation nearest to R, which has few digits; identity if R is 0."""
    matrix = _matrix(message, "r")
    if not matrix.any():
        return np.eye(3)
    if not np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-3) or np.linalg.det(matrix) < 0:
        raise MessageError(
            "camera_info_no_rotation",
            f"a camera info has R {matrix.tolist()}; expected a rotation",
        )
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def _model(message: Any) -> str:
    name = message.distortion_model.strip().lower().replace(" ", "_").replace("-", "_")
    return MODEL_ALIASES.get(name, name)


def _distortion(message: Any) -> Distortion | None:
    """Return the lens; zeros beyond the coefficients that its model has are none."""
    coefficients = _field(message, "d")
    if not coefficients.any():
        return None
    model = _model(message)
    counts = [
        count
        for count in COEFFICIENT_COUNTS.get(model, ())
        if count <= len(coefficients) and not coefficients[count:].any()
    ]
    if not counts:
        raise MessageError(
            "camera_info_unknown_distortion",
            f"a camera info has distortion model {message.distortion_model!r} with "
            f"{len(coefficients)} coefficients; expected plumb_bob with 5, rational_polynomial "
            "with 8, or 12 with a thin prism and no tilt, or equidistant with 4",
        )
    if not (np.abs(coefficients) < MAX_COEFFICIENT).all():
        raise MessageError(
            "camera_info_not_finite", f"a camera info has D {coefficients.tolist()}"
        )
    return Distortion(model, coefficients[: max(counts)])


def _of_image(camera: Camera, message: Any) -> Camera:
    """Return the published image's camera: the region of interest, then binned."""
    roi = getattr(message, "roi", None)
    if roi is not None and roi.width and roi.height:
        camera = camera.cropped(roi.x_offset, roi.y_offset, roi.width, roi.height)
    across = max(1, getattr(message, "binning_x", 1))
    down = max(1, getattr(message, "binning_y", 1))
    width = max(1, camera.width // across)
    height = max(1, camera.height // down)
    return camera.cropped(0, 0, width * across, height * down).scaled(width, height)
