# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How does a network err: what do pixels near each other share of its error?

python -m benchmarks.error_prior nyu:nyuv2:train SOURCE ... [--model indoor] [--write]

Fits the prior of `uncertainty_depth.sigma.posterior` to random pixels of the first source: of the
frames that the model's training held out if it is what the model learned from, else of all. The
likelihood of their ln(true / predicted depth) under a Student-t process (Shah, Wilson and
Ghahramani 2014) is made as large as it gets. Then prints the mean log likelihood of a pixel there
and on the other sources, which nothing is fitted to, beside that by the stored prior, without
colour, and without predicted depth in the distances. `--write` stores it in the model's folder.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor

from experiments.data_folders import Subset, spread_frames
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.model_folder.writing import set_error_prior
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.frames import split_frames
from uncertainty_depth.sigma.error_prior import ErrorPrior, error_prior
from uncertainty_depth.stream.opening import open_source

PIXELS = 220
"""Pixels drawn at random from a frame."""
DRAWS = 2
OTHER_FRAMES = 40
"""Frames taken from a source that nothing is fitted to."""
NUGGET = 0.01
"""Standard deviation of the log depth of the ground truth."""
START = {
    "common": 0.6,
    "wide": 1.0,
    "wide_length": 0.5,
    "wide_depth_length": 0.9,
    "local": 0.9,
    "local_length": 0.15,
    "local_depth_length": 0.2,
    "colour_length": 30.0,
    "freedom": 1.0,
}
"""What the search starts from, see `ErrorPrior`; the freedom beyond `MIN_FREEDOM`."""
SMALLEST = 1e-6
MIN_FREEDOM = 2.0
"""Below, the fourth moment is infinite; a model whose sigma is the same in all frames while its
error is not has a likelihood that grows towards 0, where the other values are without limit."""
VARIANTS = {
    "all": (),
    "without colour": ("colour_length",),
    "without depth": ("wide_depth_length", "local_depth_length"),
}
"""Lengths that a variant does without."""


@dataclass(frozen=True)
class Pixels:
    """Random pixels of F frames.

    Attributes:
        error: (F, N) ln(true / predicted depth).
        sigma: (F, N) relative.
        mean_sigma: (F, 1, 1), of the whole frame.
        place, log_depth, colour: (F, N, N) squared differences; of image widths, of predicted
            depth, of CIE Lab.
    """

    error: Tensor
    sigma: Tensor
    mean_sigma: Tensor
    place: Tensor
    log_depth: Tensor
    colour: Tensor


def read(frames: Iterable[Frame | Skipped], predictor: Predictor, draws: int) -> Pixels:
    """Return random pixels of the frames with enough known depth."""
    rng = np.random.default_rng(0)
    rows = []
    for frame in frames:
        if isinstance(frame, Skipped):
            continue
        image = frame.need_image()
        truth = frame.need_ground_truth()
        prediction = predictor.predict(image, frame.stamp_ns, frame.camera)
        depth = prediction.depth_m
        known = np.flatnonzero(np.isfinite(truth) & (truth > 0) & (depth > 0))
        if len(known) < PIXELS:
            continue
        relative = prediction.sigma_m / depth
        lab = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2LAB).reshape(-1, 3)
        for _ in range(draws):
            at = rng.choice(known, PIXELS, replace=False)
            pixels = np.stack(np.divmod(at, depth.shape[1]), axis=1) / depth.shape[1]
            logs = np.log(depth.ravel()[at].astype(np.float64))
            error = np.log(truth.ravel()[at]) - logs
            row = (error, relative.ravel()[at], np.nanmean(relative), pixels, logs, lab[at])
            rows.append(row)
    stacked = [torch.tensor(np.array(column, np.float64)) for column in zip(*rows, strict=True)]
    error, sigma, mean_sigma, place, log_depth, colour = stacked
    squares = (_squares(place), _squares(log_depth[..., None]), _squares(colour))
    return Pixels(error, sigma, mean_sigma[:, None, None], *squares)


def _squares(values: Tensor) -> Tensor:
    return ((values[:, :, None] - values[:, None]) ** 2).sum(dim=-1)


