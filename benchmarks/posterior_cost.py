# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print what measurements cost a frame of 640x480, beside the network's pass, on one thread.

python -m benchmarks.posterior_cost [--model indoor]

All stages take turns in one run, so the ratios to the pass hold on a busy machine too. A robot
drives through a rendered world; what a sensor measures is drawn from the true depth.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch

from benchmarks.measurements import pixels, rings
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.model_location import NAMES
from uncertainty_depth.core.process import single_threaded_blas
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.posterior import corrected
from uncertainty_depth.stream.motion import Motion
from uncertainty_depth.stream.opening import open_source

SOURCE = "synthetic:worlds=1,frames=24,rate=5,width=640,height=480,dense=true"
WARM_UP = 4
"""Frames that fill caches and the tracker's window, and are not timed."""
NETWORK = "the network's passes"


class Clock:
    """The processor's time that stages take, and how many pixels they are given."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._pixels: dict[str, int] = {}

    def run(self, name: str, stage: Callable[[], Any], pixels: int | None = None) -> Any:
        """Return what a stage returns."""
        start = time.process_time()
        result = stage()
        self._seconds[name].append(time.process_time() - start)
        if pixels is not None:
            self._pixels[name] = pixels
        return result

    def rows(self) -> list[list[str]]:
        """Return each stage's pixels, median time, and this over the network's."""
        typical_s = {name: np.median(each[WARM_UP:]) for name, each in self._seconds.items()}
        return [
            [
                name,
                str(self._pixels.get(name, "")),
                f"{1e3 * s:.0f}",
                f"{s / typical_s[NETWORK]:.2f}",
            ]
            for name, s in typical_s.items()
        ]


def time_frame(frame: Frame, predictor: Predictor, motion: Motion, clock: Clock) -> None:
    """Time each stage on a frame."""
    prediction = clock.run(NETWORK, partial(predictor.predict_frame, frame))
    by_motion = clock.run("corners by motion", partial(motion.measure, frame))
    given = {"the process, by motion": (replace(frame, measurements=by_motion), len(by_motion))}
    for name, known in {
        "16 pixels": pixels(16, frame),
        "64 pixels": pixels(64, frame),
        "500 pixels": pixels(500, frame),
        "16 rings": rings(16, frame, most=10**6),
    }.items():
        sparse_m = known.map(prediction.depth_m.shape)
        given[f"process and interpolation, {name}"] = (
            replace(frame, sparse_m=sparse_m),
            len(known),
        )
    for name, (one, count) in given.items():
        clock.run(name, partial(corrected, prediction, one, predictor.depth_range), count)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=NAMES, default="indoor")
    predictor = Predictor(parser.parse_args().model, PredictorConfig(device="cpu"))
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    motion, clock = Motion(), Clock()
    with single_threaded_blas():
        for frame in open_source(SOURCE, SourceConfig()):
            if isinstance(frame, Frame):
                time_frame(frame, predictor, motion, clock)
    print(markdown(["", "pixels", "ms", "of the passes"], clock.rows()))


if __name__ == "__main__":
    main()
