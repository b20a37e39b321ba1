# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What is said where ROS is missing; this file runs without it."""

from __future__ import annotations

import signal
import sys

import pytest

from uncertainty_depth.cli.main import main
from uncertainty_depth.ros import main as node_main
from uncertainty_depth.ros.requirements import RosMissingError, require_ros


@pytest.fixture
def without_rclpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)  # the node commands set their own


def test_sentence_names_what_to_do(without_rclpy):
    with pytest.raises(
        RosMissingError,
        match=r"ROS 2 is not available .*source a ROS distribution.*"
        r"pip install '\.\[ros\]'",
    ):
        require_ros()


@pytest.mark.parametrize("node", [node_main.depth_node, node_main.evaluator_node])
def test_nodes_without_rclpy_exit_1_with_one_sentence(node, without_rclpy, capsys):
    assert node([]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert ".[ros]" in lines[0]


def test_play_without_rclpy_exits_1_with_one_sentence(without_rclpy, capsys, tmp_path):
    assert main(["play", str(tmp_path)]) == 1
    assert ".[ros]" in capsys.readouterr().err
