# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The messages between both nodes about sigma, as key-value pairs of a DiagnosticStatus."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from uncertainty_depth import strict
from uncertainty_depth.calibration.correction import Correction
from uncertainty_depth.calibration.correction_in_force import InForce, ReceivedEstimate
from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.calibration.online import OnlineEstimate
from uncertainty_depth.config.choices import MAX_COUNT
from uncertainty_depth.errors import MessageError
from uncertainty_depth.records import SampleRange
from uncertainty_depth.strict import FormatError

MAX_CHARACTERS = 10_000
ESTIMATE = "online_calibration"
"""Name of the status on `uncertainty/calibration`."""
PREDICTION = "prediction"
"""Name of the status on `depth/prediction_info`."""


@dataclass(frozen=True)
class PredictionInfo:
    """How a prediction was made.

    Attributes:
        sigma: which sigma of the model it is, see `Predictor.sigma_name`.
        samples: those that were used.
        passes: as many there are.
        in_force: the correction in the published sigma.
        unfamiliarity: the image's unfamiliarity, see `DepthPrediction`; None if unknown.
        widened_by: factor by which sigma was also widened for unfamiliarity.
    """

    sigma: str
    samples: SampleRange
    passes: int
    in_force: InForce
    unfamiliarity: float | None = None
    widened_by: float = 1.0

    @property
    def half_widths(self) -> HalfWidths | None:
        """Half widths of intervals that the correction was estimated for; None without one.

        The estimate makes Gaussian intervals cover what they should.
        """
        return BY_DISTRIBUTION["gaussian"] if self.in_force.source == "online" else None


def info_values(info: PredictionInfo) -> dict[str, str]:
    """Return keys and values of a prediction."""
    in_force = info.in_force
    return {
        "sigma": info.sigma,
        "samples": str(info.samples.count),
        "first_sample": str(info.samples.first),
        "passes": str(info.passes),
        "calibration": in_force.source,
        "calibration_reason": in_force.reason,
        "correction": json.dumps(in_force.correction.to_mapping()),
        "unfamiliarity": "" if info.unfamiliarity is None else repr(info.unfamiliarity),
        "widened_by": repr(info.widened_by),
    }


def read_info(values: Mapping[str, str]) -> PredictionInfo:
    """Read what `info_values` returned.

    Raises:
        MessageError: "prediction_info", a value is missing or no such value.
    """
    try:
        samples = SampleRange(_whole(values["first_sample"]), _whole(values["samples"]))
        in_force = InForce(
            _correction(values), values["calibration"], values["calibration_reason"]
        )
        return PredictionInfo(
            values["sigma"],
            samples,
            _whole(values["passes"]),
            in_force,
            _number(values["unfamiliarity"], 0.0) if values["unfamiliarity"] else None,
            _number(values["widened_by"], 1.0),
        )
    except (KeyError, ValueError, FormatError) as error:
        raise MessageError(
            "prediction_info",
            f"depth/prediction_info says {_shortened(values)}; expected sigma, samples, "
            "first_sample, passes, calibration, calibration_reason, correction, unfamiliarity and "
            "widened_by",
        ) from error


def estimate_values(
    estimate: OnlineEstimate, correction: Correction, sigma: str
) -> dict[str, str]:
    """Return keys and values of an estimate.

    Args:
        estimate: of the correction.
        correction: its estimate.
        sigma: which sigma of the model it corrects.
    """
    return {
        "sigma": sigma,
        "coverage": f"{estimate.config.coverage:g}",
        "half_width": f"{estimate.half_width:.6g}",
        "min_factor": f"{correction.min_factor:.4g}",
        "max_factor": f"{correction.max_factor:.4g}",
        "relative_error": f"{estimate.relative_error:.3g}",
        "frames": str(estimate.frames),
        "recent_coverage": f"{estimate.recent_coverage:.4f}",
        "changes": str(estimate.changes),
        "correction": json.dumps(correction.to_mapping()),
    }


def read_estimate(stamp_ns: int, values: Mapping[str, str]) -> ReceivedEstimate:
    """Read what `estimate_values` returned.

    Args:
        stamp_ns: of the message, nanoseconds.
        values: its keys and values.

    Raises:
        MessageError: "online_calibration", a value is missing or makes no correction.
    """
    try:
        return ReceivedEstimate(stamp_ns, values["sigma"], _correction(values))
    except (KeyError, ValueError, FormatError) as error:
        raise MessageError(
            "online_calibration",
            f"uncertainty/calibration says {_shortened(values)}; expected sigma and correction",
        ) from error


def status_values(statuses: Iterable[Any], name: str) -> dict[str, str]:
    """Return keys and values of the status called `name` in a DiagnosticArray.

    Raises:
        MessageError: "no_status", the status is missing, or its values are too long.
    """
    for status in statuses:
        if status.name == name:
            values = {pair.key: pair.value for pair in status.values}
            if sum(map(len, values.values())) <= MAX_CHARACTERS:
                return values
    raise MessageError(
        "no_status",
        f"expected a status called {name!r} with at most {MAX_CHARACTERS} characters",
    )


def _correction(values: Mapping[str, str]) -> Correction:
    return Correction.from_mapping(strict.read_json(values["correction"], MAX_CHARACTERS, 3))


def _whole(text: str) -> int:
    value = int(text)
    if not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{text!r} is not between 0 and {MAX_COUNT}")
    return value


def _number(text: str, minimum: float) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= minimum):
        raise ValueError(f"{text!r} is below {minimum:g} or not finite")
    return value


def _shortened(values: Mapping[str, str]) -> str:
    return repr({key: value[:40] for key, value in list(values.items())[:10]})
