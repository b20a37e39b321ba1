# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Replay the online calibration on a recording without ROS."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.correction import Floats
from uncertainty_depth.calibration.correction_in_force import CorrectionInForce, ReceivedEstimate
from uncertainty_depth.calibration.online import OnlineEstimate


class LoopFrame(NamedTuple):
    """A frame with ground truth.

    Attributes:
        stamp_ns: its time, nanoseconds.
        error: (N,) absolute errors, metres.
        own_sigma: (N,) the model's own sigma, metres.
    """

    stamp_ns: int
    error: Floats
    own_sigma: Floats


class LoopRow(NamedTuple):
    """The correction and the coverage of a frame.

    Attributes:
        stamp_ns: its time, nanoseconds.
        own_coverage: fraction that the model's own sigma covers.
        coverage: fraction that the sigma published covers.
        factor: published sigma over the model's own, the mean over the pixels.
        frames: number of frames that the newest estimate rests on.
    """

    stamp_ns: int
    own_coverage: float
    coverage: float
    factor: float
    frames: int


def replay(
    frames: Iterable[LoopFrame],
    estimate: OnlineEstimate,
    in_force: CorrectionInForce,
    delay: int = 2,
) -> Iterator[LoopRow]:
    """Yield what each frame's published sigma covers.

    The estimator gets the sigma as published and the correction that was in force, as the
    evaluator node does, and takes the correction back.

    Args:
        frames: in the order of time.
        estimate: of the correction.
        in_force: what the depth node does with it.
        delay: number of frames between an image and the use of the estimate that it changes.
    """
    waiting: deque[tuple[LoopFrame, NDArray[np.floating]]] = deque()
    for frame in frames:
        if len(waiting) > delay:
            _estimate(*waiting.popleft(), estimate, in_force)
        correction = in_force.at(frame.stamp_ns, "").correction
        sigma = correction(frame.own_sigma)
        waiting.append((frame, correction.inverse(sigma)))
        half_width = estimate.half_width
        yield LoopRow(
            frame.stamp_ns,
            own_coverage=float((frame.error <= half_width * frame.own_sigma).mean()),
            coverage=float((frame.error <= half_width * sigma).mean()),
            factor=float(sigma.mean() / np.mean(frame.own_sigma)),
            frames=estimate.frames,
        )


def _estimate(
    frame: LoopFrame,
    own_sigma: NDArray[np.floating],
    estimate: OnlineEstimate,
    in_force: CorrectionInForce,
) -> None:
    estimate.add(frame.stamp_ns, frame.error, own_sigma)
    if estimate.correction is not None:
        in_force.receive(ReceivedEstimate(frame.stamp_ns, "", estimate.correction))
