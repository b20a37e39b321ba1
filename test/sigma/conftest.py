# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A textured wall, and how a camera sees it from any pose."""

import cv2
import numpy as np

WALL_M = 2.0
WIDTH, HEIGHT = 160, 120
NOISE = np.random.default_rng(0).integers(0, 255, (700, 900), np.uint8)
TEXTURE = cv2.normalize(cv2.GaussianBlur(NOISE, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)
TO_WALL = np.array([[0.005, 0, -2.25], [0, 0.005, -1.75], [0, 0, 1]])
"""The texture is on the wall Z = WALL_M, 5 mm a pixel, around the world's axis."""


def wall_from(pose, intrinsics):
    """The wall in grey, by the homography between it and the image."""
    to_camera = np.linalg.inv(pose)
    columns = to_camera[:3, 0], to_camera[:3, 1], to_camera[:3, 2] * WALL_M + to_camera[:3, 3]
    to_image = intrinsics @ np.stack(columns, axis=1) @ TO_WALL
    return cv2.warpPerspective(TEXTURE, to_image, (WIDTH, HEIGHT))
