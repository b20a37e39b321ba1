# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Speed of the metrics against their peers, and a billion pixels at constant memory.

Each row times one of our functions and a peer on the same pixels by turns, on one core, and keeps
the shortest CPU time of each. Peers are test extras; rows of those that are not installed are left
out. The peers take all pixels at once; the accumulator takes them as they come, in frames of at
most 320x240.

`python -m uncertainty_depth.bench.metrics [--pixels N ...] [--billion [N]]`
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.metrics import (
    OnlineMetrics,
    auce,
    brier,
    ece,
    nll,
    sparsification,
    spearman,
)

SIZES = (20_000, 1_000_000, 10_000_000)
FRAME = 320 * 240
Pixels = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


class Row(NamedTuple):
    """One of our functions and its peer: CPU milliseconds, and how many times faster ours is."""

    pixels: int
    what: str
    ours_ms: float
    peer: str
    peer_ms: float

    @property
    def ratio(self) -> float:
        """Peer's time over ours."""
        return self.peer_ms / self.ours_ms


def draw(number: int, seed: int) -> Pixels:
    """Return depth, sigma and ground truth as a network in float32 gives them."""
    rng = np.random.default_rng(seed)
    first, second, third = rng.standard_normal((3, number), dtype=np.float32)
    ground_truth = np.clip(8 * np.exp(0.7 * first), 0.5, 79)
    scale = 0.08 * ground_truth * np.exp(0.4 * second)
    depth = np.maximum(ground_truth + scale * third, 0.05)
    return depth, 0.8 * scale * np.exp(0.3 * np.roll(first, 1)), ground_truth


