# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Cameras of the maps that are scored and of the ground truth images."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import KEEP, RECTIFY, Rectifier
from uncertainty_depth.messages.camera_info import (
    calibration_from_info,
    camera_from_info,
    description_key,
)
from uncertainty_depth.messages.stamps import stamp_ns

MAX_INFOS = 200


class MapCamera:
    """Holds the latest camera infos of the maps and of the ground truth images.

    Attributes:
        info: the latest of the maps; None before the first.
        ground_truth_info: of the ground truth images; None without one.
        notes: sentences for the reader of the scores, without repetition.
    """

    def __init__(self) -> None:
        self.info: Any = None
        self._infos: OrderedDict[int, Any] = OrderedDict()
        self.ground_truth_info: Any = None
        self.notes: list[str] = []
        self._camera: tuple[tuple[Any, ...], Camera] | None = None
        self._ground_truth_rectifier: tuple[tuple[Any, ...], Rectifier] | None = None

    def add(self, message: Any) -> None:
        """Store a camera info of the maps."""
        self.info = message
        self._infos[stamp_ns(message.header)] = message
        while len(self._infos) > MAX_INFOS:
            self._infos.popitem(last=False)

    def camera(self, width: int, height: int, stamp: int) -> Camera:
        """Return the camera of maps of this size, with its distortion if they are of raw images.

        It is that of their own stamp, or the latest if there is none.

        It is the same object while the camera infos say the same: its rays are computed once.

        Raises:
            MessageError: the camera info is invalid or belongs to maps of another aspect.
        """
        info = self._infos.get(stamp, self.info)
        key = (*description_key(info), width, height)
        if self._camera is None or self._camera[0] != key:
            self._camera = key, self._new_camera(info, width, height)
        return self._camera[1]

    def _new_camera(self, info: Any, width: int, height: int) -> Camera:
        rectifier = Rectifier(calibration_from_info(info), KEEP)
        if not rectifier.calibration.is_rectified:
            self._note(f"depth/camera_info is {rectifier.describe()}")
        if size := rectifier.describe_size(width, height):
            self._note(f"depth/image_rect: {size}")
        return camera_from_info(info).for_image(width, height)

    def as_maps(self, ground_truth_m: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a ground truth image, (H, W) metres, rectified if it is raw and the maps are not.

        Without both camera infos its pixels are taken to be those of the maps.

        Raises:
            MessageError: a camera info is invalid.
        """
        if self.info is None or self.ground_truth_info is None:
            return ground_truth_m
        rectifier = self._rectifier_of_ground_truth()
        if not (rectifier.rectifies and calibration_from_info(self.info).is_rectified):
            return ground_truth_m
        self._note(f"ground_truth/camera_info is {rectifier.describe()}")
        return rectifier.depth(ground_truth_m)

    def _rectifier_of_ground_truth(self) -> Rectifier:
        """Return the rectifier of ground truth images: it keeps the pixels that it looks up."""
        cached = self._ground_truth_rectifier
        key = description_key(self.ground_truth_info)
        if cached is None or cached[0] != key:
            cached = key, Rectifier(calibration_from_info(self.ground_truth_info), RECTIFY)
            self._ground_truth_rectifier = cached
        return cached[1]

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