def log_likelihood(values: Mapping[str, Tensor], pixels: Pixels) -> Tensor:
    """Return the mean log likelihood of a pixel, nats; a length that is missing is infinite."""
    squares = {"length": pixels.place, "depth_length": pixels.log_depth}

    def matern(part: str, also: Tensor | float) -> Tensor:
        total = also + 0.0 * pixels.place
        for name, square in squares.items():
            if f"{part}_{name}" in values:
                total = total + square / values[f"{part}_{name}"] ** 2
        distance = torch.sqrt(3 * total + 1e-12)
        return values[part] ** 2 * (1 + distance) * torch.exp(-distance)

    colour: Tensor | float = 0.0
    if "colour_length" in values:
        colour = pixels.colour / values["colour_length"] ** 2
    covariance = pixels.mean_sigma**2 * (values["common"] ** 2 + matern("wide", 0.0))
    products = pixels.sigma[:, :, None] * pixels.sigma[:, None]
    covariance = covariance + products * matern("local", colour)
    count = pixels.error.shape[1]
    covariance = covariance + NUGGET**2 * torch.eye(count, dtype=covariance.dtype)
    factor = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(factor, pixels.error[..., None], upper=False)
    squared = (white**2).sum(dim=(1, 2))
    log_determinant = 2 * torch.log(torch.diagonal(factor, dim1=1, dim2=2)).sum(dim=1)
    above_two = values["freedom"]
    freedom = above_two + 2
    result = torch.lgamma((freedom + count) / 2) - torch.lgamma(freedom / 2)
    result = result - count / 2 * torch.log(above_two * math.pi) - log_determinant / 2
    result = result - (freedom + count) / 2 * torch.log1p(squared / above_two)
    return result.mean() / count


def fitted(pixels: Pixels, without: tuple[str, ...]) -> dict[str, Tensor]:
    """Return the most likely values, without some of the lengths."""
    logs = {
        name: torch.tensor(math.log(value), dtype=torch.float64, requires_grad=True)
        for name, value in START.items()
        if name not in without
    }
    optimizer = torch.optim.LBFGS(
        list(logs.values()),
        lr=0.5,
        max_iter=60,
        tolerance_change=1e-5,
        line_search_fn="strong_wolfe",
    )

    def values() -> dict[str, Tensor]:
        result = {name: torch.exp(log) for name, log in logs.items()}
        return {**result, "freedom": MIN_FREEDOM + result["freedom"]}

    def loss() -> float:
        optimizer.zero_grad()
        result = -log_likelihood(values(), pixels)
        result.backward()
        return float(result.detach())

    optimizer.step(loss)
    return {name: value.detach() for name, value in values().items()}


def rounded(values: Mapping[str, Tensor]) -> dict[str, float]:
    """Return three digits of each value; of a part that vanishes a small one."""
    return {name: max(float(f"{float(value):.3g}"), SMALLEST) for name, value in values.items()}


def prior_of(predictor: Predictor, frames: Iterable[Frame | Skipped]) -> ErrorPrior:
    """Return the most likely prior of a model on these frames."""
    return error_prior(rounded(fitted(read(frames, predictor, DRAWS), ())))


def main() -> None:
    """Print the prior, and how likely each source is under it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fitted_to", metavar="SOURCE")
    parser.add_argument("others", nargs="*", metavar="SOURCE")
    parser.add_argument("--model", default="indoor")
    parser.add_argument("--write", action="store_true", help="store the prior in the model")
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig(device="cpu", samples=8))
    config = SourceConfig()
    source = open_source(arguments.fitted_to, config)
    training = predictor.model.training
    frames: Iterable[Frame | Skipped] = source
    if training["source"] == source.name:
        share = float(training["options"]["validation_fraction"])
        _, held_out = split_frames(len(source), share, int(training["seed"]))
        frames = Subset(source, held_out, "held out")
    found = {"fitted to": read(frames, predictor, DRAWS)}
    for notation in arguments.others:
        frames = spread_frames(open_source(notation, config), OTHER_FRAMES)
        found[notation] = read(frames, predictor, 1)
    present = to_mapping(predictor.model.error_prior)
    ways = {"as stored": {name: torch.tensor(value).double() for name, value in present.items()}}
    ways |= {title: fitted(found["fitted to"], without) for title, without in VARIANTS.items()}
    best = rounded(ways["all"])
    print(best)
    rows = [
        [title, *(f"{float(log_likelihood(values, pixels)):.3f}" for pixels in found.values())]
        for title, values in ways.items()
    ]
    print(markdown(["", *found], rows))
    if arguments.write:
        set_error_prior(predictor.model.path, error_prior(best))


if __name__ == "__main__":
    main()
