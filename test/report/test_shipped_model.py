# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The shipped model is green in worlds like its training and red on a street."""

import os
from pathlib import Path

import numpy as np
import pytest

import uncertainty_depth
from test.conftest import ListSource
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import Subsampled
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.report.verdict import judge
from uncertainty_depth.stream.opening import open_source, trained_on
from uncertainty_depth.stream.stream import predicted

MODEL = Path(uncertainty_depth.__file__).parent / "models" / "demo"
DRIVE = Path("kitti_raw") / "2011_09_26" / "2011_09_26_drive_0000_sync"


@pytest.fixture(scope="module")
def predictor():
    return Predictor(MODEL)


needs_data = pytest.mark.skipif(
    "UNCERTAINTY_DEPTH_DATA" not in os.environ,
    reason="UNCERTAINTY_DEPTH_DATA does not name the folder with kitti_raw",
)


def street(index):
    """A road between house fronts, seen from a car, with the sparse depth of a LiDAR."""
    camera = Camera.pinhole(0.79 * 640, width=640, height=360)
    random = np.random.default_rng(index)
    (focal, _, column), (_, _, row), _ = camera.intrinsics
    v, u = np.mgrid[: camera.height, : camera.width]
    with np.errstate(divide="ignore"):
        road = np.where(v > row, 1.6 * focal / (v - row), np.inf)
        fronts = random.uniform(6, 12) * focal / np.abs(u - column)
    depth = np.minimum(np.minimum(road, fronts), random.uniform(60, 90))
    shade = np.where(depth == road, 0.35, np.where(depth == fronts, 0.6, 0.9))
    shade = shade * random.uniform(0.8, 1.2, depth.shape)
    image = np.repeat((255 * shade.clip(0, 1))[..., None], 3, axis=2).astype(np.uint8)
    seen = random.random(depth.shape) < 0.05
    truth = np.where(seen, depth, np.nan).astype(np.float32)
    return Frame(index * 10**9, f"{index}", camera, image, ground_truth_m=truth)


def verdict_on(source, predictor):
    evaluation = evaluate(predicted(source, predictor), progress=False)
    seen = trained_on(predictor.model.name, predictor.model.training, [source.name])
    return judge(evaluation, predictor.describe(), seen)


def colors(verdict):
    return {line.name: line.color for line in verdict.lines}


def test_street_is_red_in_depth_size_and_domain(predictor):
    verdict = verdict_on(ListSource(map(street, range(6))), predictor)
    found = colors(verdict)
    assert verdict.color == "red"
    assert found["depth"] == found["size"] == found["domain"] == "red"


@needs_data
def test_a_kitti_drive_is_red_in_depth_size_and_domain(predictor):
    drive = Path(os.environ["UNCERTAINTY_DEPTH_DATA"]) / DRIVE
    source = Subsampled(open_source(f"kitti:{drive}", SourceConfig()), 6)
    found = colors(verdict_on(source, predictor))
    assert found["depth"] == found["size"] == found["domain"] == "red"


@needs_data
def test_a_street_is_unfamiliar_to_the_model_for_rooms_and_other_rooms_of_its_camera_are_not():
    predictor = Predictor("indoor", PredictorConfig(method="deterministic"))
    data = Path(os.environ["UNCERTAINTY_DEPTH_DATA"])

    def share_above_one(notation, frames):
        source = Subsampled(open_source(notation, SourceConfig()), frames)
        scores = [predictor.predict(frame.image).unfamiliarity for frame in source]
        return np.mean([score > 1 for score in scores])

    assert share_above_one(f"kitti:{data / DRIVE}", 6) > 0.8
    assert share_above_one(f"nyu:{data / 'nyuv2'}:test", 40) < 0.1


def test_worlds_like_the_training_are_not_red(predictor):
    source = open_source("synthetic:worlds=24,frames=1,seed=20000,rate=0.5", SourceConfig())
    predictor.config = PredictorConfig(samples=3)
    found = colors(verdict_on(source, predictor))
    predictor.config = PredictorConfig()
    assert "red" not in found.values(), found
    assert found["domain"] == "green"


def test_worlds_of_the_training_are_red_in_domain(predictor):
    source = open_source("synthetic:worlds=1,frames=1,seed=1", SourceConfig())
    assert colors(verdict_on(source, predictor))["domain"] == "red"
