# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages from arrays, and what the nodes tell each other as a DiagnosticStatus's pairs.

Headers are passed on unchanged. Image data is copied as one block of bytes, never as a list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField
from std_msgs.msg import Header

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.options import MAX_COUNT
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.core.strict import FormatError
from uncertainty_depth.frames.messages.camera_info import fields_from_camera
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.published import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_DESCRIPTION_DEPTH,
    measured_in,
    unfamiliarity_of,
)
from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION, HalfWidths
from uncertainty_depth.sigma.online.correction import (
    MAX_DEPTH_SCALE,
    OFF,
    AppliedCorrection,
    ReceivedEstimate,
)
from uncertainty_depth.sigma.online.estimates import DepthScale, OnlineEstimate

CALIBRATION_TOPIC = "uncertainty/calibration"
INFO_TOPIC = "depth/prediction_info"
CLOCK_MISSING_AGE_S = 3600.0
"""Older stamps come from another clock, a bag's."""
ENCODINGS = {(np.dtype(np.float32), 2): "32FC1", (np.dtype(np.uint8), 3): "rgb8"}


def age_s(node: Node, header: Header) -> float:
    """Return a message's age by the node's clock, seconds; NaN before the first /clock."""
    now_ns = node.get_clock().now().nanoseconds
    return math.nan if now_ns == 0 else (now_ns - stamp_ns(header)) * 1e-9


def check_age(node: Node, header: Header, max_age_s: float) -> None:
    """Raise `MessageError` if an image is older than `max_frame_age`; 0 allows any age."""
    age = age_s(node, header)
    if 0 < max_age_s < age:
        is_other_clock = age > CLOCK_MISSING_AGE_S
        hint = "; playing a bag needs use_sim_time and /clock" if is_other_clock else ""
        raise MessageError(
            "stale",
            f"an image was {age:.3f} s old, more than max_frame_age {max_age_s} s{hint}",
        )


def image_message(values: NDArray, header: Header) -> Image:
    """Return (H, W) float32 as 32FC1, (H, W, 3) uint8 RGB as rgb8; little-endian, no padding."""
    height, width = values.shape[:2]
    message = Image(
        header=header, height=height, width=width, encoding=ENCODINGS[values.dtype, values.ndim]
    )
    message.step = width * values.itemsize * (values.shape[2] if values.ndim == 3 else 1)
    message.is_bigendian = 0
    _copy_to(message, values.astype(values.dtype.newbyteorder("<"), copy=False))
    return message


def _copy_to(message: Image | PointCloud2, values: NDArray) -> None:
    """Fill `data` in place: an array that is assigned to it is copied once more."""
    message.data.frombytes(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def camera_info_message(camera: Camera, header: Header) -> CameraInfo:
    """Return the camera info of a camera, without region of interest and binning."""
    fields = fields_from_camera(camera)._asdict()
    return CameraInfo(header=header, **(fields | {"d": fields["d"].tolist()}))


def points_message(points: NDArray[np.void], header: Header) -> PointCloud2:
    """Return a cloud: (H, W) points, organised with NaN, or (N,) finite ones; float32 fields."""
    height, width = np.atleast_2d(points).shape
    message = PointCloud2(
        header=header, height=height, width=width, is_dense=points.ndim == 1, is_bigendian=False
    )
    layout: Mapping[str, Any] = points.dtype.fields or {}
    message.fields = [
        PointField(name=name, offset=field[1], datatype=PointField.FLOAT32, count=1)
        for name, field in layout.items()
    ]
    message.point_step = points.dtype.itemsize
    message.row_step = points.dtype.itemsize * width
    _copy_to(message, points)
    return message


def status_message(
    header: Header, name: str, sentence: str, values: Mapping[str, str]
) -> DiagnosticArray:
    """Return a DiagnosticArray with one status."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    status = DiagnosticStatus(level=DiagnosticStatus.OK, name=name, message=sentence, values=pairs)
    return DiagnosticArray(header=header, status=[status])


def type_name(message_type: type[Any]) -> str:
    """Return a message class's name in the graph, e.g. sensor_msgs/msg/Image."""
    package, interface, _ = message_type.__module__.split(".", 2)
    return f"{package}/{interface}/{message_type.__name__}"


MAX_FACTOR = 1024.0
"""Largest factor on sigma or depth that an estimate may have, either way."""
ESTIMATE = "online_calibration"
"""Name of the status on `uncertainty/calibration`."""


@dataclass(frozen=True)
class PredictionInfo:
    """How a prediction was made.

    Attributes:
        sigma: which sigma of the model it is, see `Predictor.sigma_name`.
        samples: those that were used, of so many `passes`; of one without samples.
        unfamiliarity: the image's unfamiliarity, see `DepthPrediction`; None if unknown.
        measured: pixels, row * width + column, that something beside the network measured: they
            are not scored, nor are their neighbours. A LiDAR's are not among them, see
            `held_out_rule`.
    """

    sigma: str
    samples: SampleRange
    passes: int
    in_force: AppliedCorrection = OFF
    unfamiliarity: float | None = None
    measured: tuple[int, ...] = ()

    @property
    def half_widths(self) -> HalfWidths | None:
        """Half widths of the Gaussian intervals that an estimate corrected; None without one."""
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
        "correction": repr(in_force.correction),
        "unfamiliarity": "" if info.unfamiliarity is None else repr(info.unfamiliarity),
        "measured": " ".join(map(str, info.measured)),
        "depth_scale": repr(in_force.depth_scale),
        "depth_scale_reason": in_force.depth_scale_reason,
        "scale_sigma": "" if in_force.scale_sigma is None else repr(in_force.scale_sigma),
    }


