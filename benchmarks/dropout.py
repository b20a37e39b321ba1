# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What are more samples of dropout worth, beside a head for the variance and the mirror image?

python -m benchmarks.dropout SOURCE ... [--model indoor] [--frames 30]

Each way predicts the same frames, in turn, so that whatever else the machine does hits all alike.
"Plain" is a pass without dropout. Time is that of the processor on one thread, over that of one
plain pass; scores are under the distribution of the model's head, by raw sigma, and by one that is
wider by a constant factor, as a caution for a camera that the model has not seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from experiments.data_folders import spread_frames
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.metrics.calibration import distribution_of, of_distribution
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.stream.opening import open_source

Predict = Callable[[Frame], DepthPrediction]
SAMPLES = (1, 2, 4, 8, 16, 32)
PLAIN = "one plain pass"
WIDER = 1.25


def ways_of(model: str) -> dict[str, Predict]:
    """Return each way to predict a frame, by its name."""
    mirrored = _predict(model, "mirrored", 2)
    ways = {
        PLAIN: _predict(model, "deterministic", 1),
        "image and mirror image": mirrored,
        f"the same, {WIDER} sigma": lambda frame: wider(mirrored(frame)),
    }
    for samples in SAMPLES:
        ways[f"mc_dropout, {samples}"] = _predict(model, "mc_dropout", samples)
    return ways


def _predict(model: str, method: str, samples: int) -> Predict:
    config = PredictorConfig(method=method, samples=samples, device="cpu", calibrated=False)
    predictor = Predictor(model, config)
    return lambda frame: predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)


def wider(made: DepthPrediction) -> DepthPrediction:
    """Return the prediction with its sigma times `WIDER`."""
    return replace(made, sigma_m=np.float32(WIDER) * made.sigma_m)


def main() -> None:
    """Print a table for each source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="+")
    parser.add_argument("--model", default="indoor")
    parser.add_argument("--frames", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    distribution = distribution_of(Predictor(options.model).model.network.head)
    names = ["depth.mae", "uncertainty.ause.rmse", "uncertainty.ause.abs_rel"]
    names += [
        of_distribution(f"uncertainty.{name}", distribution)
        for name in ("nll", "auce", "coverage_95")
    ]
    ways = ways_of(options.model)
    for notation in options.source:
        scores = {name: OnlineMetrics() for name in ways}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for frame in spread_frames(open_source(notation, SourceConfig()), options.frames):
            if not isinstance(frame, Frame):
                continue
            for name, predict in ways.items():
                start = time.process_time()
                made = predict(frame)
                seconds[name].append(time.process_time() - start)
                scores[name].update(made.depth_m, made.sigma_m, frame.need_ground_truth())
        rows = []
        for name, metrics in scores.items():
            ratio = np.median(np.array(seconds[name]) / np.array(seconds[PLAIN]))
            values = flatten(metrics.compute())
            cells = [f"{values[metric]:.3f}" for metric in names]
            rows.append([name, f"{ratio:.2f}", *cells])
        header = [notation, "time", *(name.rsplit("uncertainty.")[-1] for name in names)]
        print(markdown(header, rows), flush=True)


if __name__ == "__main__":
    main()
