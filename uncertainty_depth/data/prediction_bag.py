"""Predictions as a bag, to be looked at in RViz: the images, the maps and what they were scored against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uncertainty_depth.data.bag_writer import BagWriter
from uncertainty_depth.evaluate import Sink
from uncertainty_depth.records import DepthPrediction, Frame

FRAME_ID = "camera"


@contextmanager
def prediction_sink(path: Path) -> Iterator[Sink]:
    """A sink for `evaluate.run` that writes each frame under the depth node's topic names; the bag is closed on leaving."""
    with BagWriter(path) as bag:

        def write(frame: Frame, prediction: DepthPrediction) -> None:
            bag.image("image", frame.stamp_ns, FRAME_ID, frame.image)
            bag.image("depth/image_rect", frame.stamp_ns, FRAME_ID, prediction.depth_m)
            bag.image("uncertainty/image_rect", frame.stamp_ns, FRAME_ID, prediction.sigma_m)
            bag.image("ground_truth/image", frame.stamp_ns, FRAME_ID, frame.ground_truth_m)
            if frame.camera is not None:
                for topic in ("camera_info", "depth/camera_info", "uncertainty/camera_info"):
                    bag.camera_info(topic, frame.stamp_ns, FRAME_ID, frame.camera)

        yield write
