# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure what the gate keeps and how often clearing would have gone through a surface.

python -m benchmarks.acting_rates
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np

from uncertainty_depth.core.config import GatingConfig, PredictorConfig, SourceConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.gating import confident_pixels, lower_bound, upper_bound
from uncertainty_depth.stream.opening import open_source

SIGMAS = (0.0, 1.0, 2.0, 3.0)


def main() -> None:
    """Print both tables, over all pixels with a LiDAR point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", default="synthetic:worlds=4,frames=5,seed=900")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--every", type=int, default=1, help="take every so many frames")
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, PredictorConfig())
    pixels = []
    source = open_source(arguments.source, SourceConfig())
    for frame in islice(source, 0, None, arguments.every):
        if isinstance(frame, Frame):
            maps = predictor.predict(frame.image, frame.stamp_ns, frame.camera)
            known = np.isfinite(frame.ground_truth_m) & np.isfinite(maps.depth_m)
            pixels.append([values[known] for values in (*maps_of(maps), frame.ground_truth_m)])
    depth, sigma, truth = np.concatenate(pixels, axis=1)
    print_gate(depth, sigma, truth)
    print_clearing(depth, sigma, truth)
    half_widths = predictor.half_widths
    half_width = half_widths.at(GatingConfig().coverage)
    lower = lower_bound(depth, sigma, half_width)
    upper = upper_bound(depth, sigma, half_width)
    covered = ((lower <= truth) & (truth <= upper)).mean()
    print(f"\ninterval at {GatingConfig().coverage:.0%} ({half_widths.origin}): {covered:.1%}")


def maps_of(prediction) -> tuple:
    """Return depth and sigma."""
    return prediction.depth_m, prediction.sigma_m


def print_gate(depth, sigma, truth) -> None:
    """Print the errors on both sides of the gate with its default limits."""
    trusted = confident_pixels(depth, sigma, GatingConfig())
    error = np.abs(depth - truth)
    print("| pixels | fraction | mean error | 95 % of the errors are below |")
    print("| --- | --- | --- | --- |")
    for name, part in (("trusted", trusted), ("not trusted", ~trusted)):
        quantile = np.quantile(error[part], 0.95)
        print(f"| {name} | {part.mean():.0%} | {error[part].mean():.2f} m | {quantile:.2f} m |")


def print_clearing(depth, sigma, truth) -> None:
    """Print how often the end of the cleared ray lies behind the surface, and how short it is.

    Beside it stands the depth times the factor that clears as much, at the median.
    """
    print(
        "\n| `clearing_sigmas` | rays cleared through a surface | cleared of the true depth |"
        " depth times | rays cleared through a surface |"
    )
    print("| --- | --- | --- | --- | --- |")
    for sigmas in SIGMAS:
        bound = lower_bound(depth, sigma, sigmas)
        fraction = np.median(bound / truth)
        factor = fraction / np.median(depth / truth)
        through = (factor * depth > truth).mean()
        row = f"| {sigmas:g} | {(bound > truth).mean():.1%} | {fraction:.0%} |"
        print(f"{row} {factor:.2f} | {through:.1%} |")


if __name__ == "__main__":
    main()
