# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Does anything tell a close-up, whose depth is far too large, without a measurement?

python -m benchmarks.close_ups CLOSE+CLOSE SOURCE ... [--model indoor] [--frames 60]

The first argument names the sources of close-ups, with "+" between them. For each candidate it
prints the mean in each source, and the probability that a close-up's is higher than that of a
frame of the other source (AUROC; .5 is a guess). A candidate is of use if it tells close-ups from
every other source, foreign cameras included, and not from frames like the training's alone.
"""

from __future__ import annotations

import argparse

import cv2
import numpy as np
from numpy.typing import NDArray

from experiments.classification_metrics import auroc
from experiments.data_folders import spread_frames
from experiments.tables import markdown
from uncertainty_depth.core.config import PredictorConfig, SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.online.depth_scale import frame_log_scale
from uncertainty_depth.stream.opening import open_source

ZOOM = 1.5
SIGMA_NAMES = (
    "unfamiliarity",
    "mirror image disagrees",
    "middle, enlarged, disagrees",
    "mean sigma / depth",
    "predicted depth is near",
    "predicted depth is flat",
    "image lacks detail",
)
TRUE = "depth too large (ln)"


def values_of(predictor: Predictor, frame: Frame) -> list[float]:
    """Return the candidates of a frame, and the logarithm by which its depth is too large."""
    image = frame.need_image()
    made = predictor.predict(image, camera=frame.camera)
    depth_m = made.depth_m
    flipped = predictor.predict(np.ascontiguousarray(image[:, ::-1]), camera=frame.camera)
    gap = np.log(depth_m) - np.log(flipped.depth_m[:, ::-1])
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float64)
    scale = frame_log_scale(depth_m, frame.need_ground_truth())
    return [
        made.unfamiliarity if made.unfamiliarity is not None else np.nan,
        float(np.nanmean(np.abs(gap))),
        _enlarged(predictor, frame, depth_m),
        float(np.nanmean(made.sigma_m / depth_m)),
        -float(np.nanmedian(depth_m)),
        -float(np.nanstd(np.log(depth_m))),
        -float(np.abs(cv2.Laplacian(gray, cv2.CV_64F)).mean()),
        np.nan if scale is None else -scale,
    ]


def _enlarged(predictor: Predictor, frame: Frame, depth_m: NDArray[np.floating]) -> float:
    """Return |ln| of the depth of the middle, seen through a longer lens, over its depth."""
    image = frame.need_image()
    height, width = image.shape[:2]
    rows, columns = round(height / ZOOM), round(width / ZOOM)
    top, left = (height - rows) // 2, (width - columns) // 2
    middle = image[top : top + rows, left : left + columns]
    enlarged = cv2.resize(middle, (width, height), interpolation=cv2.INTER_LINEAR)
    camera = frame.camera
    if camera is not None:
        matrix = camera.intrinsics.copy()
        matrix[:2] *= ZOOM
        camera = Camera(width, height, matrix)
    other = predictor.predict(enlarged, camera=camera).depth_m
    expected = depth_m[top : top + rows, left : left + columns]
    return float(abs(np.log(np.nanmedian(other) / np.nanmedian(expected))))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("close", help="sources of close-ups, with + between them")
    parser.add_argument("source", nargs="+")
    parser.add_argument("--model", default="indoor")
    parser.add_argument("--frames", type=int, default=60)
    options = parser.parse_args()
    config = PredictorConfig(method="deterministic", calibrated=False, device="cpu")
    predictor = Predictor(options.model, config)
    tables = {}
    for notation in (*options.close.split("+"), *options.source):
        frames = spread_frames(open_source(notation, SourceConfig()), options.frames)
        rows = [values_of(predictor, each) for each in frames if isinstance(each, Frame)]
        tables[notation] = np.array(rows)
    close = np.concatenate([tables.pop(notation) for notation in options.close.split("+")])
    header = ["", f"close-ups ({len(close)})", *(f"{n} ({len(t)})" for n, t in tables.items())]
    cells_of: list[list[str]] = []
    for place, name in enumerate((*SIGMA_NAMES, TRUE)):
        cells = [f"{np.nanmean(close[:, place]):.2f}"]
        for table in tables.values():
            cell = f"{np.nanmean(table[:, place]):.2f}"
            if name != TRUE:
                cell += f", {auroc(table[:, place], close[:, place]):.2f}"
            cells.append(cell)
        cells_of.append([name, *cells])
    print(markdown(header, cells_of))


if __name__ == "__main__":
    main()
