# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The share of the node: a small run gives its values, and frames are published."""

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from benchmarks import node


def test_a_small_run_gives_its_values():
    plan = node.Plan(network_ms=1.0, rate=5.0, seconds=1.0, rounds=1)
    found = node.run(plan)
    assert found["share_ms"] > 0
    assert found["rectified_ms"] > found["publishing_ms"] > 0
    assert found["taking_ms"] > 0
    for (rate,) in found["per_second"].values():
        assert 0 < rate <= plan.rate
    assert len(found["meanwhile_of_in_turn"]) == 1
