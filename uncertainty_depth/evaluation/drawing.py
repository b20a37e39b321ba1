# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Draw all images of a report from an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uncertainty_depth.evaluation import plots
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.examples import Example
from uncertainty_depth.evaluation.frame_plots import frame_plot
from uncertainty_depth.evaluation.overlay import lidar_overlay
from uncertainty_depth.evaluation.overview_plots import (
    positions_plot,
    scale_plot,
    timeline_plot,
)
from uncertainty_depth.evaluation.page import FrameImage, Images
from uncertainty_depth.figure_bytes import encoded, encoded_pixels

PLOT_DPI = 110
FRAME_DPI = 160
SIZED_PLOTS = ("reliability", "timeline", "positions")
"""Plots that compare the size of sigma with the errors."""


def draw(evaluation: Evaluation, law: str) -> Images:
    """Return the images of a report; none if no frame was scored.

    Args:
        evaluation: of the frames.
        law: distribution of the error, "gaussian" or "laplace", for the intervals of sigma.
    """
    if not evaluation.evaluated:
        return Images({})
    figures = plots.figures(evaluation.metrics.curves(), law)
    figures["timeline"] = timeline_plot(evaluation.metrics, law)
    figures["positions"] = positions_plot(evaluation.positions, law)
    if evaluation.without_size:
        figures = {name: plot for name, plot in figures.items() if name not in SIZED_PLOTS}
    scales = evaluation.table.rows().column("scale")
    if len(scales) > 1 and not np.isnan(scales).all():
        figures["scale"] = scale_plot(scales)
    images = {name: encoded(figure, PLOT_DPI) for name, figure in figures.items()}
    worst = evaluation.examples.worst()
    typical = evaluation.examples.typical()
    return Images(images, _overlay([*typical, *worst]), _frames(worst), _frames(typical))


def _overlay(examples: Sequence[Example]) -> bytes | None:
    """Return the JPEG of the first example with a registered image; None without one."""
    for example in examples:
        if example.image is not None and example.is_registered:
            overlay = lidar_overlay(example.image, example.ground_truth_m)
            return encoded_pixels(overlay, "jpeg")
    return None


def _frames(examples: Sequence[Example]) -> list[FrameImage]:
    return [
        FrameImage(example.name, example.metrics, encoded(frame_plot(example), FRAME_DPI, "jpeg"))
        for example in examples
    ]
