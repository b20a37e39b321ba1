# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera model: how its lens bends rays, and LiDAR points as sparse depth in its image.

Integer coordinates are pixel centres, as in OpenCV and `sensor_msgs/CameraInfo`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.resampling import pixel_at_centre

EQUIDISTANT = "equidistant"
COEFFICIENT_COUNTS = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (4, 5, 8, 12),
    EQUIDISTANT: (4,),
}
MAX_RAY_RADIUS = 2.0**20
"""Rays farther out are not looked for: the angle is within 1e-6 of 90 degrees."""
KNOTS = 1025
MAX_STEPS = 50
"""Newton's method takes about 3 from a table, bisection 42 to `CONVERGED`."""
CONVERGED = 1e-12
COMPLEX_STEP = 1e-30
MAX_TANGENTIAL_STEPS = 8
NEXT_IS_EXACT = 1e-7
"""Newton's error after a step this small is its square."""
NEARLY = 1 - 1e-12  # a polynomial's turn and pole are themselves no place to start from
MAX_ENLARGEMENT = 4
"""Largest ratio of an image to its camera info: a stranger's is not scored at any size."""
OCCLUSION_WINDOW = 7
"""Width and height, pixels, in which a nearer point hides one behind it."""
OCCLUSION_TOLERANCE = 0.1
"""The fraction of its depth by which a point may lie behind the nearest and is not hidden."""
MAX_ROUND_TRIP_PX = 0.1
"""Between a pixel and where its ray projects to: a ray that misses by more is not known."""


