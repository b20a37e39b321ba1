# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Frames that fail: each is counted once, under its reason, and logged."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from rclpy.node import Node

from uncertainty_depth.errors import MessageError
from uncertainty_depth.ros.diagnostics import Health

LOG_EVERY_S = 5.0


def drop(node: Node, health: Health, reason: str, sentence: str) -> None:
    """Count a dropped frame under its reason, and log the sentence."""
    health.drop(reason)
    node.get_logger().warning(f"dropped ({reason}): {sentence}", throttle_duration_sec=LOG_EVERY_S)


def drop_failed(node: Node, health: Health, error: Exception) -> None:
    """Count a frame that failed under its reason, and log the error."""
    if isinstance(error, MessageError):
        drop(node, health, error.reason, str(error))
    elif node.context.ok():  # e.g. out of memory: the next frame may pass
        drop(node, health, "failed", "".join(traceback.format_exception(error)))
    else:
        health.drop("shutdown")


@contextmanager
def views_of_published_maps(node: Node, health: Health) -> Iterator[None]:
    """Count and log what fails once the maps of a frame are published: it drops no frame."""
    try:
        yield
    except Exception as error:
        if node.context.ok():  # else a signal struck meanwhile
            health.count("views_failed")
            node.get_logger().warning(
                f"points or color images failed: {error}", throttle_duration_sec=LOG_EVERY_S
            )
