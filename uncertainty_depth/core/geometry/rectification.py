# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera calibration, and image rectification."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import DISTORTED_IMAGES
from uncertainty_depth.core.geometry.camera import Camera

RECTIFY, KEEP, ALREADY_RECTIFIED = DISTORTED_IMAGES
SAME_PIXELS = 1e-3  # difference in intrinsics that moves no point visibly


class Rectifier:
    """One calibrated camera, seen twice, which rectifies images if the options ask for it.

    Both cameras project points of the same frame.

    Attributes:
        raw: projects points into the sensor's image (a camera info's K, D and R).
        rectified: projects points into the rectified image (P).
        distorted_images: value of the option of this name: what to do with unrectified images.
    """

    def __init__(self, raw: Camera, rectified: Camera, distorted_images: str = RECTIFY) -> None:
        self.raw = raw
        self.rectified = rectified
        self.distorted_images = distorted_images
        self._views = lru_cache(maxsize=2)(self._make_views)

    @cached_property
    def is_rectified(self) -> bool:
        """Whether the raw image is the rectified one: no D, no R, and K is P's left 3x3."""
        raw = self.raw
        rectified = self.rectified
        return (
            raw.distortion is None
            and (raw.width, raw.height) == (rectified.width, rectified.height)
            and np.allclose(raw.intrinsics, rectified.intrinsics, 0, SAME_PIXELS)
            and np.allclose(raw.frame_to_camera, rectified.frame_to_camera, 0, 1e-9)
        )

    @property
    def rectifies(self) -> bool:
        """Whether images are changed."""
        return self.distorted_images == RECTIFY and not self.is_rectified

    def image(self, image: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Camera]:
        """Return the image to use and its camera; black outside the raw image, see `Camera.seen`.

        Raises `MessageError`: camera_info_wrong_aspect.
        """
        raw, rectified = self._views(image.shape[1], image.shape[0])
        if self.rectifies:
            image = cv2.remap(image, *_fixed_point_map(raw, rectified), cv2.INTER_LINEAR)
        return image, raw if self.distorted_images == KEEP else rectified

    def camera(self, width: int, height: int) -> Camera:
        """Return the camera for maps at this size, distorted if they belong to raw images.

        Raises `MessageError`: camera_info_wrong_aspect.
        """
        raw, rectified = self._views(width, height)
        keeps = self.distorted_images == KEEP and not self.is_rectified
        return raw if keeps else rectified

    def depth(self, depth_m: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a raw depth image rectified as `image` does, without interpolating depths.

        Both are (H, W) metres along their own camera's axis, NaN for unknown.

        Raises `MessageError`: camera_info_wrong_aspect.
        """
        raw, rectified = self._views(depth_m.shape[1], depth_m.shape[0])
        if not self.rectifies:
            return depth_m
        pixels = rectification_map(raw, rectified)
        nearest = cv2.remap(depth_m, pixels, None, cv2.INTER_NEAREST, borderValue=np.nan)
        raw_rays = rectified.rays() @ _rectified_to_raw(raw, rectified).T
        return (nearest / raw_rays[..., 2]).astype(np.float32)

    def describe(self) -> str:
        """Return the camera info's state and what is done with the images, to follow "... is"."""
        if self.is_rectified:
            return "rectified: images are used as they are"
        distortion = self.raw.distortion
        state = f"distorted ({distortion.model})" if distortion else "not rectified (P is not K)"
        actions = {
            RECTIFY: "images are rectified; if they are already, as image_proc's image_rect, "
            f"set distorted_images to {ALREADY_RECTIFIED}",
            KEEP: "images stay as they are, points are projected with the distortion",
            ALREADY_RECTIFIED: "images are assumed to be rectified, as distorted_images says",
        }
        return f"{state}: {actions[self.distorted_images]}"

    def _make_views(self, width: int, height: int) -> tuple[Camera, Camera]:
        raw = self.raw
        rectified = self.rectified
        scaled_size = (
            round(rectified.width * width / raw.width),
            round(rectified.height * height / raw.height),
        )
        raw = raw.for_image(width, height)
        rectified = rectified.scaled(*scaled_size)
        if self.rectifies:
            rectified = replace(rectified, seen=_seen(raw, rectified), raw=raw)
        return raw, rectified


def _seen(raw: Camera, rectified: Camera) -> NDArray[np.bool_] | None:
    """Return which pixels of the rectified image are interpolated from raw pixels alone."""
    u, v = np.moveaxis(rectification_map(raw, rectified), 2, 0)
    seen = (u >= -SAME_PIXELS) & (u <= raw.width - 1 + SAME_PIXELS)
    seen &= (v >= -SAME_PIXELS) & (v <= raw.height - 1 + SAME_PIXELS)
    return None if seen.all() else seen


@lru_cache(maxsize=4)
def rectification_map(raw: Camera, rectified: Camera) -> NDArray[np.float32]:
    """Return the raw u and v of each pixel of the rectified image, (height, width, 2)."""
    rays = rectified.rays().reshape(-1, 3) @ _rectified_to_raw(raw, rectified).T
    rays[rays[:, 2] <= 0] = np.nan  # beside or behind the raw camera
    outside = -1e4  # far from every image, within OpenCV's 16 bits
    pixels = np.nan_to_num(raw.pixels(rays), nan=outside).clip(outside, -outside)
    return pixels.reshape(rectified.height, rectified.width, 2).astype(np.float32)


@lru_cache(maxsize=4)
def _fixed_point_map(raw: Camera, rectified: Camera) -> tuple[NDArray, NDArray]:
    """Return `rectification_map` as `cv2.remap` would convert it anew for each image."""
    pixels = rectification_map(raw, rectified)
    places, fractions = cv2.convertMaps(pixels, None, cv2.CV_16SC2)
    return places, fractions


def _rectified_to_raw(raw: Camera, rectified: Camera) -> NDArray[np.float64]:
    """Return the (3, 3) rotation between both cameras, whose centres coincide."""
    return raw.frame_to_camera[:3, :3] @ rectified.frame_to_camera[:3, :3].T
