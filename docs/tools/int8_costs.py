# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure INT8 by NNCF against bfloat16 in OpenVINO: time, depth, and the scores of sigma.

    python -m pip install nncf && OMP_NUM_THREADS=1 python docs/tools/int8_costs.py

The shipped model, quantised after training on 48 frames like those of its training, on 24 frames
of worlds that it never saw. All ways take turns and use the same noise; CPU time of one thread.
"""

from __future__ import annotations

import time

import cv2
import nncf
import numpy as np
import openvino
import torch

from experiments.samples import load_network
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.engines.graphs import trace
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.metrics import auce, nll, sparsification, valid_pixels
from uncertainty_depth.network.encoder import image_tensor, resize_image
from uncertainty_depth.shipped_model import SHIPPED_MODEL
from uncertainty_depth.uncertainty.mc_dropout import seeded
from uncertainty_depth.uncertainty.noise import IndependentStreams, random_stream

SAMPLES = 8
ROUNDS = 30
FITTED_TO = "synthetic:worlds=24,frames=2,rate=0.5,seed=30000,dense=true"
SCORED_ON = "synthetic:worlds=12,frames=2,rate=0.5,seed=20000,test_objects=true,dense=true"
CORE = openvino.Core()

network = load_network(SHIPPED_MODEL)
dropouts = [seeded(layer) for layer in network.decoder.dropouts]
graphs = trace(network, dropouts)


def pixels(image):
    """Return an image as the network takes it."""
    return image_tensor(resize_image(image, network.config.input_size)[None]).numpy()


def noise(stamp_ns):
    """Return the noise of all dropouts, the same for every way."""
    streams = IndependentStreams([random_stream(0, stamp_ns, sample) for sample in range(SAMPLES)])
    return [
        dropout.noise(streams, shape).numpy()
        for dropout, shape in zip(dropouts, graphs.noise_shapes, strict=True)
    ]


def model_of(graph, arrays):
    """Return a graph with the shapes of its inputs."""
    model = CORE.read_model(graph.onnx)
    shapes = {name: list(array.shape) for name, array in zip(graph.inputs, arrays, strict=True)}
    model.reshape(shapes)
    return model


class Way:
    """Both halves in one precision."""

    def __init__(self, trunk, branches, precision):
        properties = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1}
        self._trunk, self._branches = (
            CORE.compile_model(model, "CPU", properties).create_infer_request()
            for model in (trunk, branches)
        )

    def shared(self, image):
        """Return what the samples share."""
        results = self._trunk.infer([image])
        return [results[number].copy() for number in range(len(results))]

    def maps(self, image, drawn):
        """Return the depths and the scales of all samples."""
        results = self._branches.infer([*self.shared(image), *drawn])
        return results[0][:, 0].astype(float), results[1][:, 0].astype(float)


def make_ways(images):
    """Return every way by its name; INT8 is fitted to the images."""
    trunk = model_of(graphs.trunk, images[:1])
    drawn = noise(0)
    with torch.inference_mode():
        first = network.trunk(torch.from_numpy(images[0]))
    shared = [first.first, *filter(lambda skip: skip is not None, first.skips)]
    branches = model_of(graphs.branches, [*shared, *drawn])
    ways = {"f32": Way(trunk, branches, "f32"), "bf16": Way(trunk, branches, "bf16")}
    inputs = [[*ways["f32"].shared(image), *noise(n)] for n, image in enumerate(images)]
    options = {"preset": nncf.QuantizationPreset.MIXED, "subset_size": len(images)}
    small_trunk = nncf.quantize(trunk.clone(), nncf.Dataset(images), **options)
    small_branches = nncf.quantize(branches.clone(), nncf.Dataset(inputs), **options)
    ways["int8, the rest bf16"] = Way(small_trunk, small_branches, "bf16")
    ways["int8 trunk, bf16 branches"] = Way(small_trunk, branches, "bf16")
    return ways


def scores(maps, reference, truth_m):
    """Return the scores of one frame."""
    depths, scales = maps
    variance = depths.var(0) + 2 * np.square(scales).mean(0)
    mean = depths.mean(0)
    size = truth_m.shape[::-1]
    every = np.s_[::3, ::3]
    depth, sigma, truth = valid_pixels(
        cv2.resize(mean, size)[every],
        cv2.resize(np.sqrt(variance), size)[every],
        truth_m[every],
        0.1,
        80.0,
    )
    error = np.abs(depth - truth)
    return [
        100 * np.mean(np.abs(mean - reference[0].mean(0)) / reference[0].mean(0)),
        error.mean(),
        sparsification(depth, sigma, truth, "rmse").ause,
        auce(error, sigma, distribution="laplace"),
        nll(error, sigma, distribution="laplace"),
    ]


def main():
    """Print a table."""
    fitted = [pixels(frame.image) for frame in open_source(FITTED_TO, SourceConfig())]
    ways = make_ways(fitted)
    seconds = {name: [] for name in ways}
    for stamp_ns in range(ROUNDS):
        drawn = noise(stamp_ns)
        for name, way in ways.items():
            start = time.process_time()
            way.maps(fitted[0], drawn)
            seconds[name].append(time.process_time() - start)
    found = {name: [] for name in ways}
    for frame in open_source(SCORED_ON, SourceConfig()):
        drawn = noise(frame.stamp_ns)
        image = pixels(frame.image)
        maps = {name: way.maps(image, drawn) for name, way in ways.items()}
        for name, its in maps.items():
            found[name].append(scores(its, maps["f32"], frame.ground_truth_m))
    base = np.array(found["bf16"])
    print("way, CPU ms, depth off %, MAE m, AUSE rmse m, AUCE, NLL; difference to bf16")
    for name, rows in found.items():
        values = np.array(rows)
        difference = values - base
        interval = 2 * difference.std(0, ddof=1) / np.sqrt(len(values))
        cells = [
            f"{mean:.4f} ({change:+.4f} ± {half:.4f})"
            for mean, change, half in zip(
                values.mean(0), difference.mean(0), interval, strict=True
            )
        ]
        print(name, f"{1e3 * np.median(seconds[name]):.1f}", *cells, sep=" | ")


if __name__ == "__main__":
    main()
