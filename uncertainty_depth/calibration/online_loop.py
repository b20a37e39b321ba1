# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Replay the online calibration on a recording without ROS."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.correction import Correction, Floats
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
    own_sigma: NDArray[np.floating]


class LoopRow(NamedTuple):
    """The correction and the coverage of a frame.

    Attributes:
        stamp_ns: its time, nanoseconds.
        own_coverage: fraction that the model's own sigma covers.
        coverage: fraction that the published sigma covers.
        factor: published sigma over the model's own, the mean over the pixels.
        frames: number of frames that the newest estimate rests on.
    """

    stamp_ns: int
    own_coverage: float
    coverage: float
    factor: float
    frames: int


class OnlineLoop:
    """Both ends of the online calibration: the evaluator's estimate, the node's correction.

    The estimator gets the sigma as published and the correction that was in force, as the
    evaluator node does, and undoes the correction.

    Args:
        estimate: of the correction.
        in_force: what the depth node does with it.
        delay: number of frames between an image and the use of the estimate that it changes.
    """

    def __init__(
        self, estimate: OnlineEstimate, in_force: CorrectionInForce, delay: int = 2
    ) -> None:
        self._estimate = estimate
        self._in_force = in_force
        self._delay = delay
        self._waiting: deque[LoopFrame] = deque()

    def correction(self, stamp_ns: int) -> Correction:
        """Return the correction of the next frame in time, by the frames added before."""
        if len(self._waiting) > self._delay:
            frame = self._waiting.popleft()
            self._estimate.add(*frame)
            if self._estimate.correction is not None:
                received = ReceivedEstimate(frame.stamp_ns, "", self._estimate.correction)
                self._in_force.receive(received)
        return self._in_force.at(stamp_ns, "").correction

    def add(self, frame: LoopFrame, correction: Correction) -> None:
        """Add a frame with ground truth, whose sigma was published with this correction."""
        own_sigma = correction.inverse(correction(frame.own_sigma))
        self._waiting.append(frame._replace(own_sigma=own_sigma))


def replay(
    frames: Iterable[LoopFrame],
    estimate: OnlineEstimate,
    in_force: CorrectionInForce,
    delay: int = 2,
) -> Iterator[LoopRow]:
    """Yield each frame's correction and coverage.

    Args:
        frames: in order of time.
        estimate: of the correction.
        in_force: what the depth node does with it.
        delay: see `OnlineLoop`.
    """
    loop = OnlineLoop(estimate, in_force, delay)
    for frame in frames:
        correction = loop.correction(frame.stamp_ns)
        sigma = correction(frame.own_sigma)
        loop.add(frame, correction)
        half_width = estimate.half_width
        yield LoopRow(
            frame.stamp_ns,
            own_coverage=float((frame.error <= half_width * frame.own_sigma).mean()),
            coverage=float((frame.error <= half_width * sigma).mean()),
            factor=float(sigma.mean() / np.mean(frame.own_sigma)),
            frames=estimate.frames,
        )