def run(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Time everything at each number of pixels; minutes at 1e7."""
    torch.set_num_threads(1)
    rows = []
    for pixels in tqdm(sizes, desc="metrics", unit="size"):
        singles = [_row(pixels, *case) for case in _cases(draw(pixels, seed=0))]
        together = sum(row.peer_ms for row in singles if row.peer in TOGETHER)
        rows += [
            *singles,
            Row(
                pixels,
                "all online metrics",
                _online(pixels),
                "the peers marked * together",
                together,
            ),
        ]
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| pixels | ours | ms | peer | ms | ratio |",
        "| ---: | --- | ---: | --- | ---: | ---: |",
    ]
    for row in rows:
        ours = f"{row.what} | {row.ours_ms:.4g}"
        peer = f"{row.peer} | {row.peer_ms:.4g}"
        lines.append(f"| {row.pixels:,} | {ours} | {peer} | {row.ratio:.3g} |")
    return "\n".join(lines)


AUSE = "torch-uncertainty AUSE *"
LOOP = "percentile and mask per step *"
CALIBRATION = "uncertainty-toolbox area *"
LIKELIHOOD = "uncertainty-toolbox NLL *"
TOGETHER = (AUSE, LOOP, CALIBRATION, LIKELIHOOD)


def _cases(pixels: Pixels) -> Iterator[tuple[str, Callable[[], Any], str, Callable[[], Any]]]:
    """Yield the name and the call of ours and of the peer."""
    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    outlier = (np.abs(depth - truth) > 0.1 * truth).astype(np.int64)
    peer = torch_uncertainty_ause()
    if peer is not None:
        yield (
            "AUSE, ilg",
            lambda: sparsification(*pixels, "mae", "ilg").ause,
            AUSE,
            lambda: _peer_ause(peer, sigma, error),
        )
    yield (
        "AUSE and AURG, poggi, three errors",
        lambda: [sparsification(*pixels, name) for name in REDUCED],
        LOOP,
        lambda: poggi_loop(*pixels),
    )
    if importlib.util.find_spec("uncertainty_toolbox"):
        import uncertainty_toolbox as toolbox

        yield (
            "AUCE",
            lambda: auce(error, sigma),
            CALIBRATION,
            lambda: _toolbox_area(toolbox, pixels),
        )
        yield (
            "NLL",
            lambda: nll(error, sigma),
            LIKELIHOOD,
            lambda: toolbox.nll_gaussian(depth, sigma, truth),
        )
    if importlib.util.find_spec("sklearn"):
        from sklearn.calibration import calibration_curve
        from sklearn.metrics import brier_score_loss

        probability = np.exp(-sigma)
        yield (
            "Brier score",
            lambda: brier(probability, outlier),
            "scikit-learn Brier score",
            lambda: brier_score_loss(outlier, probability),
        )
        # Without the mean over its bins that makes the curve the calibration error.
        curve = "scikit-learn calibration curve"
        yield (
            "ECE, two classes",
            lambda: ece(probability, outlier),
            curve,
            lambda: calibration_curve(outlier, probability, n_bins=10),
        )
    from scipy.stats import spearmanr

    yield (
        "Spearman",
        lambda: spearman(sigma, error),
        "scipy spearmanr",
        lambda: spearmanr(sigma, error),
    )


def _row(
    pixels: int, what: str, ours: Callable[[], Any], peer: str, theirs: Callable[[], Any]
) -> Row:
    repetitions = max(1, min(30, 3_000_000 // pixels))
    times = np.array([(_milliseconds(ours), _milliseconds(theirs)) for _ in range(repetitions)])
    return Row(pixels, what, times[:, 0].min(), peer, times[:, 1].min())


def _online(pixels: int) -> float:
    """All pixels through the accumulator in frames, the per-image metrics included."""
    whole = draw(pixels, seed=0)
    frames = [
        tuple(values[start : start + FRAME] for values in whole)
        for start in range(0, pixels, FRAME)
    ]
    metrics = OnlineMetrics()
    return min(
        _milliseconds(lambda: [metrics.update(*frame) for frame in frames])
        for _ in range(max(2, min(300, 6_000_000 // pixels)))
    )


def _milliseconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


REDUCED: dict[str, Callable[[NDArray], float]] = {
    "abs_rel": np.mean,
    "rmse": lambda values: np.sqrt(values.mean()),
    "a1": lambda values: (values >= 1.25).mean(),
}


def poggi_loop(depth: NDArray, sigma: NDArray, ground_truth: NDArray) -> dict[str, float]:
    """Return AUSE the way the published evaluation of Poggi et al. computes it.

    A percentile and a mask for each of 50 steps, for sigma and each oracle.
    """
    error = np.abs(ground_truth - depth)
    values = {
        "abs_rel": error / ground_truth,
        "rmse": error**2,
        "a1": np.maximum(ground_truth / depth, depth / ground_truth),
    }
    masks = [sigma <= -np.percentile(-sigma, 2 * step) for step in range(50)]
    areas = {}
    for name, reduce in REDUCED.items():
        oracle = [
            reduce(values[name][-values[name] >= np.percentile(-values[name], 2 * step)])
            for step in range(50)
        ]
        removal = [reduce(values[name][mask]) for mask in masks]
        areas[name] = (
            float(sum(removal) - sum(oracle)) / 50
        )  # both curves start and end alike: the trapezoid is the mean
    return areas


def torch_uncertainty_ause() -> type | None:
    """Return the AUSE class from the installed file: the package itself asks for torchvision.

    None where it or torchmetrics is not installed.
    """
    found = importlib.util.find_spec("torch_uncertainty")
    if (
        found is None
        or not found.submodule_search_locations
        or importlib.util.find_spec("torchmetrics") is None
    ):
        return None
    path = Path(found.submodule_search_locations[0]) / "metrics" / "sparsification.py"
    specification = importlib.util.spec_from_file_location(
        "torch_uncertainty_sparsification", path
    )
    module = importlib.util.module_from_spec(specification)  # type: ignore[arg-type]
    specification.loader.exec_module(module)  # type: ignore[union-attr]
    return module.AUSE


def _peer_ause(peer: type, sigma: NDArray, error: NDArray) -> float:
    metric = peer()
    metric.update(torch.from_numpy(sigma), torch.from_numpy(error))
    return float(metric.compute())


def _toolbox_area(toolbox: Any, pixels: Pixels) -> float:
    """As a loop over the levels, its faster form: the vectorised one takes twice as long."""
    return toolbox.miscalibration_area(*pixels, num_bins=99, vectorized=False)


class Drift(NamedTuple):
    """Rounding error and memory growth after many pixels."""

    pixels: int
    seconds: float
    relative: dict[str, float]
    state_bytes: int
    grown_mb: float


def feed(pixels: int) -> Drift:
    """Feed pixels to one accumulator, frame by frame, and compare its sums with 80-bit ones."""
    metrics = OnlineMetrics()
    exact = np.zeros(3, dtype=np.longdouble)
    seconds = 0.0
    early = 0.0
    frames = -(-pixels // FRAME)
    for seed in tqdm(range(frames), desc="pixels", unit="frame"):
        frame = draw(min(FRAME, pixels - seed * FRAME), seed)
        start = time.process_time()
        metrics.update(*frame)
        seconds += time.process_time() - start
        depth, _, truth = (values.astype(np.float64) for values in frame)
        error = np.abs(depth - truth)
        exact += [
            values.sum(dtype=np.longdouble) for values in (error, error / truth, error * error)
        ]
        if seed == frames // 33:
            early = _peak_mb()
    grown = _peak_mb() - early
    found = metrics.compute()["depth"]
    means = exact / metrics.pixels
    pairs = {
        "mae": (found["mae"], means[0]),
        "abs_rel": (found["abs_rel"], means[1]),
        "rmse": (found["rmse"], np.sqrt(means[2])),
    }
    drift = {
        name: float(abs(np.longdouble(value) / reference - 1))
        for name, (value, reference) in pairs.items()
    }
    return Drift(metrics.pixels, seconds, drift, metrics.nbytes, grown)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table, or the drift."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pixels", type=int, nargs="+", default=SIZES, help="numbers of pixels to time at"
    )
    parser.add_argument(
        "--billion",
        type=int,
        nargs="?",
        const=1_000_000_000,
        help="feed so many pixels to one accumulator, and print the drift",
    )
    arguments = parser.parse_args()
    if not arguments.billion:
        print(table(run(tuple(arguments.pixels))))
        return
    drift = feed(arguments.billion)
    print(
        f"{drift.pixels:,} pixels in {drift.seconds:.0f} CPU s of updates, "
        f"state {drift.state_bytes:,} bytes"
    )
    print(f"memory grown by {drift.grown_mb:.1f} MB since 3 % of them")
    print(
        "relative drift from 80-bit sums: "
        + ", ".join(f"{name} {value:.1e}" for name, value in drift.relative.items())
    )


if __name__ == "__main__":
    main()
