# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure what the node adds to the network: decoding, resizing, messages and publishing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import rclpy
import torch
from rclpy.context import Context
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from benchmarks.rounds import Spread, alternate, load, markdown
from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.messages import image_message

NETWORK = NetworkConfig(backbone="resnet18", head="laplace", input_size=(320, 240))
CAMERA = (640, 480)
RUNS = {"deterministic": 1, "mc_dropout": 8}


class Row(NamedTuple):
    """Milliseconds for an image: the whole callback, its network passes, and what is between."""

    node_with: str
    node_ms: Spread
    network_ms: Spread
    around_ms: Spread
    around_of_network: Spread


def run(repetitions: int = 15) -> list[Row]:
    """Time 640x480 rgb8 images."""
    return [_measure(method, samples, repetitions) for method, samples in RUNS.items()]


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ("node with", "node ms", "network ms", "around it ms", "around / network")
    return f"{markdown(head, rows)}\n\n{load()}"


def _measure(method: str, samples: int, repetitions: int) -> Row:
    context = Context()
    rclpy.init(context=context)
    with tempfile.TemporaryDirectory() as folder:
        node = DepthNode(
            context=context, parameter_overrides=_parameters(Path(folder), method, samples)
        )
        (camera,) = node.cameras
        camera.camera.add(CameraInfo(width=CAMERA[0], height=CAMERA[1]))
        message = _camera_image()

        def predict() -> None:
            camera.queue.put(message)
            node._predict_waiting()

        calls = {
            "node": predict,
            "network": _network_alone(Predictor(folder, node.config)),
        }
        seconds = alternate(calls, repetitions, warm_up=2, description=method)
        node.close()
    rclpy.shutdown(context=context)
    node_ms = 1e3 * seconds["node"]
    network_ms = 1e3 * seconds["network"]
    around_ms = node_ms - network_ms
    return Row(
        f"{method}, {samples} sample{'s' * (samples > 1)}",
        Spread.of(node_ms),
        Spread.of(network_ms),
        Spread.of(around_ms),
        Spread.of(around_ms / network_ms),
    )


def _network_alone(predictor: Predictor) -> Callable[[], object]:
    """Return a call of the same samples from an image that is already a tensor."""
    width, height = NETWORK.input_size
    image = torch.rand(1, 3, height, width, device=predictor.device)

    @torch.inference_mode()
    def call() -> object:
        return predictor._estimator.estimate(image, 0, predictor.config)

    return call


def _parameters(folder: Path, method: str, samples: int) -> list[Parameter]:
    network = Hourglass(NETWORK)
    create(folder, network, {})
    write_member(folder, "only", network)
    set_members(folder, ["only"], method)
    values = {"model": str(folder), "samples": samples, "max_frame_age": 0.0}
    return [Parameter(name, value=value) for name, value in values.items()]


def _camera_image() -> Image:
    pixels = np.random.default_rng(0).integers(0, 256, (CAMERA[1], CAMERA[0], 3), np.uint8)
    return image_message(pixels, Header(frame_id="camera"))


if __name__ == "__main__":
    print(table(run()))
