"""Scoring a frame wakes no thread of BLAS: on a busy machine they spin and wait for each other."""

import os
import subprocess
import sys

SCRIPT = """
import os
from pathlib import Path

import numpy as np

from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.frames.predicted import predicted
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.geometry.camera import Camera, project
from uncertainty_depth.records import DepthPrediction, Frame


tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]


def cpu_ns_of_blas():  # of the threads that importing NumPy has started
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


random = np.random.default_rng(0)
ground_truth = random.uniform(1, 20, (100, 200)).astype(np.float32)
sigma = 0.1 * ground_truth
depth = ground_truth + sigma * random.standard_normal((100, 200), np.float32)
points = np.random.default_rng(0).normal(0, 10, (120_000, 3)).astype(np.float32)
camera = Camera(200, 100, np.array([[100.0, 0, 100], [0, 100, 50], [0, 0, 1]]))


class Source:
    name = "two frames"

    def __len__(self):
        return 2

    def __iter__(self):
        used_ns.append(cpu_ns_of_blas())  # here, not before: setting the limit wakes them too
        for number in range(2):
            project(points, np.eye(4), camera)
            image = np.zeros((100, 200, 3), np.uint8)
            yield Frame(number, "frame", camera, image, ground_truth_m=ground_truth)


class Predictor:
    def predict(self, image, stamp_ns, camera):
        return DepthPrediction(depth, sigma)


used_ns = []
evaluation = Evaluation()
prediction = DepthPrediction(depth, sigma)
frame = Frame(0, "frame", ground_truth_m=ground_truth, prediction=prediction)
evaluation.add(frame)  # imports what it needs
before = cpu_ns_of_blas()
evaluation.add(frame)
evaluation.summary()
print(len(tasks), cpu_ns_of_blas() - before)
sinks = [lambda frame: used_ns.append(cpu_ns_of_blas())]
evaluate(predicted(Source(), Predictor()), sinks=sinks, progress=False)
print(used_ns[2] - used_ns[0])
before = cpu_ns_of_blas()
square = np.ones((500, 500))
while cpu_ns_of_blas() == before:  # on a busy machine its threads may come too late
    square @ square
print(cpu_ns_of_blas() - before)
"""


def test_projecting_and_scoring_a_frame_wakes_no_thread_of_blas():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    for name in ("OMP_NUM_THREADS", "GOTO_NUM_THREADS"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    threads, added_ns, evaluated_ns, used_by_blas_ns = map(int, result.stdout.split())
    assert threads >= 1  # or nothing is tested: those of BLAS wait for work
    assert used_by_blas_ns > 0
    assert added_ns == 0
    assert evaluated_ns == 0
