# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth from the camera's own motion: corners, tracked over images and triangulated by poses.

Odometry says how the camera moved between two images; a corner seen from both places has a depth
(Hartley and Zisserman 2003, chapter 12). No depth sensor is needed. A camera that hardly moves
measures nothing, and poses that disagree with the images are told by the share of corners that
fail to reproject.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.sigma.time_offset import SPAN, TimeOffset

MAX_CORNERS = 300
CELLS = (6, 8)
"""Rows and columns of cells that new corners are spread over: coverage matters, not number."""
WINDOW = 40
"""Earlier images that a corner is triangulated against."""
MIN_PARALLAX_RAD = np.deg2rad(0.75)
MAP_POINT_PARALLAX_RAD = np.deg2rad(1.5)
MAP_POINT_AGE = 60
"""Images for which a corner that was lost stays a measurement."""
MAP_COLUMNS = 24
"""Square cells across the image, of which each has one such corner at most."""
MAP_POINT_DRIFT = 0.08
"""Added noise of its log depth, per root of ten images."""
MAP_POINT = np.dtype(
    [("world", np.float64, 3), ("log_sigma", float), ("common", float), ("seen", np.intp)]
)
"""A triangulated point that outlives its track: where, and the last image that showed it."""
MAX_TRACKING_ERROR_PX = 0.5
"""Between a corner and where it returns to if it is tracked back."""
MAX_REPROJECTION_PX = 1.0
DEPTH_RANGE_M = (0.2, 12.0)
MODEL_LOG_SIGMA = 0.10
"""Noise of a triangulated log depth that does not fall with parallax."""
REFINEMENTS = 4
"""Steps of the depth that all images agree on: later ones change nothing."""
MIN_PIXEL_ERROR = 1.5
COMMON_SHARE = 0.25
"""Part of the epipolar error that all corners in an image share, as by its pose."""
MIN_COMMON_ERROR_PX = 0.5
MAX_FAILED = 0.85
"""Share of corners that fail above which the poses are not believed."""
MIN_POINTS = 8
MAX_GAP_NS = 1_000_000_000
"""Between two images of one sequence: odometry drifts over a longer gap, and little is tracked."""
TRACKING: dict[str, Any] = {
    "winSize": (16, 16),  # OpenCV takes eight pixels of a row at once, and those left over singly
    "maxLevel": 2,
    "flags": cv2.OPTFLOW_USE_INITIAL_FLOW,
    "criteria": (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 10, 0.03),
}
MIN_CORNER_DISTANCE_PX = 8
DETECTION_WIDTH = 640
"""Corners are found in half of an image this wide or more: tracking needs no exact place."""


@dataclass(frozen=True)
class MotionQuality:
    """How well images and poses agree in one frame.

    Attributes:
        tracked: corners with enough parallax.
        failed: share of them that did not reproject, or lie behind a camera or out of range; NaN
            without any.
        epipolar_px: their median distance from the epipolar line, before any is rejected; NaN.
        is_believed: whether the frame's measurements were used.
    """

    tracked: int
    failed: float
    epipolar_px: float
    is_believed: bool


