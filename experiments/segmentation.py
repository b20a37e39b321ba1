# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ensembling against MC-dropout in street-scene segmentation, by day and at dusk.

Gustafsson et al. 2020, section 4.3 and appendix D: AUSE (Brier score, by entropy), ECE and mIoU
against the number of samples M, as means and deviations over drawn sets of ensemble members, and
over networks of MC-dropout. There the shift is from Synscapes to Cityscapes, here from day to dusk
within CamVid: trained on the training drives by day, scored on the test drives of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm, trange

from experiments import figures, segmentation_report
from experiments.classification_metrics import OnlineClassification, entropy
from experiments.completion_sets import drawn_sets
from experiments.data_folders import CAMVID
from experiments.runner import resume
from experiments.segmentation_data import (
    CLASSES,
    VOID,
    LabelledImages,
    augment,
    read,
)
from experiments.segmentation_network import DeepLab
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.depth.model_folder.files import read_tensors, write_tensors
from uncertainty_depth.depth.networks.encoder import image_tensor

Sets = Mapping[int, list[tuple[int, ...]]]
"""M to sets of M samples."""
DOMAINS = {"day": False, "dusk": True}
DROPOUT_MODELS = 8 / 26
"""Networks of MC-dropout per ensemble member, as in the paper."""
DROPOUT_STEPS = 1.5
"""Times the steps of an ensemble member, as in the paper."""
SEEDS = {"ensemble": 0, "mc_dropout": 1000}


@dataclass(frozen=True)
class Training:
    """How each network is trained.

    Attributes:
        size: (width, height) of the images.
        backbone: name of a ResNet for `make_backbone`.
        width: channels of each branch of the ASPP.
        dilations: of its 3x3 convolutions, in proportion to the paper's for maps of this size.
        steps: of an ensemble member.
        batch: images of a step.
        learning_rate: the first; it falls to 0 as a polynomial of power 0.9.
        images: of the training split, evenly spread; 0 takes all.
    """

    size: tuple[int, int] = (240, 180)
    backbone: str = "tiny"
    width: int = 64
    dilations: tuple[int, ...] = (6, 12, 18)
    steps: int = 2000
    batch: int = 8
    learning_rate: float = 0.05
    images: int = 0


@dataclass(frozen=True)
class Settings:
    """Size of a run.

    Attributes:
        training: of each network.
        counts: numbers of samples M; an ensemble takes those it has members for.
        sets: of members drawn for each M.
        images: scored of each domain, evenly spread; 0 takes all.
    """

    training: Training = Training()
    counts: tuple[int, ...] = (1, 2, 4, 8, 16)
    sets: int = 8
    images: int = 0


QUICK = Settings(
    Training(size=(80, 60), width=16, dilations=(2, 4, 6), steps=100, images=40),
    counts=(1, 2, 4),
    images=10,
)


def run(output: Path, seeds: int, quick: bool, data: Path | None = None) -> None:
    """Train and score `seeds` ensemble members and a third as many networks of MC-dropout.

    Args:
        output: of the weights, the results, table.md, table.csv, summary.json and the plots.
        seeds: ensemble members.
        quick: small images and few steps.
        data: folder of the data sets, with `camvid`; None takes the one that
            UNCERTAINTY_DEPTH_DATA names.

    Raises:
        SourceError: the data are missing or damaged.
    """
    compare(output, seeds, QUICK if quick else Settings(), data)


def compare(output: Path, members: int, settings: Settings, data: Path | None = None) -> None:
    """Run the experiment with these settings."""
    folder = CAMVID.find(data)
    names = _train_all(output, members, settings.training, folder)
    scores = {domain: _score_all(output, domain, names, settings, folder) for domain in DOMAINS}
    segmentation_report.write(output, scores, asdict(settings), members)
    networks = [_load(output, settings.training, name) for name in names[:members]]
    examples = {domain: _example(domain, networks, settings, folder) for domain in DOMAINS}
    figures.save(segmentation_report.plot_examples(examples), output / "examples.png")


@torch.inference_mode()
def _example(
    domain: str, networks: Sequence[DeepLab], settings: Settings, folder: Path
) -> segmentation_report.Example:
    """Return an image of a domain, and the prediction of the ensemble."""
    frames = read(folder, "test", DOMAINS[domain], settings.training.size, 1)
    pixels = image_tensor(frames.images)
    probabilities = np.mean([_probabilities(network, pixels) for network in networks], axis=0)
    shape = frames.labels.shape[1:]
    return segmentation_report.Example(
        frames.images[0],
        frames.labels[0],
        probabilities.argmax(1).reshape(shape),
        entropy(probabilities).reshape(shape),
    )


def _train_all(output: Path, members: int, training: Training, folder: Path) -> list[str]:
    """Train the networks that are not trained yet; return the names of all."""
    dropout_models = max(round(DROPOUT_MODELS * members), 1)
    names = [f"ensemble_{number:03d}" for number in range(members)]
    names += [f"mc_dropout_{number:03d}" for number in range(dropout_models)]
    frames = read(folder, "train", False, training.size, training.images)

    def compute(name: str) -> dict[str, Any]:
        network, losses = train(name, training, frames)
        write_tensors(_weights(output, name), network.state_dict())
        return {"losses": losses}

    resume(output / "results", names, asdict(training), compute, "segmentation: trainings")
    return names


