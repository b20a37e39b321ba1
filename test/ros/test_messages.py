# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the nodes send: it comes back as it was, and what cannot be read is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CameraInfo

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.frames.messages.camera_info import camera_from_info
from uncertainty_depth.frames.published import MAX_CHARACTERS, status_values
from uncertainty_depth.ros.messages import (
    PredictionInfo,
    camera_info_message,
    estimate_values,
    info_values,
    read_estimate,
    read_info,
)
from uncertainty_depth.sigma.online.correction import AppliedCorrection, ReceivedEstimate
from uncertainty_depth.sigma.online.estimates import DepthScale, OnlineEstimate

HUGE = "9" * 401
INFO = PredictionInfo("raw", SampleRange(3, 4), 8, AppliedCorrection(2.0, "online", "why"))


def estimate() -> OnlineEstimate:
    made = OnlineEstimate()
    random = np.random.default_rng(0)
    for index in range(30):
        made.add(index * 10**8, np.abs(random.normal(size=50)), np.ones(50))
    return made


@pytest.mark.parametrize("unfamiliarity", [None, 1 / 3, 0.0])
@pytest.mark.parametrize("scale_sigma", [None, 1 / 3, 0.0])
def test_how_a_prediction_was_made_is_read_back(unfamiliarity, scale_sigma):
    in_force = replace(
        INFO.in_force, depth_scale=2 / 3, scale_sigma=scale_sigma,
        depth_scale_reason="because",
    )  # fmt: skip
    measured = (0, 7, 76_799)
    info = replace(INFO, unfamiliarity=unfamiliarity, in_force=in_force, measured=measured)
    assert read_info(info_values(info)) == info
    assert read_info(info_values(INFO)) == INFO


BAD_NUMBERS = {
    "unfamiliarity": ("nan", "-1"),
    "samples": (HUGE,),
    "measured": ("-1", "1 2.5", HUGE),
    "passes": ("-1",),
    "depth_scale": ("nan", "0", "", "1025"),
    "scale_sigma": ("-0.1", "inf"),
    "correction": (" ", "[3]", "0", "-1", "nan", "inf", "1025", HUGE),
}


@pytest.mark.parametrize("key", BAD_NUMBERS)
def test_a_number_that_no_node_publishes_is_refused_and_a_missing_one_is_named(key):
    values = info_values(INFO)
    for text in BAD_NUMBERS[key]:
        with pytest.raises(MessageError, match="depth_scale_reason"):
            read_info(values | {key: text})
    del values[key]
    with pytest.raises(MessageError, match="expected sigma, samples, first_sample"):
        read_info(values)


def test_intervals_are_gaussian_where_the_estimate_is_in_force():
    assert INFO.half_widths.at(0.95) == pytest.approx(1.96, abs=0.001)
    own = PredictionInfo("raw", SampleRange(0, 8), 8, AppliedCorrection(1.0, "own", "why"))
    assert own.half_widths is None


def test_an_estimate_is_read_back_and_says_what_it_rests_on():
    made = estimate()
    scale = DepthScale(1 / 3, 0.1)
    values = estimate_values(made, ReceivedEstimate(7, "raw", made.factor, scale))
    read = read_estimate(7, values)
    assert read.stamp_ns == 7
    assert read.sigma == "raw"
    assert read.scale == scale
    assert read.correction == made.factor
    assert values["frames"] == "30"
    assert values["coverage"] == "0.95"


def test_what_is_not_known_yet_is_sent_as_such():
    sent = ReceivedEstimate(7, "raw")
    assert read_estimate(7, estimate_values(OnlineEstimate(), sent)) == sent


BAD_SCALES = {
    "depth_scale": ("nan", "-1", "0", HUGE, "1025", "[1]"),
    "scale_sigma": ("nan", "", HUGE),
}


@pytest.mark.parametrize("key", BAD_SCALES)
def test_a_scale_that_no_evaluator_sends_is_refused(key):
    sent = ReceivedEstimate(7, "raw", scale=DepthScale(1.2, 0.1))
    values = estimate_values(OnlineEstimate(), sent)
    without = {name: value for name, value in values.items() if name != key}
    for bad in (without, *(values | {key: text} for text in BAD_SCALES[key])):
        with pytest.raises(MessageError, match="depth_scale and scale_sigma"):
            read_estimate(7, bad)


@pytest.mark.parametrize("text", BAD_NUMBERS["correction"])
def test_an_invalid_correction_is_refused(text):
    with pytest.raises(MessageError):
        read_estimate(0, {"sigma": "raw", "correction": text, "depth_scale": ""})


def test_a_status_is_found_by_its_name_and_bounded():
    def status(name: str, value: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, values=[SimpleNamespace(key="a", value=value)])

    assert status_values([status("x", "1"), status("y", "2")], "y") == {"a": "2"}
    with pytest.raises(MessageError, match="a status called 'y'"):
        status_values([status("x", "1")], "y")
    with pytest.raises(MessageError, match="at most 10000 characters"):
        status_values([status("y", "1" * (MAX_CHARACTERS + 1))], "y")


def test_the_camera_info_of_a_rectified_camera_is_sent_as_it_came(make):
    info = make.camera_info(5, 641, 479, focal=519.2891)
    info.p[3] = -30.0
    message = camera_info_message(camera_from_info(info), make.header(9, "left_optical"))
    message = deserialize_message(serialize_message(message), CameraInfo)
    assert message.header == make.header(9, "left_optical")
    for name in ("width", "height", "distortion_model", "d", "binning_x", "roi"):
        assert getattr(message, name) == getattr(info, name)
    for name in "kr":
        np.testing.assert_array_equal(getattr(message, name), getattr(info, name))
    np.testing.assert_allclose(message.p, info.p, rtol=1e-11)


def test_a_camera_info_with_a_region_of_interest_is_sent_as_that_of_the_image(make):
    info = make.camera_info(0, 640, 480)
    info.roi.x_offset = 100
    info.roi.y_offset = 50
    info.roi.width = 320
    info.roi.height = 240
    camera = camera_from_info(info).scaled(160, 120)
    sent = camera_info_message(camera, info.header)
    assert (sent.width, sent.height, sent.roi.width) == (160, 120, 0)
    np.testing.assert_array_equal(camera_from_info(sent).intrinsics, camera.intrinsics)


def test_an_uncalibrated_camera_stays_that_way(make):
    sent = camera_info_message(Camera(320, 240, np.zeros((3, 3))), make.header(1))
    assert (sent.width, sent.height) == (320, 240)
    assert not np.any(sent.k)
    assert not np.any(sent.p)
