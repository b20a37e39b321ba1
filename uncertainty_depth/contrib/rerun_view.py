# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Log frames and their scores to the viewer rerun (https://rerun.io), or to a file for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.nodes import ColorConfig, GatingConfig
from uncertainty_depth.core.errors import ConfigError, missing
from uncertainty_depth.core.output import OutputFile
from uncertainty_depth.core.records import DepthPrediction, Frame, sigma_of
from uncertainty_depth.metrics.calibration import of_distribution, without_distribution
from uncertainty_depth.report.images import (
    DEPTH_COLORS,
    SIGMA_COLORS,
    color_scales,
    colorize,
    thicken,
)
from uncertainty_depth.sigma.gating import SigmaProducts

COVERAGE = {"coverage_68": 0.68, "coverage_95": 0.95}
"""Scores that are drawn beside what they should be."""
SCORES = ("abs_rel", "rmse", "ause.rmse", "auce", *COVERAGE)
JPEG_QUALITY = 85
APPLICATION = "uncertainty_depth"
"""Near the beginning of a recording's file."""


def recording_file(path: Path) -> OutputFile:
    """Return a recording's file, or raise `ConfigError` for another name."""
    if path.suffix.lower() != ".rrd":
        raise ConfigError(f"save is {path}; expected a file that ends in .rrd")
    return OutputFile(path, APPLICATION)


class Recorder:
    """Writes frames into a recording, on the timelines `frame` and `stamp`."""

    def __init__(self, colors: ColorConfig, save: Path | None = None) -> None:
        """Open the file `save`, or without one the viewer."""
        try:
            import rerun
            import rerun.blueprint as views
        except ImportError as error:
            raise ConfigError(missing("rerun")) from error
        self._rerun: Any = rerun
        self._colors = colors
        self._frames = 0
        self._stream = rerun.RecordingStream(APPLICATION)
        maps = [
            views.Spatial2DView(origin=f"maps/{name}", name=name)
            for name in ("image", "depth", "sigma", "error")
        ]
        curves = [views.TimeSeriesView(origin=name, name=name) for name in ("coverage", "scores")]
        legend = views.Spatial2DView(origin="legend", name="legend")
        below = views.Horizontal(
            views.Spatial3DView(origin="world", name="trusted points"),
            views.Vertical(legend, *curves, row_shares=[2, 3, 3]),
        )
        layout = views.Blueprint(
            views.Vertical(views.Horizontal(*maps), below, row_shares=[2, 3]), collapse_panels=True
        )
        if save is None:
            self._stream.spawn(default_blueprint=layout)
        else:
            self._stream.save(save, default_blueprint=layout)
        self._stream.log("world", rerun.ViewCoordinates.RDF, static=True)
        scales = color_scales(colors.color_max_depth, colors.color_max_sigma)
        self._stream.log("legend", rerun.Image(scales), static=True)

    def add(self, frame: Frame, scores: Mapping[str, float]) -> None:
        """Log what is known of a frame, and its finite scores."""
        self._stream.set_time("frame", sequence=self._frames)
        self._stream.set_time("stamp", timestamp=np.datetime64(frame.stamp_ns, "ns"))
        self._frames += 1
        if frame.image is not None and frame.is_registered:
            image = self._rerun.Image(frame.image).compress(jpeg_quality=JPEG_QUALITY)
            self._stream.log("maps/image", image)
        self._add_maps(frame)
        self._add_points(frame)
        for name, value in scores.items():
            nominal = COVERAGE.get(without_distribution(name))
            folder = "scores" if nominal is None else "coverage"
            self._add_scalar(f"{folder}/{name.replace('.', '_')}", value)
            if nominal is not None:
                self._add_scalar(f"coverage/nominal_{100 * nominal:.0f}", nominal)

    def close(self) -> None:
        """Write what is still in memory."""
        self._stream.flush()
        self._stream.disconnect()

    def _add_scalar(self, entity: str, value: float) -> None:
        if np.isfinite(value):
            self._stream.log(entity, self._rerun.Scalars(float(value)))

    def _add_maps(self, frame: Frame) -> None:
        prediction = frame.need_depth()
        sigma_m = sigma_of(prediction)
        max_sigma = self._colors.color_max_sigma
        max_depth = self._colors.color_max_depth
        self._add_map("maps/depth", prediction.depth_m, max_depth, DEPTH_COLORS)
        if sigma_m is not None:
            self._add_map("maps/sigma", sigma_m, max_sigma, SIGMA_COLORS)
        if frame.ground_truth_m is not None:
            error_m = thicken(np.abs(prediction.depth_m - frame.ground_truth_m))
            self._add_map("maps/error", error_m, max_sigma, SIGMA_COLORS)

    def _add_map(
        self, entity: str, values: NDArray[np.floating], maximum: float, colors: str
    ) -> None:
        """Log a map in our colours: rerun's own draw an unknown sigma as black, so as certain."""
        self._stream.log(entity, self._rerun.Image(colorize(values, maximum, colors)))

    def _add_points(self, frame: Frame) -> None:
        prediction = frame.need_depth()
        if not isinstance(prediction, DepthPrediction):
            return
        image = frame.image if frame.is_registered else None
        products = SigmaProducts(
            prediction.depth_m, prediction.sigma_m, GatingConfig(), 1.0, frame.camera, image
        )
        if frame.camera is None or not products.has_points:
            return
        points = products.confident_points
        positions = np.stack([points[axis] for axis in "xyz"], axis=-1)
        colors = None
        if image is not None:
            packed = np.ascontiguousarray(points["rgb"]).view(np.uint32)
            colors = np.stack([packed >> 16, packed >> 8, packed], axis=-1).astype(np.uint8)
        self._stream.log("world/trusted_points", self._rerun.Points3D(positions, colors=colors))
        pinhole = self._rerun.Pinhole(
            image_from_camera=frame.camera.intrinsics,
            resolution=(frame.camera.width, frame.camera.height),
        )
        self._stream.log("world/camera", pinhole)


def scores_of(metrics: Mapping[str, float], distribution: str) -> dict[str, float]:
    """Return the scores to show from a frame's metrics, by its error's distribution."""
    scores = {}
    for name in SCORES:
        places = (
            of_distribution(f"uncertainty.{name}", distribution),
            f"uncertainty.{name}",
            f"depth.{name}",
        )
        place = next((place for place in places if place in metrics), None)
        if place is not None:
            scores[place.split(".", 1)[1]] = metrics[place]
    return scores
