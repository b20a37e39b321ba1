# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Log frames and their scores to rerun: to a file, or to its viewer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.gating import SigmaProducts
from uncertainty_depth.records import Frame
from uncertainty_depth.report.images import thicken
from uncertainty_depth.viewing import layout
from uncertainty_depth.viewing.config import ViewConfig

NOMINAL = {"coverage_68": 0.68, "coverage_95": 0.95}
SCORES = ("abs_rel", "rmse", "ause.rmse", "auce")
JPEG_QUALITY = 85
SIGMA_COLORMAP = "Magma"
DEPTH_COLORMAP = "Viridis"


class Recorder:
    """Writes frames into a recording, on the timelines `frame` and `stamp`.

    Raises:
        ConfigError: rerun is not installed.
    """

    def __init__(self, config: ViewConfig, save: Path | None = None) -> None:
        """Open the file `save`, or without one the viewer."""
        self._rerun = layout.rerun()
        self._config = config
        self._frames = 0
        self._stream = self._rerun.RecordingStream(layout.APPLICATION)
        blueprint = layout.blueprint(config)
        if save is None:
            self._stream.spawn(default_blueprint=blueprint)
        else:
            self._stream.save(save, default_blueprint=blueprint)
        coordinates = self._rerun.ViewCoordinates.RDF
        self._stream.log(layout.WORLD, coordinates, static=True)

    def note(self, text: str) -> None:
        """Show a text in Markdown, for the whole recording."""
        document = self._rerun.TextDocument(text, media_type="text/markdown")
        self._stream.log(layout.NOTES, document, static=True)

    def add(self, frame: Frame, scores: Mapping[str, float] | None = None) -> None:
        """Log what is known of a frame, and its scores by names of `SCORES` and `NOMINAL`."""
        self._stream.set_time(layout.FRAME_TIMELINE, sequence=self._frames)
        stamp = np.datetime64(frame.stamp_ns, "ns")
        self._stream.set_time(layout.STAMP_TIMELINE, timestamp=stamp)
        self._frames += 1
        if frame.image is not None and frame.is_registered:
            image = self._rerun.Image(frame.image).compress(jpeg_quality=JPEG_QUALITY)
            self._stream.log(layout.IMAGE, image)
        self._add_maps(frame)
        self._add_points(frame)
        self.add_scores(scores or {})

    def add_scores(self, scores: Mapping[str, float]) -> None:
        """Log scores at the time of the last frame; what is not finite is left out."""
        for name, value in scores.items():
            if not np.isfinite(value):
                continue
            if name in NOMINAL:
                self._add_scalar(f"{layout.COVERAGE}/{name}", value)
                self._add_scalar(f"{layout.COVERAGE}/nominal_{name[-2:]}", NOMINAL[name])
            elif name in SCORES:
                self._add_scalar(f"{layout.SCORES}/{name.replace('.', '_')}", value)

    def add_image(self, entity: str, image: NDArray[np.uint8]) -> None:
        """Log an image made elsewhere, (H, W, 3) uint8 RGB, at the time of the last frame."""
        self._stream.log(entity, self._rerun.Image(image))

    def close(self) -> None:
        """Write what is still in memory."""
        self._stream.flush()
        self._stream.disconnect()

    def _add_scalar(self, entity: str, value: float) -> None:
        self._stream.log(entity, self._rerun.Scalars(float(value)))

    def _add_maps(self, frame: Frame) -> None:
        if frame.prediction is None:
            return
        depth_m = frame.prediction.depth_m
        max_sigma = self._config.color_max_sigma
        max_depth = self._config.color_max_depth
        self._add_map(layout.DEPTH, depth_m, max_depth, DEPTH_COLORMAP)
        self._add_map(layout.SIGMA, frame.prediction.sigma_m, max_sigma, SIGMA_COLORMAP)
        if frame.ground_truth_m is not None:
            error_m = thicken(np.abs(depth_m - frame.ground_truth_m)).astype(np.float32)
            self._add_map(layout.ERROR, error_m, max_sigma, SIGMA_COLORMAP)

    def _add_map(
        self, entity: str, values: NDArray[np.float32], maximum: float, colormap: str
    ) -> None:
        image = self._rerun.DepthImage(
            values, meter=1.0, depth_range=(0.0, maximum), colormap=colormap
        )
        self._stream.log(entity, image)

    def _add_points(self, frame: Frame) -> None:
        prediction = frame.prediction
        if prediction is None:
            return
        image = frame.image if frame.is_registered else None
        products = SigmaProducts(
            prediction.depth_m, prediction.sigma_m, self._config, 1.0, frame.camera, image
        )
        if frame.camera is None or not products.has_points:
            return
        points = products.confident_points
        positions = np.stack([points[axis] for axis in "xyz"], axis=-1)
        colors: Any = None
        if image is not None:
            packed = np.ascontiguousarray(points["rgb"]).view(np.uint32)
            colors = np.stack([packed >> 16, packed >> 8, packed], axis=-1).astype(np.uint8)
        self._stream.log(layout.POINTS, self._rerun.Points3D(positions, colors=colors))
        pinhole = self._rerun.Pinhole(
            image_from_camera=frame.camera.intrinsics,
            resolution=(frame.camera.width, frame.camera.height),
        )
        self._stream.log(layout.CAMERA, pinhole)
