# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The delivery benchmark counts what it sends and receives; how much arrives, no test asserts."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from benchmarks.delivery import Delivery, measure, table


def test_every_image_of_a_reliable_subscription_arrives():
    delivery = measure("", is_reliable=True, images=5)
    assert delivery.sent == len(delivery.latencies_ms) == 5
    assert min(delivery.latencies_ms) > 0


def test_table():
    deliveries = [
        Delivery("", True, 4, [1.0, 2.0, 3.0]),
        Delivery("LARGE_DATA", False, 4, []),
    ]
    assert table(deliveries).splitlines()[-2:] == [
        "| not set | reliable | 3 of 4 | 2.0 | 2.9 |",
        "| LARGE_DATA | best effort | 0 of 4 | - | - |",
    ]
