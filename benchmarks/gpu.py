# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a GPU gives: the CPU's maps, how fast, in which memory, and what it does without any.

python -m benchmarks.gpu [--device cuda] [--seconds 330]    # a card, at most so long
python -m benchmarks.gpu --device cpu --tiny                # a minute, tries the script alone
python -m benchmarks.gpu --device cpu --operations          # counts alone, no times

Prints JSON. The networks have random weights, but for `demo` and `indoor`. Each part is guarded: a
failure is a value of it, and ends no other; parts come in order of worth.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.errors import UncertaintyDepthError
from uncertainty_depth.depth.estimators import ESTIMATORS, Estimator
from uncertainty_depth.depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor

METHODS = {"mc_dropout": 1, "mirrored": 1, "multi_epochs": 8}
"""The members that each has; snapshots share their encoder."""
OPERATIONS_OF = (8, 16, 64)
"""Numbers of samples."""
PART_S = 5.0
"""A part is not begun with less time left."""
WARM_UP = 3
"""Frames that choose kernels and record graphs."""
SCARCE_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Plan:
    """What is measured: on a card, or a small version of it that tries the script."""

    device: str
    shipped: tuple[str, ...] = ("indoor", "demo")
    backbones: tuple[str, ...] = ("resnet18", "mobilenet_v2")
    sizes: tuple[tuple[int, int], ...] = ((256, 192), (640, 480))
    precisions: tuple[str, ...] = ("auto", "fp32", "tf32", "fp16")
    methods: tuple[str, ...] = tuple(METHODS)
    samples: tuple[int, ...] = (1, 8, 16)
    frames: int = 40
    seconds: float = 330.0

    @property
    def image(self) -> NDArray[np.uint8]:
        """Patches of colour, 640x480."""
        colors = np.random.default_rng(0).integers(0, 256, (15, 20, 3))
        return np.kron(colors, np.ones((32, 32, 1))).astype(np.uint8)


TINY = Plan(
    "cpu",
    shipped=("demo",),
    backbones=("tiny",),
    sizes=((64, 48),),
    precisions=("auto",),
    methods=("mc_dropout",),
    samples=(1, 4),
    frames=1,
)


@dataclass
class Models:
    """Model folders of random weights, each written once."""

    root: Path
    written: dict[Any, Path] = field(default_factory=dict)

    def folder(self, backbone: str, size: tuple[int, int], method: str) -> Path:
        """Return the folder of an hourglass with a Laplace head."""
        key = (backbone, size, method)
        if key in self.written:
            return self.written[key]
        folder = self.root / "_".join(map(str, (backbone, *size, method)))
        names = [f"m{number}" for number in range(METHODS[method])]
        config = NetworkConfig(backbone=backbone, input_size=size, head="laplace")
        for number, name in enumerate(names):
            torch.manual_seed(number)
            network = Hourglass(config)
            if number == 0:
                encoder = network.encoder.state_dict()
            network.encoder.load_state_dict(encoder)
            if len(names) > 1:
                network.freeze_encoder()
            if number == 0:
                create(folder, network, {})
            write_member(folder, name, network)
        set_members(folder, names, method)
        self.written[key] = folder
        return folder


def duration_ms(call: Callable[[], Any], frames: int) -> float:
    """Return the median time of a call, which ends with its result on the host."""
    durations = []
    for _ in range(WARM_UP + frames):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    del durations[:WARM_UP]
    return 1e3 * statistics.median(durations)


