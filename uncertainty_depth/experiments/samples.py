# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fewer samples cost in quality, and which noise needs the fewest.

MC dropout with M samples whose noise is independent, antithetic or stratified, variance propagated
without samples, one pass, and one sample a frame with a memory; scored against ground truth, and
against many samples of other noise. On the shipped model in worlds it never saw, of its total
sigma and of the spread alone, and on a network without a head on NYU, where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from uncertainty_depth.config import PredictorConfig, SourceConfig
from uncertainty_depth.data.source import open_source
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.experiments import samples_report
from uncertainty_depth.experiments.data_folders import NYU
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.experiments.samples_ways import Memory, Propagated
from uncertainty_depth.inference.deployment import prepare
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.network.encoder import image_tensor, resize_image
from uncertainty_depth.records import Frame
from uncertainty_depth.shipped_model import SHIPPED_MODEL
from uncertainty_depth.uncertainty import Deterministic, McDropout
from uncertainty_depth.uncertainty.moments import Estimate

CPU = torch.device("cpu")
THINNED = 3  # one of so many rows and columns is scored
NYU_MODEL = "multi_epochs-0"
REFERENCE_SEED = 10_000
COUNTS = {
    "independent": (1, 2, 4, 8, 16, 32, 64),
    "antithetic": (2, 4, 8, 16),
    "stratified": (2, 4, 8, 16, 32),
}
DRIVES = {"2 cm a frame": 30.0, "7 cm a frame": 10.0, "22 cm a frame": 3.0}
"""Frame rates of a robot that drives at 0.65 m/s."""
COMPARED = ("one pass", "independent 8", "stratified 8", "independent 64")
"""With a memory, at the end of a drive."""
METRICS = {
    "n_merci": "uncertainty.n_merci",
    "n_merci_withdrawn": "uncertainty.n_merci_withdrawn",
    "ause_abs_rel": "uncertainty.ause.abs_rel",
    "ause_rmse": "uncertainty.ause.rmse",
    "ause_a1": "uncertainty.ause.a1",
    "mae": "depth.mae",
}


@dataclass(frozen=True)
class Settings:
    """Size of a run: scored frames, samples of the reference, frames before a drive's scores."""

    frames: int = 12
    reference: int = 256
    before: int = 16


FULL = Settings()
QUICK = Settings(frames=2, reference=32, before=4)


class Scene(NamedTuple):
    """A frame, and the image as the network takes it."""

    frame: Frame
    pixels: Tensor


