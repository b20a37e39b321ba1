# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the player."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import MAX_DURATION_S, option


@dataclass(frozen=True)
class PlayerConfig:
    """How a bag is published into ROS 2."""

    rate: float = option(
        1.0, "playback rate, as a multiple of the recording's", limits=(1e-3, 1e3)
    )
    clock: bool = option(False, "publish /clock, for nodes with use_sim_time")
    loop: bool = option(False, "start again at the end, until interrupted")
    wait_for_subscribers: float = option(
        0.0,
        "maximum time to wait before the first message for the subscribers, seconds: of every "
        "topic, or of the camera image and those that come within 3 s of each other",
        limits=(0.0, MAX_DURATION_S),
        expert=True,
    )
    wait_for_result: str = option(
        "",
        "image topic published by a node; each camera image is sent only after the result of the "
        "previous one",
    )
    result_timeout: float = option(
        10.0,
        "maximum time to wait for a result, seconds; the frame then counts as unanswered",
        limits=(0.1, MAX_DURATION_S),
        expert=True,
    )
