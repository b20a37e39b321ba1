# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each of several cameras is started with."""

import pytest

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.ros.camera_names import arguments_of_camera, check_names


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
