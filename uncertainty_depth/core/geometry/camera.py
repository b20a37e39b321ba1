# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera model, and LiDAR points as sparse depth in its image.

Integer coordinates are pixel centres, as in OpenCV and `sensor_msgs/CameraInfo`, so a point
belongs to the pixel that its image coordinates round to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.lens import Distortion
from uncertainty_depth.core.geometry.resampling import pixel_at_centre

if TYPE_CHECKING:
    from uncertainty_depth.core.config.source import ProjectionConfig

MAX_ENLARGEMENT = 4
"""Largest ratio of an image to its camera info: a stranger's is not scored at any size."""
OCCLUSION_WINDOW = 7
"""Width and height, pixels, in which a nearer point hides one behind it."""
MAX_ROUND_TRIP_PX = 0.1
"""Between a pixel and where its ray projects to: a ray that misses by more is not known."""


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera model: pixel = K distortion(X / Z), X = frame_to_camera x.

    The frame is the optical frame named by images and camera infos. A rectified camera may be
    offset from its origin, as a stereo pair's right camera is (Tx in P). A raw camera may be
    rotated against it (R).

    Attributes:
        width, height: pixels.
        intrinsics: (3, 3) float64, K: [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], pixels.
        frame_to_camera: (4, 4) float64, metres.
        distortion: the lens distortion; None for a rectified image.
        seen: (height, width), False for the black pixels of a rectified image that the lens does
            not see; they get no depth. None if all are seen.
        raw: the camera of the image that was rectified to this one's; None if none was.
    """

    width: int
    height: int
    intrinsics: NDArray[np.float64]
    frame_to_camera: NDArray[np.float64] = field(default_factory=lambda: np.eye(4))
    distortion: Distortion | None = None
    seen: NDArray[np.bool_] | None = None
    raw: Camera | None = None

    @classmethod
    def pinhole(cls, focal_length: float, width: int, height: int) -> Camera:
        """Return a camera with square pixels and its principal point at the image's centre.

        Raises:
            ValueError: the focal length, pixels, is not a positive number.

        Examples:
            >>> Camera.pinhole(525.0, width=640, height=480).intrinsics[0]
            array([525. ,   0. , 319.5])
        """
        if not isinstance(focal_length, Real) or not 0 < focal_length < np.inf:
            raise ValueError(
                f"focal_length is {focal_length!r}; expected a positive number of pixels"
            )
        f = float(focal_length)
        center = (width - 1) / 2, (height - 1) / 2
        return cls(width, height, np.array([[f, 0, center[0]], [0, f, center[1]], [0, 0, 1]]))

    def scaled(self, width: int, height: int) -> Camera:
        """Return the camera after its image was resized to (width, height).

        Resizing keeps the image's borders, at -0.5 and size - 0.5: u' + 0.5 = s (u + 0.5), as in
        `cv2.resize`. (ROS's image_proc and image_geometry multiply cx and cy by s, which is off by
        (s - 1) / 2 pixels.)
        """
        if (width, height) == (self.width, self.height):
            return self
        sx = width / self.width
        sy = height / self.height
        resizing = np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2], [0, 0, 1]])
        seen = self.seen
        if seen is not None:
            rows = pixel_at_centre(height, self.height)
            seen = seen[np.ix_(rows, pixel_at_centre(width, self.width))]
        intrinsics = resizing @ self.intrinsics
        return replace(self, width=width, height=height, intrinsics=intrinsics, seen=seen)

    def cropped(self, left: int, top: int, width: int, height: int) -> Camera:
        """Return the camera of this image cropped at pixel (left, top)."""
        shift = np.array([[0, 0, left], [0, 0, top], [0, 0, 0]], dtype=np.float64)
        seen = None if self.seen is None else self.seen[top : top + height, left : left + width]
        intrinsics = self.intrinsics - shift
        return replace(self, width=width, height=height, intrinsics=intrinsics, seen=seen)

    def only_seen(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a (height, width) map with NaN in pixels that are not seen."""
        return values if self.seen is None else np.where(self.seen, values, np.float32(np.nan))

    def for_image(self, width: int, height: int) -> Camera:
        """Return the camera for the same view at another size, or raise `MessageError`."""
        if abs(width * self.height - height * self.width) > max(self.width, self.height):
            raise MessageError(
                "camera_info_wrong_aspect",
                f"an image is {width}x{height}, its camera info {self.width}x{self.height}: "
                "expected the same size, or the same aspect; the intrinsics cannot be known",
            )
        if width > MAX_ENLARGEMENT * self.width:
            raise MessageError(
                "camera_info_wrong_size",
                f"an image is {width}x{height}, its camera info {self.width}x{self.height}: "
                f"expected at most {MAX_ENLARGEMENT} times its width",
            )
        return self.scaled(width, height)

    def pixels(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return image coordinates (u, v), (N, 2), for points (N, 3) in own axes, with Z > 0.

        They are NaN outside the lens's field of view.
        """
        x, y, depth = points.T.astype(np.float64)
        return np.stack(self.ray_pixels(x / depth, y / depth), axis=1)

    @np.errstate(all="ignore")  # outside the field of view the polynomial overflows unused
    def ray_pixels(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return image coordinates u and v, (N,) each, of the rays (x, y, 1); see `pixels`."""
        if self.distortion is not None:
            x, y = self.distortion.distorted(np.stack([x, y], axis=1)).T
        of_u, of_v = self.intrinsics[:2]
        return of_u[0] * x + of_u[1] * y + of_u[2], of_v[0] * x + of_v[1] * y + of_v[2]

    def rays(self) -> NDArray[np.float64]:
        """Return the ray through each pixel's centre, (height, width, 3), own axes, Z = 1.

        It is NaN if it cannot be known: at 90 degrees from the axis and more, and in a corner that
        the lens's polynomial does not describe.
        """
        columns, rows = np.meshgrid(np.arange(self.width), np.arange(self.height))
        offsets = np.stack([columns.ravel(), rows.ravel()], axis=1) - self.intrinsics[:2, 2]
        rays = offsets @ np.linalg.inv(self.intrinsics[:2, :2]).T
        if self.distortion is not None:
            rays = self.distortion.undistorted(rays)
            u, v = self.ray_pixels(*rays.T)
            missed = np.hypot(u - columns.ravel(), v - rows.ravel())
            rays[~(missed <= MAX_ROUND_TRIP_PX)] = np.nan
        rays = np.insert(rays, 2, np.where(np.isnan(rays[:, 0]), np.nan, 1.0), axis=1)
        return rays.reshape(self.height, self.width, 3)


@np.errstate(over="ignore", invalid="ignore")  # points may be NaN or infinite
def image_coordinates(
    points: NDArray[np.floating], lidar_to_camera: NDArray[np.float64], camera: Camera
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return column, row and depth, metres, of the (N, 3) points in the image, in order."""
    to_camera = camera.frame_to_camera @ lidar_to_camera
    # Compute each coordinate by itself: products of (N, 3) arrays take twice as long.
    depth = points @ to_camera[2, :3] + to_camera[2, 3]
    in_front = depth > 1e-3  # a NaN is not in front
    points = points[in_front]
    depth = depth[in_front]
    x = points @ to_camera[0, :3] + to_camera[0, 3]
    y = points @ to_camera[1, :3] + to_camera[1, 3]
    columns, rows = camera.ray_pixels(x / depth, y / depth)
    inside = (
        (columns >= -0.5)
        & (columns < camera.width - 0.5)
        & (rows >= -0.5)
        & (rows < camera.height - 0.5)
        & np.isfinite(depth)
    )
    column = np.floor(columns[inside] + 0.5).astype(np.intp)
    row = np.floor(rows[inside] + 0.5).astype(np.intp)
    return column, row, depth[inside]


def project(
    points: NDArray[np.floating], lidar_to_camera: NDArray[np.float64], camera: Camera
) -> NDArray[np.float32]:
    """Return a point cloud's sparse depth image: the nearest point in each pixel.

    Args:
        points: (N, 3), metres, in the LiDAR's frame; rows that are not finite are ignored.
        lidar_to_camera: (4, 4) transform, LiDAR frame to camera optical frame.
        camera: where to project to; the result is (height, width) float32 metres, NaN for none.
    """
    columns, rows, depth = image_coordinates(points, lidar_to_camera, camera)
    nearest = np.full(camera.height * camera.width, np.inf, dtype=np.float32)
    np.minimum.at(nearest, rows * camera.width + columns, depth.astype(np.float32))
    nearest[np.isinf(nearest)] = np.nan
    return nearest.reshape(camera.height, camera.width)


def remove_occluded(
    depth_m: NDArray[np.float32], tolerance: float, window: int
) -> NDArray[np.float32]:
    """Return a copy without occluded points: those deeper than (1 + tolerance) times the nearest.

    The LiDAR looks past edges that hide the background from the camera. Such background points
    land between the nearer surface's points. The nearest is that in a `window` x `window`
    neighbourhood; a tolerance of 0 keeps everything.
    """
    if tolerance == 0:
        return depth_m.copy()
    import cv2  # a camera alone does not need it

    nearest = cv2.erode(
        np.where(np.isnan(depth_m), np.float32(np.inf), depth_m),
        np.ones((window, window), np.uint8),
    )
    return np.where(depth_m / np.float32(1 + tolerance) > nearest, np.float32(np.nan), depth_m)


def ground_truth_from_cloud(
    points: NDArray[np.floating],
    lidar_to_camera: NDArray[np.float64],
    camera: Camera,
    config: ProjectionConfig,
) -> NDArray[np.float32]:
    """Return an image's ground truth: the cloud, see `project`, without occluded points."""
    # The same pose from tf and from an option differs in its last bits. Points on the edge between
    # two pixels must not depend on that.
    pose = lidar_to_camera.round(12)
    depth_m = project(points, pose, camera)
    return remove_occluded(depth_m, config.occlusion_tolerance, OCCLUSION_WINDOW)