def _weights(output: Path, name: str) -> Path:
    return output / "weights" / f"{name}.safetensors"


def make_network(training: Training, has_dropout: bool) -> DeepLab:
    """Return a network with random weights."""
    return DeepLab(
        training.backbone, len(CLASSES), training.width, training.dilations, has_dropout
    )


def train(name: str, training: Training, frames: LabelledImages) -> tuple[DeepLab, list[float]]:
    """Train the network `ensemble_N` or `mc_dropout_N`; return it and the mean loss of each tenth.

    Stochastic gradient descent, momentum 0.9, weight decay 0.0005, cross entropy.
    """
    method, _, number = name.rpartition("_")
    seed = SEEDS[method] + int(number)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    network = make_network(training, method == "mc_dropout").train()
    steps = round(training.steps * (DROPOUT_STEPS if method == "mc_dropout" else 1))
    optimizer = torch.optim.SGD(
        network.parameters(), lr=training.learning_rate, momentum=0.9, weight_decay=0.0005
    )
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=steps, power=0.9)
    losses = []
    for _ in trange(steps, desc=name, leave=False, mininterval=1.0):
        batch = torch.randint(len(frames.images), (training.batch,), generator=generator).numpy()
        images, labels = augment(
            image_tensor(frames.images[batch]), torch.from_numpy(frames.labels[batch]), generator
        )
        loss = functional.cross_entropy(network(images), labels, ignore_index=VOID)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    tenths = np.array_split(losses, min(10, steps))
    return network, [float(tenth.mean()) for tenth in tenths]


def _score_all(
    output: Path, domain: str, names: list[str], settings: Settings, folder: Path
) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Score the ensemble and each network of MC-dropout; return method, M, scores of each set."""
    frames = read(folder, "test", DOMAINS[domain], settings.training.size, settings.images)
    members = [name for name in names if name.startswith("ensemble")]
    networks_of = {f"ensemble_{len(members):03d}": members}
    networks_of.update({name: [name] for name in names if name not in members})

    def compute(piece: str) -> dict[int, list[dict[str, Any]]]:
        names_of = networks_of[piece.removeprefix(f"{domain}_")]
        networks = [_load(output, settings.training, name) for name in names_of]
        return score(*samples_and_sets(networks, settings), frames)

    pieces = [f"{domain}_{name}" for name in networks_of]
    results = resume(
        output / "results", pieces, asdict(settings), compute, f"segmentation: {domain}"
    )
    by_method: dict[str, dict[int, list[dict[str, Any]]]] = {method: {} for method in SEEDS}
    for name, result in zip(networks_of, results, strict=True):
        by_count = by_method[name.rpartition("_")[0]]
        for count, scores in result.items():
            by_count.setdefault(int(count), []).extend(scores)
    return by_method


def _load(output: Path, training: Training, name: str) -> DeepLab:
    path = _weights(output, name)
    if not path.exists():
        raise SourceError(
            f"{path} is missing; remove {output / 'results' / name}.json to train it again"
        )
    network = make_network(training, name.startswith("mc_dropout"))
    network.load_state_dict(read_tensors(path))
    return network.eval()


def samples_and_sets(
    networks: Sequence[DeepLab], settings: Settings
) -> tuple[Sequence[DeepLab], Sets]:
    """Return the networks whose passes are the samples, and the sets of them to score.

    Drawn sets of ensemble members; of one network of MC-dropout the first M of its passes.
    """
    if not networks[0].rate:
        members = len(networks)
        counts = [count for count in settings.counts if count <= members]
        return networks, {count: drawn_sets(members, count, settings.sets) for count in counts}
    torch.manual_seed(SEEDS["mc_dropout"])
    first = {count: [tuple(range(count))] for count in settings.counts}
    return [networks[0]] * max(settings.counts), first


@torch.inference_mode()
def score(
    networks: Sequence[DeepLab], sets: Sets, frames: LabelledImages
) -> dict[int, list[dict[str, Any]]]:
    """Return M to the scores of each set: of the mean probabilities of its networks.

    Each network makes one pass over an image, whatever the number of sets. A network of
    MC-dropout that is given several times makes as many passes of different noise.
    """
    scores = {}
    for count, of_count in sets.items():
        scores[count] = [OnlineClassification(len(CLASSES), VOID) for _ in of_count]
    for image, label in zip(tqdm(frames.images, leave=False), frames.labels, strict=True):
        pixels = image_tensor(image[None])
        samples = np.stack([_probabilities(network, pixels) for network in networks])
        for count, of_count in sets.items():
            for member_set, metrics in zip(of_count, scores[count], strict=True):
                metrics.update(samples[list(member_set)].mean(0), label.reshape(-1))
    return {count: list(map(_result, of_count)) for count, of_count in scores.items()}


def _probabilities(network: DeepLab, pixels: Tensor) -> NDArray[np.float32]:
    """Return (h * w, classes) of a single image."""
    return network(pixels).softmax(1)[0].flatten(1).T.contiguous().numpy()


def _result(metrics: OnlineClassification) -> dict[str, Any]:
    sparsification = metrics.sparsification()
    return {
        **metrics.compute(),
        "reliability": metrics.reliability(),
        "by_entropy": sparsification.sparsification,
        "oracle": sparsification.oracle,
    }