def equality(plan: Plan) -> dict[str, Any]:
    """Return how far depth and sigma of the shipped models are from the CPU's, as fractions."""
    rows: dict[str, Any] = {}
    for name in plan.shipped:
        for method in ("deterministic", ""):
            expected = Predictor(name, method=method, device="cpu").predict(plan.image, 1)
            for precision in plan.precisions:
                predictor = Predictor(name, method=method, device=plan.device, precision=precision)
                found = predictor.predict(plan.image, 1)
                again = predictor.predict(plan.image, 1)
                depth = np.abs(found.depth_m / expected.depth_m - 1)
                sigma = np.abs(found.sigma_m / expected.sigma_m - 1)
                described = predictor.describe()
                rows[f"{name}, {described['method']}, {precision}"] = {
                    "precision": described["precision"],
                    "depth_mean": float(depth.mean()),
                    "depth_max": float(depth.max()),
                    "sigma_mean": float(sigma.mean()),
                    "unfamiliarity": [expected.unfamiliarity, found.unfamiliarity],
                    "repeats": bool(np.array_equal(found.depth_m, again.depth_m)),
                }
    return rows


class Operations(TorchDispatchMode):
    """Counts the operations that a GPU is launched for: all but those that give a view."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        given = {tensor.untyped_storage().data_ptr() for tensor in _tensors((args, kwargs))}
        made = any(tensor.untyped_storage().data_ptr() not in given for tensor in _tensors(result))
        self.count += function._schema.is_mutable or made
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def operations(plan: Plan) -> dict[str, Any]:
    """Return the operations of a frame as a GPU computes it, without graphs: here on the CPU.

    Their number does not depend on the image's size.
    """
    rows = {}
    image = torch.rand(1, 3, 48, 64)
    for backbone in plan.backbones:
        config = NetworkConfig(backbone=backbone, input_size=(64, 48), head="laplace")
        network = prepare(Hourglass(config), torch.device("cpu"), "fp32")
        with torch.inference_mode(), Operations() as of_pass:
            network(image)
        for method in plan.methods:
            decoders = [copy.deepcopy(network.decoder) for _ in range(METHODS[method])]
            members = [copy.copy(network) for _ in decoders]
            for member, decoder in zip(members, decoders, strict=True):
                member._modules = {**network._modules, "decoder": decoder}
            kind: Any = ESTIMATORS[method]
            estimator = kind(members if method == "multi_epochs" else members[0])
            estimator.few_launches = True
            estimator.run = without_graphs
            for samples in OPERATIONS_OF[: 1 if method == "multi_epochs" else None]:
                options = PredictorConfig(samples=samples)
                estimator.estimate(image, 0, options)  # finds shapes, and stacks members
                with Operations() as of_frame:
                    estimator.estimate(image, 1, options).stacked()
                rows[f"{backbone}, {method}, M = {samples}"] = {
                    "pass": of_pass.count,
                    "frame": of_frame.count,
                    "ratio": round(of_frame.count / of_pass.count, 2),
                }
    return rows


def without_graphs(function: Callable[..., Any], *inputs: Any) -> Any:
    """Stand in for `Estimator.run`."""
    return function(*inputs)


def speed(plan: Plan, models: Models) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a part for each network, size, method and precision."""
    for size in plan.sizes:
        for backbone in plan.backbones:
            for method in plan.methods:
                for precision in plan.precisions:
                    folder = models.folder(backbone, size, method)
                    name = f"{backbone} {size[0]}x{size[1]} {method} {precision}"
                    yield name, partial(of_speed, plan, folder, precision)


def of_speed(plan: Plan, folder: Path, precision: str) -> dict[str, Any]:
    """Return the times of a frame and of a lone pass, with and without graphs, and the memory."""
    cuda = torch.device(plan.device).type == "cuda"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    options: dict[str, Any] = {"device": plan.device, "precision": precision}
    alone = Predictor(folder, method="deterministic", **options)
    pass_ms = duration_ms(lambda: alone.predict(plan.image, 1), plan.frames)
    rows: dict[str, Any] = {"pass_ms": pass_ms}
    predictor = Predictor(folder, samples=max(plan.samples), **options)
    for samples in plan.samples:
        predictor.config = replace(predictor.config, samples=samples)
        frame_ms = duration_ms(lambda: predictor.predict(plan.image, 1), plan.frames)
        rows[f"M = {samples}"] = {"ms": frame_ms, "of_a_pass": frame_ms / pass_ms}
    if cuda:
        rows["peak_mib"] = torch.cuda.max_memory_allocated() // 2**20
        run = Estimator.run
        Estimator.run = staticmethod(without_graphs)  # type: ignore[assignment,method-assign]
        try:
            rows["without_graphs_ms"] = duration_ms(
                lambda: predictor.predict(plan.image, 1), plan.frames
            )
        finally:
            Estimator.run = run  # type: ignore[method-assign]
    return rows


