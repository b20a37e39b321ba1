# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Advice for each reason that frames or messages are lost for."""

from __future__ import annotations

ADVICE = {
    "queue_full": "more arrives than the computer handles: lower samples, the rate or the size",
    "stale": "the network is too slow, the clocks differ, or a bag is played without use_sim_time",
    "lost_in_transport": "set reliable_input, and FASTDDS_BUILTIN_TRANSPORTS for every process",
    "failed": "see the log",
    "callback_failed": "see the log: messages or services fail, the node goes on",
    "out_of_memory": "lower samples, chunk or input_size, or free the device",
    "no_camera_info": "remap the camera info to one that is published with its images",
    "no_extrinsics": "set lidar_to_camera, or publish the LiDAR's pose on /tf_static",
    "no_ego_motion": "publish tf from fixed_frame to camera and LiDAR at all times, or empty it",
    "no_lidar_point_in_view": "check lidar_to_camera or tf: no LiDAR point lies in the image",
    "no_lidar_within_max_time_difference": "synchronise the clocks, or raise max_time_difference",
    "no_ground_truth_image_within_max_time_difference": (
        "synchronise the clocks, or raise max_time_difference"
    ),
    "no_valid_pixel": "check min_depth and max_depth: no ground truth lies between them",
    "depth_without_uncertainty": "remap uncertainty/image_rect, or make its input reliable",
    "uncertainty_without_depth": "remap depth/image_rect, or make its input reliable",
    "uncertainty_wrong_size": "both maps must be of one model: check the remaps",
    "camera_info_wrong_aspect": "remap camera_info: it is of another camera or size",
    "camera_info_wrong_size": "remap camera_info: it is of another camera or size",
    "image_unknown_encoding": "remap another topic, or let the driver publish rgb8",
    "over_budget": "the fewest samples take longer than frame_budget_ms: raise it",
    "views_failed": "see the log: points or color images fail, the maps are published",
}


def with_advice(reason: str, rate_hz: float) -> str:
    """Return a reason with its rate and what to do; without advice where there is none."""
    advice = ADVICE.get(reason) or ADVICE.get(reason.partition(".")[0])
    return f"{reason} {rate_hz:.1f}/s" + (f" ({advice})" if advice else "")
