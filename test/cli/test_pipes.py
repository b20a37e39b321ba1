# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""No input that is a pipe, in which nothing ever comes, lets a command wait."""

import os
import shutil
import signal

import cv2
import numpy as np
import pytest

from test.conftest import save_maps
from test.core.test_output import CONTEXT
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation

LIMIT_S = 20.0


class TooLateError(BaseException):
    """What a command does not catch."""


@pytest.fixture
def inputs(tmp_path):
    """Write one small input of every kind."""
    report.write(Evaluation(), tmp_path / "report", CONTEXT, images=False)
    shutil.copytree(SHIPPED_MODEL, tmp_path / "model")
    cv2.imwrite(str(tmp_path / "photo.jpg"), np.full((20, 30, 3), 99, np.uint8))
    maps = np.full((12, 16), 2, np.float32)
    save_maps(tmp_path / "maps", "0", depth=maps, confidence=maps, ground_truth=maps)
    with BagWriter(tmp_path / "bag") as bag:
        bag.image("/depth", 1, "camera", maps)
    for name in ("rgb/0.png", "depth/0.png"):
        (tmp_path / "rgbd" / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / "rgbd" / name), np.full((20, 30), 99, np.uint16))
    (tmp_path / "rgbd" / "K.txt").write_text("20 0 15 0 20 10 0 0 1")
    for name in ("fifo.mcap", "fifo.db3", "fifo.bag", "fifo.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "out").mkdir()
    return tmp_path


COMPARE = "compare {0}/report {0}/report -o {0}/out"
EVALUATE = "evaluate predictions:{0}/maps -o {0}/out"
RGBD = "evaluate rgbd:{0}/rgbd --model demo -o {0}/out"
PIPES = [
    *(("report/" + name, COMPARE) for name in ("summary.json", "state.npz", "frames.sums")),
    ("report/summary.json", "merge {0}/report -o {0}/out"),
    *((f"fifo.{ending}", f"info {{0}}/fifo.{ending}") for ending in ("mcap", "db3", "bag")),
    *((f"bag/{name}", "info {0}/bag") for name in ("bag.mcap", "metadata.yaml")),
    ("model/model.json", "info {0}/model"),
    ("photo.jpg", "predict {0}/photo.jpg --model demo -o {0}/out"),
    *(
        (f"model/{name}", "predict {0}/photo.jpg --model {0}/model -o {0}/out")
        for name in ("model.json", "weights")
    ),
    *((f"maps/{name}/0.npy", EVALUATE) for name in ("depth", "confidence", "ground_truth")),
    ("fifo.json", EVALUATE + " --sigma-map {0}/fifo.json"),
    *((f"rgbd/{name}", RGBD) for name in ("rgb/0.png", "depth/0.png")),
]


@pytest.mark.parametrize(("name", "words"), PIPES)
def test_a_pipe_is_refused_in_one_sentence(inputs, command, name, words):
    path = inputs / name
    if path.name == "weights":
        path = next(path.parent.glob("*.safetensors"))
    path.unlink()
    os.mkfifo(path)

    def too_late(*_):
        raise TooLateError(f"waits for {path}")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        done = command(*words.format(inputs).split())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr or path.parent.name in done.stderr