@dataclass(frozen=True, eq=False)
class Distortion:
    """How a lens bends rays. A ray is (x, y) = (X / Z, Y / Z) in the camera's optical frame.

    Attributes:
        model: a key of `COEFFICIENT_COUNTS`.
        coefficients: float64, (k1, k2, p1, p2[, k3[, k4, k5, k6[, s1, s2, s3, s4]]]), or (k1, k2,
            k3, k4) if equidistant.
    """

    model: str
    coefficients: NDArray[np.float64]

    def distorted(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return image coordinates of rays for unit focal length, (N, 2); NaN beyond `max_radius`.

        Source: OpenCV's calib3d reference, "Detailed Description", and its fisheye model.
        """
        radius = np.hypot(rays[:, 0], rays[:, 1])
        rays = np.where((radius <= self.max_radius)[:, None], rays, np.nan)
        return self._equidistant(rays) if self.model == EQUIDISTANT else self._polynomial(rays)

    @np.errstate(all="ignore")  # coordinates without a ray, which become NaN
    def undistorted(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rays, (N, 2), from image coordinates for unit focal length.

        It is the inverse of `distorted`; NaN if no ray within `max_radius` falls there. OpenCV's
        `fisheye.undistortPoints` clamps angles at 90 degrees, and its `undistortPoints` diverges
        in the corners of wide lenses, both in silence.
        """
        image_radius = np.hypot(coordinates[:, 0], coordinates[:, 1])
        radius = self._argument_of(image_radius)
        if self.model == EQUIDISTANT:
            radius = np.tan(radius)
        has_others = self.model != EQUIDISTANT and self._padded[[2, 3, 8, 9, 10, 11]].any()
        if has_others:  # tangential terms reach a little beyond
            radius = np.nan_to_num(radius, nan=0.98 * self._limit)
        scale = np.divide(radius, image_radius, out=np.ones_like(radius), where=image_radius > 0)
        rays = coordinates * scale[:, None]
        if has_others:
            rays = self._with_tangential(rays, coordinates)
        return np.where(np.hypot(*rays.T)[:, None] <= self.max_radius, rays, np.nan)

    @cached_property
    def max_radius(self) -> float:
        """Ray radius up to which rays farther out fall farther out in the image.

        Beyond it, a polynomial fitted to the image folds back: points beside the camera would land
        in the image's middle.
        """
        if self.model != EQUIDISTANT:
            return self._limit
        return float(np.tan(self._limit)) if self._limit < np.pi / 2 else np.inf

    @cached_property
    def _limit(self) -> float:
        """The argument of `_image_radius` from which on it no longer rises."""
        above, below = self._image_radius
        slope = above.deriv() * below - above * below.deriv()
        roots = np.concatenate([slope.roots(), below.roots()]).astype(complex)
        real = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0)]
        return float(real.min(initial=np.pi / 2 if self.model == EQUIDISTANT else np.inf))

    @cached_property
    def _image_radius(self) -> tuple[Polynomial, Polynomial]:
        """Numerator and denominator of the image radius, by the ray's radius or angle."""
        if self.model == EQUIDISTANT:
            k1, k2, k3, k4 = self.coefficients
            return Polynomial([0, 1, 0, k1, 0, k2, 0, k3, 0, k4]), Polynomial([1])
        k1, k2, _, _, k3, k4, k5, k6, *_ = self._padded
        return Polynomial([0, 1, 0, k1, 0, k2, 0, k3]), Polynomial([1, 0, k4, 0, k5, 0, k6])

    def _argument_of(self, image_radius: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `_image_radius` takes to these radii, from a table; NaN if none."""
        above, below = self._image_radius
        slopes = above.deriv(), below.deriv()
        limit = min(self._limit * NEARLY, MAX_RAY_RADIUS)
        end = min(1.0, limit)
        while end < limit and above(end) / below(end) < image_radius.max(initial=0.0):
            end = min(2 * end, limit)
        table = np.linspace(0, end, KNOTS)
        argument = np.interp(image_radius, above(table) / below(table), table)
        low = argument - table[1]
        high = np.minimum(argument + table[1], end)
        for _ in range(MAX_STEPS):
            denominator = below(argument)
            value = above(argument) / denominator
            low = np.where(value < image_radius, argument, low)
            high = np.where(value > image_radius, argument, high)
            slope = (slopes[0](argument) - value * slopes[1](argument)) / denominator
            new = argument - (value - image_radius) / slope
            new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
            change = np.abs(new - argument).max(initial=0.0)
            argument = new
            if not change > CONVERGED * end:
                break
        return np.where(image_radius <= above(end) / below(end), argument, np.nan)

    def _with_tangential(
        self, rays: NDArray[np.float64], coordinates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the rays by Newton's method, with derivatives by an imaginary step."""
        for _ in range(MAX_TANGENTIAL_STEPS):
            missed = coordinates - self._polynomial(rays)
            by_x = self._polynomial(rays + np.array([COMPLEX_STEP * 1j, 0])).imag / COMPLEX_STEP
            by_y = self._polynomial(rays + np.array([0, COMPLEX_STEP * 1j])).imag / COMPLEX_STEP
            determinant = by_x[:, 0] * by_y[:, 1] - by_y[:, 0] * by_x[:, 1]
            x = (by_y[:, 1] * missed[:, 0] - by_y[:, 0] * missed[:, 1]) / determinant
            y = (by_x[:, 0] * missed[:, 1] - by_x[:, 1] * missed[:, 0]) / determinant
            rays = rays + np.stack([x, y], axis=1)
            change = np.hypot(x, y)
            if change.max(initial=0.0, where=np.isfinite(change)) < NEXT_IS_EXACT:
                break
        return rays

    @property
    def _padded(self) -> NDArray[np.float64]:
        return np.pad(self.coefficients, (0, 12 - len(self.coefficients)))

    def _polynomial(self, rays: NDArray[Any]) -> NDArray[Any]:
        k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4 = self._padded
        x = rays[:, 0]
        y = rays[:, 1]
        r2 = x * x + y * y
        radial = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
        across = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (s1 + r2 * s2)
        down = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (s3 + r2 * s4)
        return np.stack([across, down], axis=1)

    def _equidistant(self, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        k1, k2, k3, k4 = self.coefficients
        radius = np.hypot(rays[:, 0], rays[:, 1])
        angle = np.arctan(radius)
        a2 = angle * angle
        image_radius = angle * (1 + a2 * (k1 + a2 * (k2 + a2 * (k3 + a2 * k4))))
        scale = np.divide(image_radius, radius, out=np.ones_like(radius), where=radius > 0)
        return rays * scale[:, None]


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


def ground_truth_from_cloud(
    points: NDArray[np.floating], lidar_to_camera: NDArray[np.float64], camera: Camera
) -> NDArray[np.float32]:
    """Return an image's ground truth: the cloud, see `project`, without occluded points.

    The LiDAR looks past edges that hide the background from the camera. Such background points
    land between the nearer surface's points: what is deeper than (1 + `OCCLUSION_TOLERANCE`) times
    the nearest in a window of `OCCLUSION_WINDOW` is occluded.
    """
    import cv2  # a camera alone does not need it

    # The same pose from tf and from an option differs in its last bits. Points on the edge between
    # two pixels must not depend on that.
    depth_m = project(points, lidar_to_camera.round(12), camera)
    nearest_m = cv2.erode(
        np.where(np.isnan(depth_m), np.float32(np.inf), depth_m),
        np.ones((OCCLUSION_WINDOW, OCCLUSION_WINDOW), np.uint8),
    )
    is_occluded = depth_m / np.float32(1 + OCCLUSION_TOLERANCE) > nearest_m
    return np.where(is_occluded, np.float32(np.nan), depth_m)
