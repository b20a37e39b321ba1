# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The entity paths of a rerun recording, and the layout that shows them."""

from __future__ import annotations

from typing import Any

from uncertainty_depth.config import ColorConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.extras import missing

APPLICATION = "uncertainty_depth"
IMAGE = "maps/image"
DEPTH = "maps/depth"
SIGMA = "maps/sigma"
ERROR = "maps/error"
WORLD = "world"
CAMERA = "world/camera"
POINTS = "world/trusted_points"
COVERAGE = "coverage"
SCORES = "scores"
NOTES = "notes"
FRAME_TIMELINE = "frame"
STAMP_TIMELINE = "stamp"


def rerun() -> Any:
    """Return the module rerun.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import rerun as module
        import rerun.blueprint
    except ImportError as error:
        raise ConfigError(missing("rerun")) from error
    return module


def blueprint(colors: ColorConfig) -> Any:
    """Return the layout: four maps above, below them the points, coverage, scores and notes."""
    views = rerun().blueprint
    depth = f"depth, 0 to {colors.color_max_depth:g} m"
    sigma = f"sigma, 0 to {colors.color_max_sigma:g} m"
    error = f"error, 0 to {colors.color_max_sigma:g} m"
    maps = views.Horizontal(
        views.Spatial2DView(origin=IMAGE, name="image"),
        views.Spatial2DView(origin=DEPTH, name=depth),
        views.Spatial2DView(origin=SIGMA, name=sigma),
        views.Spatial2DView(origin=ERROR, name=error),
    )
    curves = views.Vertical(
        views.TimeSeriesView(origin=COVERAGE, name="coverage: fraction of the errors"),
        views.TimeSeriesView(origin=SCORES, name="scores of each frame"),
    )
    below = views.Horizontal(
        views.Spatial3DView(origin=WORLD, name="trusted points"),
        curves,
        views.TextDocumentView(origin=NOTES, name="what is shown"),
        column_shares=[3, 3, 1],
    )
    return views.Blueprint(views.Vertical(maps, below, row_shares=[2, 3]), collapse_panels=True)