class MotionTracker:
    """Measures depth by tracking corners over a sequence of rectified images.

    Attributes:
        quality: of the last image.
        rejected: number of images whose poses were not believed.
        time_offset: between images and poses.
    """

    def __init__(self) -> None:
        self.rejected = 0
        self.time_offset = TimeOffset()
        self._stamp_ns = 0
        self._intrinsics = np.eye(3)
        self.start_anew()

    def start_anew(self, shape: tuple[int, ...] = (0, 0)) -> None:
        """Forget all images and points, as after a gap in the sequence."""
        self.quality = MotionQuality(0, float("nan"), float("nan"), False)
        self._shape = shape
        self._previous: NDArray[np.uint8] | None = None
        self._pixels: NDArray[np.float32] = np.zeros((0, 2), np.float32)
        # Depth of each live corner in the last image, NaN if it was not triangulated.
        self._depth_m: Floats = np.zeros(0)
        # u, v and 1 of each live corner in the last images, NaN before it was found.
        self._seen_at: Floats = np.full((WINDOW, 3, 0), np.nan)
        self._poses = np.full((WINDOW, 4, 4), np.nan)
        self._stamps_ns = np.zeros(WINDOW, np.int64)
        self._count = 0
        self._map: NDArray[np.void] = np.zeros(0, MAP_POINT)
        self._map_of: NDArray[np.intp] = np.zeros(0, np.intp)

    def measure(
        self,
        image: NDArray[np.uint8],
        intrinsics: NDArray[np.float64],
        pose: NDArray[np.float64] | None,
        stamp_ns: int,
    ) -> Measurements:
        """Track into the next image, and return the depths that motion measures in it.

        Args:
            image: (H, W, 3) RGB or (H, W) grey, uint8, rectified. Another size than before starts
                anew.
            intrinsics: (3, 3), K of this image, pixels. Others than before start anew.
            pose: (4, 4), camera optical frame to a world that stands still, at the image's stamp;
                None or not finite if it is not known, which measures nothing and starts anew.
            stamp_ns: of the image, nanoseconds. A step back or a gap starts anew.

        Returns:
            None of them if the camera hardly moved, or the poses are not believed.
        """
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        if pose is None or not np.isfinite(pose).all():
            self.start_anew(grey.shape)
            return Measurements.none()
        is_next = 0 < stamp_ns - self._stamp_ns <= MAX_GAP_NS
        is_same_camera = grey.shape == self._shape and np.array_equal(intrinsics, self._intrinsics)
        if not is_same_camera or not is_next:
            self.start_anew(grey.shape)
        self._stamp_ns = stamp_ns
        self._intrinsics = intrinsics
        self._track(grey, pose)
        slot = self._count % WINDOW
        self._poses[slot] = pose
        self._stamps_ns[slot] = stamp_ns
        self._seen_at[slot] = _homogeneous(self._pixels).T
        if self._count >= SPAN + 2 and self._count % SPAN == 0:
            self._compare_times(slot)
        live = self._triangulated(slot)
        self._find_corners(grey, slot)
        self._previous = grey
        self._count += 1
        if not self.quality.is_believed:
            return Measurements.none()
        return self._with_map_points(live, pose)

    def _track(self, grey: NDArray[np.uint8], pose: NDArray[np.float64]) -> None:
        """Follow the corners into an image; drop those that do not return when tracked back."""
        if self._previous is None or not len(self._pixels):
            return
        before = self._pixels[:, None]
        expected = self._expected(pose).reshape(-1, 1, 2)
        flow = cv2.calcOpticalFlowPyrLK
        step = expected - before  # the way back starts as far off as the way there
        after, found, _ = flow(self._previous, grey, before, expected, **TRACKING)
        back, returned, _ = flow(grey, self._previous, after, after - step, **TRACKING)
        error = np.linalg.norm((back - before)[:, 0], axis=1)
        height, width = grey.shape
        after = after[:, 0]
        inside = (after >= 0).all(axis=1) & (after <= (width - 1, height - 1)).all(axis=1)
        is_found = (found & returned)[:, 0].astype(bool)
        kept = np.flatnonzero(inside & is_found & (error < MAX_TRACKING_ERROR_PX))
        self._pixels = after[kept]
        self._depth_m = self._depth_m[kept]
        self._seen_at = self._seen_at[..., kept]
        self._map_of = self._map_of[kept]

    def _expected(self, pose: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return where the pose moves the corners to, (N, 2), unknown ones at the median depth."""
        before = self._poses[(self._count - 1) % WINDOW]
        is_known = np.isfinite(self._depth_m)
        typical = np.median(self._depth_m[is_known]) if is_known.any() else DEPTH_RANGE_M[1]
        depth_m = np.where(is_known, self._depth_m, typical)
        rays = _homogeneous(self._pixels) @ np.linalg.inv(self._intrinsics).T
        world = (rays * depth_m[:, None]) @ before[:3, :3].T + before[:3, 3]
        moved = _projected(world, pose, self._intrinsics)
        is_ahead = moved[:, 2] > 0
        return np.where(is_ahead[:, None], moved[:, :2], self._pixels).astype(
            np.float32, order="C"
        )

    def _compare_times(self, slot: int) -> None:
        """Compare the image before this one with one before that, by poses about both."""
        images = np.arange(slot - SPAN - 2, slot + 1) % WINDOW
        stamps_s = (self._stamps_ns[images] - self._stamps_ns[images[0]]) / 1e9
        before = self._seen_at[images[1]]
        after = self._seen_at[images[-2]]
        is_seen = np.isfinite(before[0]) & np.isfinite(after[0])
        inverse = np.linalg.inv(self._intrinsics)
        before, after = ((inverse @ pixels[:, is_seen]).T for pixels in (before, after))
        self.time_offset.add(stamps_s, self._poses[images], before, after, self._focal_px)

    @property
    def _focal_px(self) -> float:
        return float(np.sqrt(self._intrinsics[0, 0] * self._intrinsics[1, 1]))

    def _find_corners(self, grey: NDArray[np.uint8], slot: int) -> None:
        """Add corners in the cells that have too few."""
        cells = CELLS[0] * CELLS[1]
        cell_of = _cell_of(self._pixels, self._shape, *CELLS)
        missing = -(-MAX_CORNERS // cells) - np.bincount(cell_of, minlength=cells)
        if (missing <= 0).all():
            return
        scale = 1
        while grey.shape[1] >= DETECTION_WIDTH:
            grey = cv2.pyrDown(grey)
            scale *= 2
        distance = max(1, MIN_CORNER_DISTANCE_PX // scale)
        free = np.ones(grey.shape, np.uint8)
        across, down = (self._pixels / scale).astype(np.intp).T
        free[down, across] = 0
        free = cv2.erode(free, np.ones((2 * distance - 1, 2 * distance - 1)))
        lacking = (missing > 0).astype(np.uint8).reshape(CELLS)
        free &= cv2.resize(lacking, grey.shape[::-1], interpolation=cv2.INTER_NEAREST)
        found = cv2.goodFeaturesToTrack(grey, 2 * MAX_CORNERS, 0.002, distance, mask=free)
        if found is None:
            return
        new = scale * found[:, 0]
        cell_of = _cell_of(new, self._shape, *CELLS)
        new = new[_rank(cell_of) < missing[cell_of]]  # the best corners come first
        self._pixels = np.concatenate([self._pixels, new])
        self._depth_m = np.concatenate([self._depth_m, np.full(len(new), np.nan)])
        seen_at = np.full((WINDOW, 3, len(new)), np.nan)
        seen_at[slot] = _homogeneous(new).T
        self._seen_at = np.concatenate([self._seen_at, seen_at], axis=2)
        self._map_of = np.concatenate([self._map_of, np.full(len(new), -1)])

    def _triangulated(self, slot: int) -> Measurements:
        """Return the live corners' depths: by the image with the widest parallax, then all."""
        intrinsics = self._intrinsics
        inverse = np.linalg.inv(intrinsics)
        focal = self._focal_px
        count = len(self._pixels)
        self._depth_m = np.full(count, np.nan)
        self.quality = MotionQuality(0, float("nan"), float("nan"), False)
        if not count:
            return Measurements.none()
        rotations = self._poses[:, :3, :3] @ inverse
        rays = rotations @ self._seen_at
        rays /= np.sqrt(np.einsum("wcn,wcn->wn", rays, rays))[:, None]
        now = rays[slot].T
        cosine = np.nan_to_num(np.einsum("wcn,cn->wn", rays, rays[slot]), nan=2.0)
        cosine[slot] = 2.0
        # The rays are the world's, so the camera's rotation is out of them: what is left of the
        # angle between two is parallax.
        best = np.argmin(cosine, axis=0)
        parallax = np.arccos(np.clip(cosine[best, np.arange(count)], -1, 1))
        wide = np.flatnonzero(
            (parallax >= MIN_PARALLAX_RAD) & (cosine[best, np.arange(count)] <= 1)
        )
        if not len(wide):
            return Measurements.none()
        best = best[wide]
        parallax = parallax[wide]
        there = rays[best, :, wide]
        centre = self._poses[slot, :3, 3]
        other = self._poses[best, :3, 3]
        baseline = other - centre
        near, far, epipolar = _closest(now[wide], there, baseline)
        world = centre + near[:, None] * now[wide]
        middle = (world + other + far[:, None] * there) / 2
        here = _projected(middle, self._poses[slot], intrinsics)
        back = _projected(middle, self._poses[best], intrinsics)
        error = np.maximum(
            np.linalg.norm(here[:, :2] - self._pixels[wide], axis=1),
            np.linalg.norm(back[:, :2] - self._seen_at[best, :2, wide], axis=1),
        )
        low, high = DEPTH_RANGE_M
        depths = np.stack([here[:, 2], back[:, 2]])
        good = (error < MAX_REPROJECTION_PX) & (depths > low).all(axis=0)
        good &= (depths < high).all(axis=0) & (near > 0) & (far > 0)
        failed = 1 - float(good.mean())
        epipolar_px = float(np.median(epipolar)) * focal
        believed = failed <= MAX_FAILED and int(good.sum()) >= MIN_POINTS
        self.quality = MotionQuality(len(wide), failed, epipolar_px, believed)
        if not believed:
            self.rejected += len(wide) >= MIN_POINTS
            return Measurements.none()
        parallax_px = focal * parallax[good]
        log_sigma = np.hypot(MODEL_LOG_SIGMA, max(MIN_PIXEL_ERROR, 2 * epipolar_px) / parallax_px)
        common = COMMON_SHARE * max(epipolar_px, MIN_COMMON_ERROR_PX) / parallax_px
        corners = wide[good]
        depth_m = self._refined(corners, here[good, 2], slot)
        self._depth_m[corners] = depth_m
        # Of a ray through the camera's centre whose depth, not length, is 1.
        forward = rotations[slot] @ _homogeneous(self._pixels[corners]).T
        world = centre + depth_m[:, None] * forward.T
        self._remember(corners, world, log_sigma, common, parallax[good])
        return _measurements(self._pixels[corners], depth_m, log_sigma, common, self._shape)

    def _refined(self, corners: NDArray[np.intp], depth_m: Floats, slot: int) -> Floats:
        """Return the depths of corners that all images of the window agree on best, (N,).

        Gauss-Newton over inverse depth along the ray of the image in `slot`, with Cauchy's
        weights: one image with a wrong pose or track among many does not pull. This image errs as
        much as any other, which offsets the corner in all of them alike: the offset is eliminated,
        with one image's error as its prior.
        """
        seen_at = self._seen_at[:, :, corners]
        is_seen = np.isfinite(seen_at[:, 0])
        is_seen[slot] = False
        used = is_seen.any(axis=1)
        poses = self._poses[used]
        seen_at = seen_at[used]
        is_seen = is_seen[used]
        focal = np.diag(np.diag(self._intrinsics))
        principal = self._intrinsics[:2, 2:]
        seen_at = np.where(is_seen[:, None], seen_at[:, :2] - principal, 0)
        # What is at a depth here is in each image at the pixel of at_infinity + shift / depth.
        turn = focal @ poses[:, :3, :3].transpose(0, 2, 1)
        here = self._poses[slot]
        rays = here[:3, :3] @ np.linalg.inv(self._intrinsics) @ self._seen_at[slot][:, corners]
        at_infinity = turn @ rays
        shift = turn @ (here[:3, 3] - poses[:, :3, 3])[..., None]
        low, high = DEPTH_RANGE_M
        inverse_depth = 1 / depth_m
        for _ in range(REFINEMENTS):
            points = at_infinity + inverse_depth * shift
            nearness = 1 / np.maximum(points[:, 2:], 0.01)
            pixels = points[:, :2] * nearness
            error = seen_at - pixels
            slope = (shift[:, :2] - pixels * shift[:, 2:]) * nearness
            squared = np.einsum("wcn,wcn->wn", error, error)
            weights = is_seen / (1 + squared / MAX_REPROJECTION_PX**2)
            weighted = weights[:, None] * slope
            total = weighted.sum(axis=0)
            shared = total / (1 + weights.sum(axis=0))
            gain = np.einsum("wcn,wcn->n", weighted, error)
            gain -= np.einsum("cn,wn,wcn->n", shared, weights, error)
            curvature = np.einsum("wcn,wcn->n", weighted, slope)
            curvature -= np.einsum("cn,cn->n", shared, total)
            step = gain / np.maximum(curvature, 1e-9)
            inverse_depth = np.clip(inverse_depth + step, 1 / high, 1 / low)
        return 1 / inverse_depth

    def _remember(
        self,
        corners: NDArray[np.intp],
        world: Floats,
        log_sigma: Floats,
        common: Floats,
        parallax: Floats,
    ) -> None:
        """Keep the points of corners that were seen from far enough apart."""
        firm = parallax >= MAP_POINT_PARALLAX_RAD
        points = np.zeros(int(firm.sum()), MAP_POINT)
        points["world"] = world[firm]
        points["log_sigma"] = log_sigma[firm]
        points["common"] = common[firm]
        points["seen"] = self._count
        at = self._map_of[corners[firm]]
        is_new = at < 0
        self._map[at[~is_new]] = points[~is_new]
        at[is_new] = len(self._map) + np.arange(int(is_new.sum()))
        self._map_of[corners[firm]] = at
        self._map = np.concatenate([self._map, points[is_new]])

    def _with_map_points(self, live: Measurements, pose: NDArray[np.float64]) -> Measurements:
        """Return live measurements, and in cells that have none points seen before."""
        is_recent = self._map["seen"] > self._count - MAP_POINT_AGE
        renumbered = np.where(is_recent, np.cumsum(is_recent) - 1, -1)
        known = self._map_of >= 0
        self._map_of[known] = renumbered[self._map_of[known]]
        points = self._map = self._map[is_recent]
        if not len(points):
            return live
        age = self._count - 1 - points["seen"]
        pixels = _projected(points["world"], pose, self._intrinsics)
        height, width = self._shape
        low, high = DEPTH_RANGE_M
        visible = (age > 0) & (pixels[:, 2] > low) & (pixels[:, 2] < high)
        visible &= (pixels[:, :2] >= 0).all(axis=1)
        visible &= (pixels[:, :2] <= (width - 1, height - 1)).all(axis=1)
        chosen = np.flatnonzero(visible)
        chosen = chosen[np.argsort(pixels[chosen, 2], kind="stable")]  # the nearest hides
        cells = self._shape, MAP_COLUMNS * height / width, MAP_COLUMNS
        cell_of = _cell_of(pixels[chosen, :2], *cells)
        occupied = _cell_of(np.stack([live.columns, live.rows], axis=1), *cells)
        kept = chosen[(_rank(cell_of) == 0) & ~np.isin(cell_of, occupied)]
        if not len(kept):
            return live
        drift = MAP_POINT_DRIFT * np.sqrt(age[kept] / 10)
        before = _measurements(
            pixels[kept, :2],
            pixels[kept, 2],
            np.hypot(points["log_sigma"][kept], drift),
            points["common"][kept],
            self._shape,
        )
        return live.joined(before)


def _homogeneous(pixels: NDArray[np.floating]) -> Floats:
    """Return (..., 2) pixels with a third coordinate of 1."""
    return np.concatenate([pixels, np.ones((*pixels.shape[:-1], 1))], axis=-1)


def _cell_of(
    pixels: NDArray[np.number], shape: tuple[int, ...], rows: float, columns: int
) -> NDArray[np.intp]:
    """Return the number of the cell that each pixel is in, row by row, (N,)."""
    height, width = shape
    x, y = pixels.T
    return (y * rows / height).astype(np.intp) * columns + (x * columns / width).astype(np.intp)


def _rank(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many before each are of its group, (N,)."""
    order = np.argsort(groups, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
    return ranks


def _closest(one: Floats, other: Floats, baseline: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distances along unit rays to where they are closest, and the epipolar angle."""
    cosine = (one * other).sum(axis=1)
    along_one = (one * baseline).sum(axis=1)
    along_other = (other * baseline).sum(axis=1)
    sine = np.maximum(1 - cosine**2, 1e-12)
    near = (along_one - cosine * along_other) / sine
    far = (cosine * along_one - along_other) / sine
    normal = np.cross(one, baseline)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    epipolar = np.arcsin(np.clip(np.abs((normal * other).sum(axis=1)), 0, 1))
    return near, far, epipolar


def _projected(
    world: Floats, pose: NDArray[np.float64], intrinsics: NDArray[np.float64]
) -> Floats:
    """Return u, v and depth of world points, (N, 3), in one camera or in a camera each."""
    local = np.einsum("...ji,...j->...i", pose[..., :3, :3], world - pose[..., :3, 3])
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = (local / local[:, 2:]) @ intrinsics.T
    return np.concatenate([pixels[:, :2], local[:, 2:]], axis=1)


def _measurements(
    pixels: NDArray[np.floating],
    depth_m: Floats,
    log_sigma: Floats,
    common: Floats,
    shape: tuple[int, ...],
) -> Measurements:
    """Return measurements at rounded pixels, the most certain one of each."""
    columns, rows = np.rint(pixels).astype(np.intp).T
    order = np.argsort(log_sigma, kind="stable")
    _, first = np.unique(rows[order] * shape[1] + columns[order], return_index=True)
    chosen = np.sort(order[first])
    return Measurements(
        rows[chosen], columns[chosen], depth_m[chosen], log_sigma[chosen], common[chosen]
    )
