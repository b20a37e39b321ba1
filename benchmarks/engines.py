# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Which engine predicts fastest on this processor.

python -m benchmarks.engines [MODEL] [--samples N] [--rounds N]

A frame of the model by each engine and precision that is installed, in CPU time on one thread. All
engines take turns, so other load hits them alike, and each ratio is to torch in float32 in the
same round: median (minimum to maximum).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import trange

from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.depth.predictor import Predictor

CANDIDATES = (
    ("torch", "fp32"),
    ("torch", "bf16"),
    ("onnxruntime", "fp32"),
    ("openvino", "fp32"),
    ("openvino", "bf16"),
)


def measure(model: str, samples: int = 8, rounds: int = 9) -> dict[str, NDArray[np.float64]]:
    """Return the CPU seconds of a frame in each round, by engine and precision."""
    torch.set_num_threads(1)
    predictors = {}
    for engine, precision in CANDIDATES:
        try:
            predictors[f"{engine} {precision}"] = Predictor(
                model, samples=samples, engine=engine, precision=precision, device="cpu"
            )
        except UncertaintyDepthError as error:  # not installed, or not for this processor
            print(f"{engine} {precision} left out: {error}")
    image = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    seconds: dict[str, list[float]] = {name: [] for name in predictors}
    for number in trange(rounds + 1, desc="rounds"):
        for name, predictor in predictors.items():
            start = time.process_time()
            predictor.predict(image, number)
            if number:  # the first round compiles and fills caches
                seconds[name].append(time.process_time() - start)
    return {name: np.array(durations) for name, durations in seconds.items()}


def table(seconds: dict[str, NDArray[np.float64]]) -> str:
    """Return a Markdown table, and the engine to choose."""
    lines = ["| engine | CPU ms | of torch fp32 |", "| --- | ---: | ---: |"]
    ratios = {name: durations / seconds["torch fp32"] for name, durations in seconds.items()}
    for name, ratio in ratios.items():
        spread = f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        lines.append(f"| {name} | {1e3 * np.median(seconds[name]):.1f} | {spread} |")
    engine, precision = min(ratios, key=lambda name: float(np.median(ratios[name]))).split()
    return "\n".join([*lines, "", f"fastest: --engine {engine} --precision {precision}"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="demo")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print(table(measure(arguments.model, arguments.samples, arguments.rounds)))


if __name__ == "__main__":
    main()
