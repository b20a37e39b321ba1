# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score the demo's model on photographs: as it is, calibrated, and fine-tuned on such frames.

python -m benchmarks.elsewhere NYU_DIR KITTI_DRIVE_DIR --output DIR [--model indoor]
    [--also MODEL_DIR]

Of NYU Depth v2 the training split is learned from, and every third image of the test split is
scored; of the KITTI drive the first half, and the second. In rooms that it has not seen the
demo's model is scored as it is, and so are other models everywhere. Killed, it goes on.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.error_prior import prior_of
from experiments.nyu_scores import CONFIG
from experiments.runner import resume
from experiments.tables import markdown
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.config.training import TrainingConfig
from uncertainty_depth.core.model_location import NAMES, model_path
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import set_calibration, set_error_prior
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.run import train
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.sigma.calibration.report import record
from uncertainty_depth.sigma.calibration.run import calibrate
from uncertainty_depth.stream.opening import open_source
from uncertainty_depth.stream.stream import predicted

STREET_RANGE_M = (0.5, 80.0)
UNSEEN = "synthetic:worlds=16,frames=3,rate=0.5,seed=20000,test_objects=true,dense=true"
COLUMNS = {
    "MAE (m)": "depth.mae",
    "abs_rel": "depth.abs_rel",
    "rmse (m)": "depth.rmse",
    "a1": "depth.a1",
    "AUSE rmse": "uncertainty.ause.rmse",
    "of constant": "baselines.constant.ause.rmse",
    "of depth": "baselines.proportional_to_depth.ause.rmse",
    "AUCE (Laplace)": "uncertainty.auce_laplace",
    "95 % (Laplace)": "uncertainty.coverage_95_laplace",
}


class Part:
    """The records of a source at these indices. A `Source`."""

    def __init__(self, source: Source, indices: range) -> None:
        self.name = f"{source.name}, {indices}"
        self.notes: list[str] = []
        self._source = source
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        indices = self._indices
        return islice(iter(self._source), indices.start, indices.stop, indices.step)


@dataclass(frozen=True)
class Place:
    """Where the model goes, frames to learn from there, and frames to be scored on.

    Attributes:
        name: in the table.
        scored: scored on.
        learned: trained and calibrated on; None if the model is at home.
        epochs: of the fine-tuning.
        depth_range: of a network trained anew, for as many epochs; None trains none.
    """

    name: str
    scored: Source
    learned: Source | None = None
    epochs: int = 0
    depth_range: tuple[float, float] | None = None


def places(nyu: str, kitti: str, epochs: tuple[int, int]) -> list[Place]:
    """Return all places."""
    options = SourceConfig()
    drive = open_source(f"kitti:{kitti}", options)
    half = len(drive) // 2
    nyu_learned = open_source(f"nyu:{nyu}:train", options)
    nyu_scored = open_source(f"nyu:{nyu}:test", options)
    first = Part(drive, range(half))
    second = Part(drive, range(half, len(drive)))
    third = Part(nyu_scored, range(0, len(nyu_scored), 3))
    return [
        Place("rooms", open_source(UNSEEN, options)),
        Place("NYU", third, nyu_learned, epochs[0]),
        Place("KITTI", second, first, epochs[1], STREET_RANGE_M),
    ]


def models(
    place: Place, output: Path, start_from: Path, also: Sequence[Path]
) -> dict[str, tuple[Path, bool]]:
    """Return title to model folder and whether its calibration is used; makes them if needed."""
    rows = {"as shipped": (start_from, False)}
    rows |= {path.name: (path, False) for path in also}
    if place.learned is None:
        return rows
    folder = output / place.name.lower()
    calibrated = folder / "calibrated"
    if not (calibrated / "model.json").exists():
        shutil.copytree(start_from, calibrated)
    if not read_model(calibrated).calibration:
        calibrate_on(calibrated, place.learned)
    rows["calibrated"] = (calibrated, True)
    shipped = read_model(start_from)
    training = TrainingConfig(method="mc_dropout", epochs=place.epochs, patience=place.epochs)
    tuned = folder / "fine_tuned"
    start = time.perf_counter()
    from_shipped = replace(training, from_model=str(start_from))
    train(place.learned, tuned, shipped.network, from_shipped, resume=True)
    print(f"{place.name}: fine-tuned for {(time.perf_counter() - start) / 60:.1f} min", flush=True)
    rows["fine-tuned"] = (tuned, False)
    if place.depth_range and shipped.network.depth_range[1] < place.depth_range[1]:
        anew = folder / "anew"
        network = replace(shipped.network, depth_range=place.depth_range)
        train(place.learned, anew, network, training, resume=True)
        predictor = Predictor(anew, PredictorConfig(device="cpu"))
        set_error_prior(anew, prior_of(predictor, place.learned))
        low, high = place.depth_range
        rows[f"trained anew, {low:g} to {high:g} m"] = (anew, False)
    return rows


def calibrate_on(folder: Path, source: Source) -> None:
    """Write the map that `calibrate --force` would, and say what it does to the frames kept."""
    predictor = Predictor(folder, PredictorConfig(calibrated=False, device="cpu"))
    config = CalibrationConfig(distribution=distribution_of(predictor.model.network.head))
    calibration = calibrate([predicted(source, predictor)], config)
    before, after = calibration.scores()
    print(f"{source.name}: {calibration.choice.sigma_map.name}, {before} -> {after}", flush=True)
    print(f"rejected: {calibration.rejected() or 'no'}", flush=True)
    key = predictor.method
    set_calibration(
        folder, key, calibration.choice.sigma_map, record(calibration, predictor.passes)
    )


def score(folder: Path, calibrated: bool, source: Source) -> dict[str, Any]:
    """Return all metrics, by dotted name, as `evaluate` has them."""
    predictor = Predictor(folder, PredictorConfig(calibrated=calibrated, device="cpu"))
    evaluation = evaluate(predicted(source, predictor), CONFIG)
    if evaluation.interrupted:
        raise KeyboardInterrupt
    return flatten(evaluation.summary())


def scores(place: Place, made: dict[str, tuple[Path, bool]], folder: Path) -> list[dict[str, Any]]:
    """Return the metrics of each model; those of an earlier run are read."""

    def compute(title: str) -> dict[str, Any]:
        return score(*made[title], place.scored)

    settings = {"frames": len(place.scored), "epochs": place.epochs}
    return resume(folder, made, settings, compute, place.name)


def cell(value: float | None) -> str:
    """Return the value with three digits; a dash if there is none."""
    return "–" if value is None else f"{value:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nyu")
    parser.add_argument("kitti")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=int, nargs=2, default=(20, 100), metavar=("NYU", "KITTI"))
    parser.add_argument("--model", choices=NAMES, default=NAMES[0])
    parser.add_argument("--also", type=Path, nargs="*", default=[], metavar="MODEL_DIR")
    arguments = parser.parse_args()
    rows = []
    for place in places(arguments.nyu, arguments.kitti, tuple(arguments.epochs)):
        made = models(place, arguments.output, model_path(arguments.model), arguments.also)
        found = scores(place, made, arguments.output / "results" / place.name)
        for title, metrics in zip(made, found, strict=True):
            cells = [cell(metrics[key]) for key in COLUMNS.values()]
            rows.append([f"{place.name}, {title}", *cells])
    print(markdown(["", *COLUMNS], rows))


if __name__ == "__main__":
    main()
