# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What each of several cameras is started with."""

from __future__ import annotations

import pytest

from uncertainty_depth.ros.camera_names import arguments_of_camera, camera_names


@pytest.mark.parametrize("text", ["front rear", "front,rear", " front,  rear "])
def test_names_are_told_apart_by_blanks_or_commas(text):
    assert camera_names(text) == ["front", "rear"]


@pytest.mark.parametrize("text", ["front front", "front re-ar", "1st"])
def test_what_is_no_namespace_is_refused(text):
    with pytest.raises(ValueError, match="expected different names"):
        camera_names(text)


def test_the_name_stands_in_any_argument_and_reports_are_kept_apart():
    arguments = {"image": "/{camera}/image_raw", "lidar": "/lidar", "output": "", "model": "demo"}
    assert arguments_of_camera("rear", arguments) == {
        "image": "/rear/image_raw",
        "output": "evaluation/rear",
    }
    assert arguments_of_camera("rear", {"output": "day/{camera}"}) == {"output": "day/rear"}
    assert arguments_of_camera("rear", {"model": "demo"}) == {}
    with pytest.raises(ValueError, match=r"expected \{camera\} in it"):
        arguments_of_camera("rear", {"output": "day"})


def test_the_nodes_are_started_once_per_camera():
    launching = pytest.importorskip(
        "uncertainty_depth.ros.launching", reason="the launch library is not installed"
    )
    from launch.launch_context import LaunchContext

    context = LaunchContext()
    context.launch_configurations |= {"cameras": "front rear", "output": ""}
    groups = launching.start_nodes(context, [launching.DEPTH, launching.EVALUATOR])
    assert len(groups) == 2
    context.launch_configurations["cameras"] = ""
    assert len(launching.start_nodes(context, [launching.DEPTH, launching.EVALUATOR])) == 2
