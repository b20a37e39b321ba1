# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Select the correction of sigma to apply: the latest estimate, within limits."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from uncertainty_depth.calibration.correction import IDENTITY, Correction
from uncertainty_depth.config.nodes import OnlineCorrectionConfig

MAX_STEP_S = 1.0
"""Time between two frames that counts towards the limit of the rate, at most."""
SHRINKING = 0.2
"""Rate of shrinking as a fraction of that of growing: a sigma that is too small does the harm."""
WARNING_S = 10.0
"""Time at a limit after which that is a warning."""


@dataclass(frozen=True)
class ReceivedEstimate:
    """An estimate of the correction.

    Attributes:
        stamp_ns: time of the newest frame it rests on, nanoseconds.
        sigma: which sigma of the model it corrects, see `Predictor.sigma_name`.
        correction: of the model's own sigma.
    """

    stamp_ns: int
    sigma: str
    correction: Correction


@dataclass(frozen=True)
class InForce:
    """The correction of one frame.

    Attributes:
        correction: of the model's own sigma.
        source: "own" or "online".
        reason: sentence that says why.
    """

    correction: Correction
    source: str
    reason: str


BEYOND = "the estimate is beyond "
ONLINE = "online"
"""Source of a correction that follows an estimate."""
OFF = InForce(IDENTITY, "own", "use_online_calibration is false")


class CorrectionInForce:
    """Follows the newest estimate, as fast and as far as the options allow.

    It shrinks more slowly than it grows, and by default not below the model's own sigma: depth
    compared with itself, or with a sensor that shares its errors, seems to have no errors. Without
    a fresh estimate it returns to no correction, as fast as allowed. Any thread may use it.

    Attributes:
        config: options; may be replaced at any time.
        last: the correction of the newest frame.
        warning: a sentence if the estimate has been beyond a limit for `WARNING_S`, else empty.
    """

    def __init__(self, config: OnlineCorrectionConfig | None = None) -> None:
        self.config = config or OnlineCorrectionConfig()
        self.last = OFF
        self.warning = ""
        self._limited_since_ns: int | None = None
        self._step = 1.0
        self._widened_by = 1.0
        self._estimate: ReceivedEstimate | None = None
        self._stamp_ns: int | None = None
        self._lock = Lock()

    def receive(self, estimate: ReceivedEstimate) -> None:
        """Store the newest estimate."""
        with self._lock:
            self._estimate = estimate

    def at(self, stamp_ns: int, sigma: str) -> InForce:
        """Return the correction of the next frame in time.

        Args:
            stamp_ns: time of the frame, nanoseconds.
            sigma: which sigma of the model is corrected.
        """
        with self._lock:
            estimate = self._estimate
        config = self.config
        self._step = config.calibration_max_rate ** self._seconds(stamp_ns)
        if not config.use_online_calibration:
            self.last = OFF
        else:
            problem = _problem(estimate, stamp_ns, sigma, config)
            followed = estimate if not problem else None
            self.last = self._followed(followed, problem, config)
        self._watch_limit(stamp_ns)
        self._stamp_ns = stamp_ns
        return self.last

    def widening(self, unfamiliarity: float | None) -> float:
        """Return the factor that widens sigma for the frame of the last call to `at`.

        It is the unfamiliarity if that is above 1. Once an estimate is in force, LiDAR determines
        sigma's size, and the widening ends, no faster than a correction may move: sigma must not
        shrink before the correction has grown.

        Args:
            unfamiliarity: the frame's unfamiliarity; None if it is unknown or nothing is widened.
        """
        if self.last.source == ONLINE:
            self._widened_by = max(self._widened_by / self._step, 1.0)
        else:
            self._widened_by = max(unfamiliarity or 1.0, 1.0)
        return self._widened_by

    def _followed(
        self,
        estimate: ReceivedEstimate | None,
        problem: str,
        config: OnlineCorrectionConfig,
    ) -> InForce:
        target = IDENTITY if estimate is None else estimate.correction
        within = target.limited(config.calibration_min_factor, config.calibration_max_factor)
        shrinking = self._step**SHRINKING
        correction = self.last.correction.towards(within, shrinking, self._step)
        if problem:
            back = "" if correction == IDENTITY else "; returning to the model's own"
            return InForce(correction, "own", problem + back)
        if within.max_factor < target.max_factor:
            limit = f"calibration_max_factor {config.calibration_max_factor:g}"
            return InForce(correction, ONLINE, f"{BEYOND}{limit}")
        if within != target:
            limit = f"calibration_min_factor {config.calibration_min_factor:g}"
            return InForce(correction, ONLINE, f"{BEYOND}{limit}")
        if correction != within:
            return InForce(correction, ONLINE, "moving towards the estimate")
        return InForce(correction, ONLINE, "at the estimate")

    def _watch_limit(self, stamp_ns: int) -> None:
        """Set the warning from how long the estimate has been beyond a limit."""
        if not self.last.reason.startswith(BEYOND):
            self._limited_since_ns = None
        elif self._limited_since_ns is None or stamp_ns < self._limited_since_ns:
            self._limited_since_ns = stamp_ns
        since_ns = stamp_ns if self._limited_since_ns is None else self._limited_since_ns
        seconds = (stamp_ns - since_ns) / 1e9
        self.warning = ""
        if seconds >= WARNING_S:
            self.warning = (
                f"{self.last.reason} for {seconds:.0f} s; expected a LiDAR that is independent of "
                "the depth and fits the camera, or `uncertainty-depth calibrate` anew"
            )

    def _seconds(self, stamp_ns: int) -> float:
        """Return the time since the previous frame, 0 ... `MAX_STEP_S`."""
        if self._stamp_ns is None:
            return 0.0
        return min(max((stamp_ns - self._stamp_ns) / 1e9, 0.0), MAX_STEP_S)


def _problem(
    estimate: ReceivedEstimate | None, stamp_ns: int, sigma: str, config: OnlineCorrectionConfig
) -> str:
    """Return why an estimate is rejected; empty if it is accepted."""
    if estimate is None:
        return "no estimate has come; is an evaluator with LiDAR running?"
    if estimate.sigma != sigma:
        return f"the estimate is of the sigma of {estimate.sigma}; expected {sigma}"
    age_s = (stamp_ns - estimate.stamp_ns) / 1e9
    if abs(age_s) > config.calibration_timeout:
        return f"the newest estimate is {age_s:.1f} s old; calibration_timeout is " + (
            f"{config.calibration_timeout:g} s"
        )
    return ""
