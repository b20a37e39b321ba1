# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each of several cameras is started with."""

from __future__ import annotations

import pytest

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.ros.camera_names import (
    arguments_of_camera,
    check_names,
    refuse_camera_in,
    topics_of_camera,
)


@pytest.mark.parametrize("text", ["front front", "front re-ar", "1st"])
def test_what_is_no_namespace_is_refused(text):
    with pytest.raises(ConfigError, match="expected different names"):
        check_names(text.split())


def test_the_name_stands_in_any_argument_and_reports_are_kept_apart():
    arguments = {"image": "/{camera}/image_raw", "lidar": "/lidar", "output": "", "model": "demo"}
    assert arguments_of_camera("rear", arguments) == {
        "image": "/rear/image_raw",
        "lidar": "/lidar",
        "output": "evaluation/rear",
        "model": "demo",
    }
    assert arguments_of_camera("rear", {"output": "day/{camera}"}) == {"output": "day/rear"}
    with pytest.raises(ConfigError, match=r"expected \{camera\} in it"):
        arguments_of_camera("rear", {"output": "day"})


def test_topics_of_a_shared_node_are_those_of_a_node_in_the_cameras_namespace():
    topics = {"image": "/{camera}/image_raw", "camera_info": "camera_info", "lidar/points": "/l"}
    assert topics_of_camera("rear", topics) == {
        "rear/image": "/rear/image_raw",
        "rear/camera_info": "rear/camera_info",
        "rear/lidar/points": "/l",
    }


def test_a_shared_node_has_one_value_of_each_parameter():
    refuse_camera_in({"model": "demo", "samples": ""})
    with pytest.raises(ConfigError, match="one_process has one model for all cameras"):
        refuse_camera_in({"model": "{camera}.model"})
