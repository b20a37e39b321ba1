# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Does a network's encoder know how far the scale of its depth is off, frame by frame?

python -m benchmarks.frame_scale FITTED_ON SOURCE ... --output DIR [--model indoor]

The head of a two-level model is fitted in closed form to the first source, whose frames the
network has not learned from: ridge regressions of ln(true / predicted scale) of a frame, and of
the logarithm of its square, on the pooled features of the encoder. Ten blocks of frames choose the
strengths. On every source the standard deviation s_f that it claims for a frame's scale is scored,
as it is and shuffled over the frames; beside it one constant for all frames, and one constant
times the frame's mean sigma / depth, for which no head is needed.

With n independent pixels of variance D_i the likelihood of a frame under Sigma = D + s_f^2 11^T
depends on s_f through N(b, s_f^2 + 1 / sum(1 / D_i)) of the frame's mean b alone (Sherman and
Morrison 1950), and the second term vanishes for thousands of pixels: the likelihood of b is what
is scored.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from experiments.data_folders import spread_frames
from experiments.robot_worlds import Floats
from experiments.runner import resume
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.model_location import NAMES
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.familiarity import pooled
from uncertainty_depth.depth.networks.encoder import image_tensor, resize_image
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.online.depth_scale import frame_log_scale
from uncertainty_depth.stream.opening import open_source

BLOCKS = 10
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
LEAST = 1e-4
"""Added to a squared log scale before its logarithm."""
LIMIT = 4.0
"""Standard deviations of the fitted frames' beyond which a feature is cut off."""
Regression = Callable[[Floats], Floats]


def read_frames(notation: str, frames: int, model: str) -> list[list[float]]:
    """Return a row for each frame: log scale, ln of its mean sigma / depth, encoder features."""
    predictor = Predictor(model, PredictorConfig(device="cpu", samples=4))
    encoder = predictor.model.load(predictor.model.members[-1]).encoder.eval()
    rows = []
    for frame in spread_frames(open_source(notation, SourceConfig()), frames):
        if not isinstance(frame, Frame):
            continue
        image = frame.need_image()
        prediction = predictor.predict(image, frame.stamp_ns, frame.camera)
        log_scale = frame_log_scale(prediction.depth_m, frame.need_ground_truth())
        resized = resize_image(image, predictor.model.network.input_size)[None]
        with torch.inference_mode():
            features = pooled(encoder(image_tensor(resized, predictor.device)))[0].tolist()
        if log_scale is not None:
            relative = float(np.nanmean(prediction.sigma_m / prediction.depth_m))
            rows.append([log_scale, math.log(relative), *features])
    return rows


def ridge(features: Floats, targets: Floats, strength: float) -> Regression:
    """Return the regression that is fitted to (N, D) features and (N,) targets."""
    mean = features.mean(axis=0)
    deviation = features.std(axis=0) + 1e-6
    scaled = (features - mean) / deviation
    products = scaled @ scaled.T + strength * scaled.shape[1] * np.eye(len(targets))
    weights = scaled.T @ np.linalg.solve(products, targets - targets.mean())

    def regress(others: Floats) -> Floats:
        values: Floats = np.clip((others - mean) / deviation, -LIMIT, LIMIT) @ weights
        return values + targets.mean()

    return regress


def across(features: Floats, targets: Floats, strength: float) -> Floats:
    """Return the regression's values, those of each block by the other blocks."""
    block_of = np.arange(len(targets)) * BLOCKS // len(targets)
    values = np.zeros_like(targets)
    for block in range(BLOCKS):
        own = block_of == block
        values[own] = ridge(features[~own], targets[~own], strength)(features[own])
    return values


def size_of(error: Floats, sigma: Floats) -> float:
    """Return the most likely factor on sigma."""
    return float(np.sqrt(np.mean((error / sigma) ** 2)))


def nll(error: Floats, sigma: Floats) -> float:
    """Return the mean Gaussian negative log likelihood, nats."""
    return float(np.mean(0.5 * np.log(2 * np.pi * sigma**2) + 0.5 * (error / sigma) ** 2))


def rows_of(title: str, log_scale: Floats, claims: Mapping[str, Floats]) -> Iterator[list[str]]:
    """Yield a row for each way to claim the deviation of a frame's scale."""
    for name, sigma in claims.items():
        rng = np.random.default_rng(0)
        shuffled = np.mean([nll(log_scale, rng.permutation(sigma)) for _ in range(200)])
        covered = np.mean(np.abs(log_scale) <= 1.96 * sigma)
        scores = f"{nll(log_scale, sigma):.3f}", f"{shuffled:.3f}", f"{covered:.1%}"
        yield [title, str(len(log_scale)), f"{np.sqrt(np.mean(log_scale**2)):.3f}", name, *scores]


def main() -> None:
    """Print what the head knows of the scale itself, and the table of s_f."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", choices=NAMES, default="indoor")
    parser.add_argument("--frames", type=int, default=250, help="of each source, at most")
    arguments = parser.parse_args()
    numbers = [str(number) for number in range(len(arguments.sources))]
    found = resume(
        arguments.output,
        numbers,
        lambda name: {
            "source": arguments.sources[int(name)],
            "model": arguments.model,
            "frames": arguments.frames,
        },
        lambda name: read_frames(arguments.sources[int(name)], arguments.frames, arguments.model),
        "sources",
    )
    tables = [np.array(rows) for rows in found]
    log_scale = tables[0][:, 0]
    features = tables[0][:, 1:]
    variance = float(log_scale.var())
    means = [across(features, log_scale, strength) for strength in STRENGTHS]
    explained = max(1 - float(np.mean((log_scale - mean) ** 2)) / variance for mean in means)
    print(f"share of the variance of the log scale that is predicted: {explained:.3f}")

    log_square = np.log(log_scale**2 + LEAST)
    sized = []
    for strength in STRENGTHS:
        sigma = np.exp(across(features, log_square, strength) / 2)
        size = size_of(log_scale, sigma)
        sized.append((nll(log_scale, size * sigma), strength, size, size * sigma))
    _, strength, size, in_blocks = min(sized, key=lambda entry: entry[0])
    regress = ridge(features, log_square, strength)
    constant = size_of(log_scale, np.ones_like(log_scale))
    factor = size_of(log_scale, np.exp(features[:, 0]))
    rows: list[list[str]] = []
    for number, (source, values) in enumerate(zip(arguments.sources, tables, strict=True)):
        claims = {
            f"{constant:.3f}": np.full(len(values), constant),
            "the head": size * np.exp(regress(values[:, 1:]) / 2) if number else in_blocks,
            f"{factor:.2f} sigma / depth": factor * np.exp(values[:, 1]),
        }
        rows += rows_of(source, values[:, 0], claims)
    header = ["source", "frames", "rms of ln scale", "s_f", "NLL", "shuffled", "95 % holds"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
