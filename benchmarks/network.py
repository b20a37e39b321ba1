# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What sharing work between samples saves.

A ResNet-18 hourglass at 320x240: eight samples of MC dropout, eight snapshots with one encoder.

Each method is timed against eight whole passes of the same network, and against its floor: the
shared part once and eight times the rest, each timed alone, without masks and without
accumulating. All runs alternate, so that other load on the machine hits all of them alike.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from benchmarks.rounds import Seconds, Spread, alternate, load, markdown
from uncertainty_depth.config import NetworkConfig, PredictorConfig
from uncertainty_depth.inference.deployment import choose_device, prepare
from uncertainty_depth.network.architectures import make_network
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty import Ensemble, McDropout

STAMP_NS = 1_700_000_000_123_456_789
NETWORK = NetworkConfig(backbone="resnet18", head="laplace", input_size=(320, 240))


class Row(NamedTuple):
    """One method: milliseconds a frame, and its ratios to the naive way and to the floor."""

    method: str
    milliseconds: Spread
    naive_ms: Spread
    floor_ms: Spread
    of_naive: Spread
    of_floor: Spread


def run(
    repetitions: int = 9,
    config: PredictorConfig = PredictorConfig(),  # noqa: B008  frozen
    network: NetworkConfig = NETWORK,
) -> list[Row]:
    """Time both methods on `config`'s device and precision, with its samples and chunk.

    Raises:
        ConfigError: CUDA is asked for where there is none.
    """
    device = choose_device(config.device)
    torch.manual_seed(config.seed)
    precision = "fp32" if config.precision == "auto" else config.precision  # as torch is served
    model = prepare(make_network(network), device, precision)
    width, height = network.input_size
    image = torch.rand(1, 3, height, width, device=device)
    with torch.inference_mode():
        calls = {**_mc_dropout(model, image, config), **_multi_epochs(model, image, config)}
        finished = {name: partial(_finish, call, device) for name, call in calls.items()}
        seconds = alternate(finished, repetitions, description="network")
    return [_row(method, seconds) for method in ("mc_dropout", "multi_epochs")]


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ("method", "ms per frame", "naive ms", "floor ms", "of naive", "of floor")
    return markdown(head, rows) + f"\n\n{load()}"


Runs = dict[str, Callable[[], object]]


def _mc_dropout(network: DepthNetwork, image: torch.Tensor, config: PredictorConfig) -> Runs:
    estimator = McDropout(network)
    size = image.shape[-2:]
    keep = [torch.nn.Identity()] * 3
    trunk = network.decoder.trunk(network.encode(image))
    random = copy.deepcopy(network)
    random.decoder.dropouts.train()

    def naive() -> object:
        return _stacked([random(image).depth_m for _ in range(config.samples)])

    def rest() -> None:
        for _ in range(config.samples):
            network.to_metres(network.decoder.branches(trunk, keep), size)

    return {
        "mc_dropout": partial(estimator.estimate, image, STAMP_NS, config),
        "mc_dropout naive": naive,
        "mc_dropout shared": partial(network.trunk, image),
        "mc_dropout rest": rest,
    }


def _multi_epochs(network: DepthNetwork, image: torch.Tensor, config: PredictorConfig) -> Runs:
    shared = {id(network.encoder): network.encoder}
    networks = [copy.deepcopy(network, dict(shared)) for _ in range(config.samples)]
    estimator = Ensemble(networks)
    features = network.encode(image)
    size = image.shape[-2:]

    def naive() -> object:
        return _stacked([member(image).depth_m for member in networks])

    def rest() -> None:
        for member in networks:
            member.decode(features, size)

    return {
        "multi_epochs": partial(estimator.estimate, image, STAMP_NS, config),
        "multi_epochs naive": naive,
        "multi_epochs shared": partial(network.encode, image),
        "multi_epochs rest": rest,
    }


def _stacked(depths: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    samples = torch.stack(depths)
    return samples.mean(0), samples.var(0, correction=0)


def _finish(call: Callable[[], object], device: torch.device) -> None:
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()


def _row(method: str, seconds: Seconds) -> Row:
    sampling_s = seconds[method]
    naive_s = seconds[f"{method} naive"]
    floor_s = seconds[f"{method} shared"] + seconds[f"{method} rest"]
    return Row(
        method,
        milliseconds=Spread.of(1e3 * sampling_s),
        naive_ms=Spread.of(1e3 * naive_s),
        floor_ms=Spread.of(1e3 * floor_s),
        of_naive=Spread.of(sampling_s / naive_s),
        of_floor=Spread.of(sampling_s / floor_s),
    )


if __name__ == "__main__":
    print(table(run()))
