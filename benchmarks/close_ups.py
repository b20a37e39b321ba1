# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Does anything tell a close-up, whose depth is far too large, without a measurement?

python -m benchmarks.close_ups CLOSE+CLOSE SOURCE ... --home SOURCE --learn CLOSE [--model indoor]

The first argument names the sources of close-ups, with "+" between them. For each candidate it
prints the mean in each source, and the probability that a close-up's is higher than that of a
frame of the other source (AUROC; .5 is a guess). A candidate is of use if it tells close-ups from
every other source, foreign cameras included, and not from frames like the training's alone.

`--home` are the training's frames, whose encoder maps the unfamiliarity of one map alone is fitted
to; `--learn` are other close-ups: the last candidate is the linear discriminant (Fisher 1936) of
all others between the two, with the share of frames on the close-ups' side.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from experiments.classification_metrics import auroc
from experiments.data_folders import spread_frames
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.familiarity import Familiarity
from uncertainty_depth.depth.networks.encoder import image_tensor, resize_image
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.familiarity import fit
from uncertainty_depth.sigma.online.depth_scale import frame_log_scale
from uncertainty_depth.stream.opening import open_source

ZOOM = 1.5
CANDIDATES = (
    "unfamiliarity",
    "mirror image disagrees",
    "middle, enlarged, disagrees",
    "mean sigma / depth",
    "predicted depth is near",
    "predicted depth is flat",
    "image lacks detail",
    "camera looks down",
    "camera is low over what is below",
)
TRUE = "depth too large (ln)"
HOME_FRAMES = 100
"""Frames of the training, and of other close-ups, that the discriminant learns from."""
TOGETHER = "all candidates together"
SHRINKAGE = 0.1
"""Weight of the unit covariance, in the discriminant of standardised candidates."""


class Layers:
    """What the layers say alone: unfamiliarity by each map, and the last layer's variance.

    The variance is that of a Laplace approximation (Daxberger et al. 2021) of the last layer, a
    linear regression of its inputs, up to a factor: phi (sum phi phi)^-1 phi.
    """

    def __init__(self, predictor: Predictor, home: list[Frame]) -> None:
        """Fit each to the training's frames."""
        self._size = predictor.model.network.input_size
        self._network = predictor.model.load(predictor.model.members[-1]).eval()
        last: Any = self._network.decoder.final
        last.register_forward_pre_hook(self._keep)
        features = []
        moments = []
        for frame in home:
            maps, inputs = self._features(frame)
            features.append(maps)
            moments.append(inputs.T @ inputs / len(inputs))
        precision = np.sum(moments, axis=0)
        self._of_map: list[Familiarity] = [
            fit(np.array(of_map)) for of_map in zip(*features, strict=True)
        ]
        ridge = 1e-6 * np.trace(precision) / len(precision) * np.eye(len(precision))
        self._covariance = np.linalg.inv(precision + ridge)
        self.names = [f"unfamiliarity, map {n + 1} alone" for n in range(len(self._of_map))]
        self.names.append("variance of the last layer (ln)")

    def scores(self, frame: Frame) -> list[float]:
        """Return a frame's values, in the order of the names."""
        features, inputs = self._features(frame)
        scores = [
            float(familiarity.scores(own[None])[0])
            for familiarity, own in zip(self._of_map, features, strict=True)
        ]
        variances = ((inputs @ self._covariance) * inputs).sum(axis=1)
        return [*scores, float(np.log(variances).mean())]

    @torch.inference_mode()
    def _features(self, frame: Frame) -> tuple[list[NDArray[np.float32]], NDArray[np.float64]]:
        """Return each map's means and deviations of channels, and the last layer's inputs."""
        picture = resize_image(frame.need_image(), self._size)[None]
        features = self._network.encode(image_tensor(picture, torch.device("cpu")))
        pixels = [values[0].flatten(1) for values in features]
        moments = [torch.cat([p.mean(1), p.std(1, correction=0)]).numpy() for p in pixels]
        self._network.decode(features, picture.shape[1:3])
        patches = functional.unfold(self._inputs, 3, padding=1, stride=3)[0].T.double()
        return moments, torch.cat([patches, torch.ones(len(patches), 1)], dim=1).numpy()

    def _keep(self, module: torch.nn.Module, inputs: tuple[torch.Tensor]) -> None:
        (self._inputs,) = inputs