Way = Callable[[Scene], Estimate]


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Score all ways with noise of several seeds; write tables, summary.json and a plot.

    Args:
        output: of the results; a NYU network is looked for in `models`.
        seeds: of the noise.
        quick: few frames, few samples of the reference.
        data: folder of NYU Depth v2, see `nyu`.

    Raises:
        SourceError: there is a NYU network, and the data are missing.
    """
    torch.set_num_threads(1)
    settings = QUICK if quick else FULL
    nyu = output / "models" / NYU_MODEL
    has_nyu = (nyu / "model.json").exists()
    networks = {"shipped": (SHIPPED_MODEL, _worlds(settings.frames // 2, 2, 0.5))}
    if has_nyu:
        networks["nyu"] = (nyu, f"nyu:{NYU.find(data)}:test")
    results: dict[str, list[Any]] = {}
    for name, (folder, source) in networks.items():
        pieces = [f"{name} {seed}" for seed in range(seeds)]
        scorer = _Scorer(folder, source, settings)
        results[name] = resume(
            output / "results", pieces, {**vars(settings), "source": source}, scorer, name
        )
    drives = [f"{speed}, {seed}" for speed, seed in product(DRIVES, range(seeds))]
    results["drives"] = resume(
        output / "results", drives, vars(settings), lambda piece: _drive(piece, settings), "drives"
    )
    samples_report.write(output, results, [drive.split(",")[0] for drive in drives])


def _worlds(worlds: int, frames: int, rate: float) -> str:
    size = f"worlds={max(worlds, 1)},frames={frames},rate={rate}"
    return f"synthetic:{size},seed=20000,test_objects=true,dense=true"


class _Scorer:
    """Scores all ways on the frames of a source with noise of one seed."""

    def __init__(self, folder: Path, source: str, settings: Settings) -> None:
        self._settings = settings
        self._folder = folder
        self._source = source
        self._scenes: list[Scene] = []

    def __call__(self, piece: str) -> dict[str, Any]:
        """Return scores by way and part of sigma, for a name that ends with the seed."""
        network = load_network(self._folder)
        if not self._scenes:
            self._scenes = _scenes(network, self._source, self._settings.frames)
        seed = int(piece.split()[-1])
        return score(network, self._scenes, _ways(network, seed), self._settings.reference)


def load_network(folder: Path) -> DepthNetwork:
    """Return the last member of a model, prepared for the CPU in float32."""
    model = read(folder)
    return prepare(model.load(model.members[-1]), CPU, "fp32")


def _scenes(network: DepthNetwork, source: str, number: int) -> list[Scene]:
    """Return so many frames of a source, evenly spread."""
    opened = open_source(source, SourceConfig())
    step = max(len(opened) // number, 1)
    scenes: list[Scene] = []
    for index, record in enumerate(opened):
        if index % step == 0 and isinstance(record, Frame) and len(scenes) < number:
            image = resize_image(record.image, network.config.input_size)
            scenes.append(Scene(record, image_tensor(image[None])))
    return scenes


def _ways(network: DepthNetwork, seed: int) -> dict[str, Way]:
    """Return every way by its name; all use the same network."""
    dropout = McDropout(network)
    plain = Deterministic(network)
    propagated = Propagated(network)
    ways: dict[str, Way] = {
        "one pass": lambda scene: plain.estimate(scene.pixels, 0, PredictorConfig()),
        "propagated": lambda scene: propagated.estimate(scene.pixels),
    }
    for sampling, counts in COUNTS.items():
        for count in counts:
            config = PredictorConfig(samples=count, seed=seed, sampling=sampling)
            ways[f"{sampling} {count}"] = partial(_sampled, dropout, config)
    return ways


def _sampled(dropout: McDropout, config: PredictorConfig, scene: Scene) -> Estimate:
    return dropout.estimate(scene.pixels, scene.frame.stamp_ns, config)


def score(
    network: DepthNetwork, scenes: list[Scene], ways: dict[str, Way], reference: int
) -> dict[str, Any]:
    """Return of each way CPU milliseconds a frame, and the scores of its total and its spread."""
    scorings = {name: _Scoring(network) for name in ways}
    dropout = McDropout(network)
    config = PredictorConfig(samples=reference, seed=REFERENCE_SEED, sampling="independent")
    for scene in scenes:
        many = dropout.estimate(scene.pixels, scene.frame.stamp_ns, config)
        for name, way in ways.items():
            start = time.process_time()
            estimate = way(scene)
            scorings[name].add(estimate, many, scene.frame, time.process_time() - start)
    return {name: scoring.result() for name, scoring in scorings.items()}


class _Scoring:
    """The scores of one way."""

    def __init__(self, network: DepthNetwork) -> None:
        law = distribution_of(network.config.head)
        auce = "auce" if law == "gaussian" else f"auce_{law}"
        self._keys = METRICS | {"auce": f"uncertainty.{auce}"}
        self._metrics = {"total": OnlineMetrics(), "spread": OnlineMetrics()}
        self._agreement: dict[str, list[tuple[float, float]]] = {"total": [], "spread": []}
        self._depth_errors: list[float] = []
        self._seconds: list[float] = []

    def add(self, estimate: Estimate, many: Estimate, frame: Frame, seconds: float) -> None:
        self._seconds.append(seconds)
        spread_m = float(many.epistemic.sqrt().mean())
        self._depth_errors.append(float((estimate.depth_m - many.depth_m).abs().mean()) / spread_m)
        for part, name in (("total", "total"), ("spread", "epistemic")):
            depth_m, sigma_m = estimate.maps(name)
            _, reference_m = many.maps(name)
            is_constant = float(np.ptp(sigma_m)) == 0.0
            both = np.stack([sigma_m.ravel(), reference_m.ravel()])
            correlation = 0.0 if is_constant else np.corrcoef(both)[0, 1]
            relative = np.abs(sigma_m - reference_m).mean() / reference_m.mean()
            self._agreement[part].append((float(correlation), float(relative)))
            self._metrics[part].update(
                _thinned(depth_m, frame),
                _thinned(sigma_m, frame),
                frame.ground_truth_m[::THINNED, ::THINNED],
            )

    def result(self) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for part, metrics in self._metrics.items():
            values = flatten(metrics.compute())
            correlation, relative = np.mean(self._agreement[part], axis=0)
            parts[part] = {
                **{name: values[key] for name, key in self._keys.items()},
                "correlation": float(correlation),
                "relative_error": float(relative),
                "depth_error": float(np.mean(self._depth_errors)),
            }
        return {"ms": 1e3 * float(np.median(self._seconds)), **parts}


def _thinned(values_m: NDArray[np.float32], frame: Frame) -> NDArray[np.float32]:
    """Return a map at the image's size, one of `THINNED` rows and columns."""
    height, width = frame.ground_truth_m.shape
    resized = cv2.resize(values_m, (width, height), interpolation=cv2.INTER_LINEAR)
    thinned: NDArray[np.float32] = resized[::THINNED, ::THINNED]
    return thinned


def _drive(piece: str, settings: Settings) -> dict[str, Any]:
    """Score memories at the end of drives of one speed, with noise of one seed."""
    speed, seed = piece.split(", ")
    network = load_network(SHIPPED_MODEL)
    scorings: dict[str, _Scoring] = {}
    dropout = McDropout(network)
    config = PredictorConfig(
        samples=settings.reference, seed=REFERENCE_SEED, sampling="independent"
    )
    frames = settings.before + 1
    for scenes in _drives(network, _worlds(settings.frames // 3, frames, DRIVES[speed]), frames):
        last = scenes[-1]
        many = dropout.estimate(last.pixels, last.frame.stamp_ns, config)
        for name, way in _at_end(network, int(seed), scenes[:-1]).items():
            start = time.process_time()
            estimate = way(last)
            seconds = time.process_time() - start
            scoring = scorings.setdefault(name, _Scoring(network))
            scoring.add(estimate, many, last.frame, seconds)
    return {name: scoring.result() for name, scoring in scorings.items()}


def _at_end(network: DepthNetwork, seed: int, before: list[Scene]) -> dict[str, Way]:
    """Return memories of the frames before the last of a drive, and ways to compare them with."""
    every = _ways(network, seed)
    ways = {name: every[name] for name in COMPARED}
    for name, is_centred in (("memory", False), ("memory, centred", True)):
        memory = Memory(network, seed, is_centred)
        for scene in before:
            memory.estimate(scene.pixels, scene.frame.stamp_ns)
        ways[name] = partial(_remembered, memory)
    return ways


def _remembered(memory: Memory, scene: Scene) -> Estimate:
    return memory.estimate(scene.pixels, scene.frame.stamp_ns)


def _drives(network: DepthNetwork, source: str, frames: int) -> Iterator[list[Scene]]:
    """Yield the frames of each world."""
    scenes = _scenes(network, source, 10**9)
    for start in range(0, len(scenes), frames):
        yield scenes[start : start + frames]