def read_info(values: Mapping[str, str]) -> PredictionInfo:
    """Read what `info_values` returned; raise `MessageError` "prediction_info" if damaged."""
    try:
        samples = SampleRange(_whole(values["first_sample"]), _whole(values["samples"]))
        in_force = AppliedCorrection(
            _factor(values["correction"], MAX_FACTOR),
            values["calibration"],
            values["calibration_reason"],
            _factor(values["depth_scale"], MAX_DEPTH_SCALE),
            _number(values["scale_sigma"]) if values["scale_sigma"] else None,
            values["depth_scale_reason"],
        )
        return PredictionInfo(
            values["sigma"],
            samples,
            _whole(values["passes"]),
            in_force,
            unfamiliarity_of(values),
            measured_in(values),
        )
    except (KeyError, ValueError, FormatError) as error:
        raise MessageError(
            "prediction_info",
            f"depth/prediction_info says {_shortened(values)}; expected sigma, samples, "
            "first_sample, passes, calibration, calibration_reason, correction, unfamiliarity, "
            "measured, depth_scale, depth_scale_reason and scale_sigma",
        ) from error


def estimate_values(estimate: OnlineEstimate, sent: ReceivedEstimate) -> dict[str, str]:
    """Return a sent estimate and what it rests on as keys and values, empty if not yet known."""
    correction = sent.correction
    scale = sent.scale
    return {
        "sigma": sent.sigma,
        "coverage": f"{estimate.config.coverage:g}",
        "half_width": f"{estimate.half_width:.6g}",
        "relative_error": f"{estimate.relative_error:.3g}",
        "frames": str(estimate.frames),
        "recent_coverage": f"{estimate.recent_coverage:.4f}",
        "changes": str(estimate.changes),
        "correction": "" if correction is None else repr(correction),
        "depth_scale": "" if scale is None else repr(scale.factor),
        "scale_sigma": "" if scale is None else repr(scale.scale_sigma),
    }


def read_estimate(stamp_ns: int, values: Mapping[str, str]) -> ReceivedEstimate:
    """Read an `estimate_values` for a stamp in nanoseconds, or raise `MessageError`."""
    try:
        text = values["correction"]
        correction = _factor(text, MAX_FACTOR) if text else None
        scale = None
        if values["depth_scale"]:
            factor = _factor(values["depth_scale"], MAX_FACTOR)
            scale = DepthScale(factor, _number(values["scale_sigma"]))
        return ReceivedEstimate(stamp_ns, values["sigma"], correction, scale)
    except (KeyError, ValueError, FormatError) as error:
        raise MessageError(
            "online_calibration",
            f"uncertainty/calibration says {_shortened(values)}; expected sigma, correction, "
            "depth_scale and scale_sigma",
        ) from error


def model_description(text: str) -> dict[str, Any]:
    """Return the JSON object in a text, or raise `MessageError` "model_description"."""
    try:
        content = strict.read_json(text, MAX_DESCRIPTION_CHARACTERS, MAX_DESCRIPTION_DEPTH)
    except FormatError as error:
        raise MessageError("model_description", f"depth/model says {error}") from error
    if not isinstance(content, dict):
        raise MessageError(
            "model_description", f"depth/model says {text[:80]!r}; expected a JSON object"
        )
    calibration = content.get("calibration")
    if not isinstance(calibration, (str, type(None))):
        content["calibration"] = json.dumps(calibration)
    return content


def _whole(text: str) -> int:
    value = int(text)
    if not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{text!r} is not between 0 and {MAX_COUNT}")
    return value


def _factor(text: str, largest: float) -> float:
    factor = _number(text, 1 / largest)
    if factor > largest:
        raise ValueError(f"a factor is {factor:g}; expected at most {largest:g}")
    return factor


def _number(text: str, minimum: float = 0.0) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= minimum):
        raise ValueError(f"{text!r} is below {minimum:g} or not finite")
    return value


def _shortened(values: Mapping[str, str]) -> str:
    return repr({key: value[:40] for key, value in list(values.items())[:10]})
