# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure what the node adds to the network: decoding, resizing, messages and publishing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import rclpy
import torch
from rclpy.context import Context
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header
from tqdm import trange

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.network.hourglass import Hourglass
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.messages import image_message

NETWORK = NetworkConfig(backbone="resnet18", head="laplace", input_size=(320, 240))
CAMERA = (640, 480)
RUNS = {"deterministic": 1, "mc_dropout": 8}


def run(repetitions: int = 15) -> str:
    """Return a table of ms per 640x480 rgb8 image: the whole callback, and its network passes."""
    rows = [_measure(method, samples, repetitions) for method, samples in RUNS.items()]
    head = (
        f"{'node with':24}{'node ms':>10}{'network ms':>12}{'around it ms':>14}"
        f"{'around / network':>18}"
    )
    return "\n".join([head, *rows])


def _measure(method: str, samples: int, repetitions: int) -> str:
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
        times_ms = _alternate(calls, repetitions, method)
        node.close()
    rclpy.shutdown(context=context)
    return _row(f"{method}, {samples} sample{'s' * (samples > 1)}", times_ms)


def _row(label: str, times_ms: Mapping[str, Sequence[float]]) -> str:
    node_ms = float(np.median(times_ms["node"]))
    network_ms = float(np.median(times_ms["network"]))
    around_ms = node_ms - network_ms
    return (
        f"{label:24}{node_ms:10.1f}{network_ms:12.1f}{around_ms:14.1f}"
        f"{around_ms / network_ms:18.2f}"
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


def _alternate(
    calls: dict[str, Callable[[], object]], repetitions: int, name: str
) -> dict[str, list[float]]:
    """Return the ms of each call; the calls alternate so that other load affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in trange(repetitions + 2, desc=name):
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            if repetition >= 2:
                times[key].append((time.perf_counter() - start) * 1e3)
    return times