def out_of_memory(plan: Plan, models: Models) -> list[str]:
    """Return what is said with too little memory, at load and at run time, and afterwards."""
    folder = models.folder(plan.backbones[0], plan.sizes[-1], "mc_dropout")
    options: dict[str, Any] = {"device": plan.device, "samples": 16, "precision": "fp32"}
    predictor = Predictor(folder, **options)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    little = (torch.cuda.memory_allocated() + SCARCE_BYTES) / total
    told = []
    torch.cuda.set_per_process_memory_fraction(little, 0)
    try:
        for what, call in (
            ("a frame", lambda: predictor.predict(plan.image, 1)),
            ("loading", lambda: Predictor(folder, **options)),
        ):
            try:
                call()
                told.append(f"{what}: fits")
            except UncertaintyDepthError as error:
                told.append(f"{what}: {error}")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, 0)
    predictor.predict(plan.image, 2)
    return [*told, "works afterwards"]


def two_threads(plan: Plan, models: Models) -> dict[str, Any]:
    """Return whether two predictors in two threads give the maps of one, and in what time."""
    folder = models.folder(plan.backbones[0], plan.sizes[0], "mc_dropout")
    predictors = [Predictor(folder, device=plan.device, samples=4) for _ in range(2)]
    expected = predictors[0].predict(plan.image, 5).depth_m
    one_ms = duration_ms(lambda: predictors[0].predict(plan.image, 5), plan.frames)
    with ThreadPoolExecutor(2) as pool:

        def both() -> list[NDArray[np.float32]]:
            return [*pool.map(lambda each: each.predict(plan.image, 5).depth_m, predictors)]

        are_equal = all(np.array_equal(found, expected) for found in both())
        return {"equal": are_equal, "two_of_one": duration_ms(both, plan.frames) / one_ms}


def run(plan: Plan, only_operations: bool = False) -> dict[str, Any]:
    """Return all parts by name, an error in place of one that failed."""
    start = time.perf_counter()
    is_cuda = torch.device(plan.device).type == "cuda"
    machine = {"torch": torch.__version__, "cuda": torch.version.cuda}
    if is_cuda:
        machine["gpu"] = torch.cuda.get_device_name(plan.device)
    found: dict[str, Any] = {"machine": machine}
    with tempfile.TemporaryDirectory() as folder:
        models = Models(Path(folder))
        parts: list[tuple[str, Callable[[], Any]]] = [("operations", lambda: operations(plan))]
        if not only_operations:
            parts.insert(0, ("equality", lambda: equality(plan)))
            parts += speed(plan, models)
            parts.insert(-1, ("two_threads", lambda: two_threads(plan, models)))
            if is_cuda:
                parts.insert(2, ("out_of_memory", lambda: out_of_memory(plan, models)))
        for name, part in tqdm(parts, desc="parts", disable=None):
            if time.perf_counter() - start > plan.seconds - PART_S:
                found[name] = "no time left"
                continue
            try:
                found[name] = part()
            except Exception as error:  # the other parts are worth having
                logging.getLogger(__name__).exception("%s failed", name)
                found[name] = f"{type(error).__name__}: {error}"
    return found


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=Plan.seconds)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--operations", action="store_true", help="count operations alone")
    arguments = parser.parse_args()
    plan = replace(
        TINY if arguments.tiny else Plan(arguments.device),
        device=arguments.device,
        seconds=arguments.seconds,
    )
    print(json.dumps(run(plan, arguments.operations), indent=1))


if __name__ == "__main__":
    main()
