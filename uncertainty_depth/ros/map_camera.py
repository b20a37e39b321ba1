"""The camera of the maps that are scored, and of the ground truth images they are scored against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import KEEP, RECTIFY, Rectifier
from uncertainty_depth.messages.camera_info import calibration_from_info, camera_from_info


class MapCamera:
    """The newest camera infos: the maps' own, and where there are any the ground truth images'.

    Attributes:
        info: of the maps; None before the first.
        ground_truth_info: of the ground truth images; None where they come without.
        notes: sentences about what the camera infos say, each once.
    """

    def __init__(self) -> None:
        self.info: Any = None
        self.ground_truth_info: Any = None
        self.notes: list[str] = []

    def camera(self, width: int, height: int) -> Camera:
        """The camera of maps of this size: maps of raw images are scored with its distortion.

        Raises:
            MessageError: where the camera info cannot be understood or is not of such maps.
        """
        rectifier = Rectifier(calibration_from_info(self.info), KEEP)
        if not rectifier.calibration.is_rectified:
            self._note(f"depth/camera_info is {rectifier.describe()}")
        if size := rectifier.describe_size(width, height):
            self._note(f"depth/image_rect: {size}")
        return camera_from_info(self.info).for_image(width, height)

    def as_maps(self, ground_truth_m: NDArray[np.float32]) -> NDArray[np.float32]:
        """A ground truth image, (H, W) metres, rectified where it is raw and the maps are not.

        Without both camera infos it is taken to show what the maps show, pixel by pixel.

        Raises:
            MessageError: where a camera info cannot be understood.
        """
        if self.info is None or self.ground_truth_info is None:
            return ground_truth_m
        rectifier = Rectifier(calibration_from_info(self.ground_truth_info), RECTIFY)
        if not (rectifier.rectifies and calibration_from_info(self.info).is_rectified):
            return ground_truth_m
        self._note(f"ground_truth/camera_info is {rectifier.describe()}")
        return rectifier.depth(ground_truth_m)

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