def frames_of(notation: str, count: int) -> list[Frame]:
    """Return a source's frames, evenly spread; all of them for 0."""
    frames = spread_frames(open_source(notation, SourceConfig()), count)
    return [frame for frame in frames if isinstance(frame, Frame)]


def values_of(predictor: Predictor, layers: Layers, frame: Frame) -> list[float]:
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
        *_ground(made, frame.camera),
        *layers.scores(frame),
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


def _ground(made: DepthPrediction, camera: Camera | None) -> tuple[float, float]:
    """Return how steeply the camera looks at the plane of the lower half, and -height over it.

    The inverse depth of a plane is linear in the image: n (x, y, 1) = 1 / z if n X = 1. The angle
    between plane and optical axis is in radians, the height in metres.
    """
    height, width = made.depth_m.shape
    focal = 0.9 * np.sqrt(height * width)
    matrix = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]])
    if camera is not None:
        matrix = camera.intrinsics
    v, u = np.mgrid[height // 2 : height : 4, 0:width:4]
    rays = np.linalg.solve(matrix, np.stack([u, v, np.ones_like(u)]).reshape(3, -1)).T
    inverse = 1 / made.depth_m[height // 2 :: 4, ::4].ravel()
    is_known = np.isfinite(inverse)
    normal = np.linalg.lstsq(rays[is_known], inverse[is_known], rcond=None)[0]
    length = np.linalg.norm(normal)
    return float(np.arcsin(normal[2] / length)), -float(1 / length)


def discriminant(home: NDArray[np.float64], close: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean, deviation and weights (3, D) that tell rows of `close` from `home`'s."""
    mean = home.mean(axis=0)
    deviation = home.std(axis=0)
    both = [(rows - mean) / deviation for rows in (home, close)]
    within = sum(np.cov(rows.T) for rows in both) / 2
    within = (1 - SHRINKAGE) * within + SHRINKAGE * np.eye(len(mean))
    weights = np.linalg.solve(within, both[1].mean(axis=0) - both[0].mean(axis=0))
    return np.stack([mean, deviation, weights])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("close", help="sources of close-ups, with + between them")
    parser.add_argument("source", nargs="+")
    parser.add_argument("--home", required=True, help="source of the training")
    parser.add_argument("--learn", required=True, help="source of other close-ups")
    parser.add_argument("--model", default="indoor")
    parser.add_argument("--frames", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = PredictorConfig(method="deterministic", calibrated=False, device="cpu")
    predictor = Predictor(options.model, config)
    home = frames_of(options.home, 0)
    layers = Layers(predictor, home)
    every = math.ceil(len(home) / HOME_FRAMES)
    own = np.array([values_of(predictor, layers, frame) for frame in home[::every]])
    others = np.array(
        [values_of(predictor, layers, frame) for frame in frames_of(options.learn, HOME_FRAMES)]
    )
    mean, deviation, weights = discriminant(own[:, :-1], others[:, :-1])
    between = (own[:, :-1].mean(axis=0) + others[:, :-1].mean(axis=0)) / 2
    limit = (between - mean) / deviation @ weights
    tables = {}
    for notation in (*options.close.split("+"), *options.source):
        frames = frames_of(notation, options.frames)
        rows = np.array([values_of(predictor, layers, frame) for frame in frames])
        together = (rows[:, :-1] - mean) / deviation @ weights - limit
        tables[notation] = np.insert(rows, -1, together, axis=1)
    close = np.concatenate([tables.pop(notation) for notation in options.close.split("+")])
    header = ["", f"close-ups ({len(close)})", *(f"{n} ({len(t)})" for n, t in tables.items())]
    cells_of: list[list[str]] = []
    for place, name in enumerate((*CANDIDATES, *layers.names, TOGETHER, TRUE)):
        cells = [f"{np.nanmean(close[:, place]):.2f}"]
        if name == TOGETHER:
            cells[0] += f", {(close[:, place] > 0).mean():.0%}"
        for table in tables.values():
            cell = f"{np.nanmean(table[:, place]):.2f}"
            if name != TRUE:
                cell += f", {auroc(table[:, place], close[:, place]):.2f}"
            cells.append(
                cell + (f", {(table[:, place] > 0).mean():.0%}" if name == TOGETHER else "")
            )
        cells_of.append([name, *cells])
    print(markdown(header, cells_of))


if __name__ == "__main__":
    main()
