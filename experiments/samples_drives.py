# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One sample or member a frame with a memory, scored at the end of drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments.samples_frames import (
    Scene,
    Settings,
    drives,
    load_members,
    load_network,
    mean_network,
    worlds,
)
from experiments.samples_scores import Scoring
from experiments.samples_ways import (
    Memory,
    RoundRobin,
    Way,
    all_members,
    many,
    one_pass,
    sampled,
    ways_of,
)
from uncertainty_depth.model_location import SHIPPED_MODEL
from uncertainty_depth.network.depth_network import DepthNetwork

RATES_HZ = {"2 cm a frame": 30.0, "7 cm a frame": 10.0, "22 cm a frame": 3.0}
"""Frame rates of a robot that drives at 0.65 m/s."""
COMPARED = ("one pass", "independent 8", "stratified 8", "independent 64")
ALL_MEMBERS = "all members"
MEMORY = "memory"
CENTRED = "memory, centred"
EndWays = Callable[[Sequence[Scene]], dict[str, Way]]
"""From the frames before the last of a drive to the ways at its end."""


def score_dropout(piece: str, settings: Settings) -> dict[str, Any]:
    """Score memories of dropout samples on drives; `piece` is their speed and the noise's seed."""
    speed, seed = piece.split(", ")
    network = load_network(SHIPPED_MODEL)
    reference = many(network, settings.reference)
    return _score(
        network,
        speed,
        settings,
        reference,
        lambda before: dropout_ways(network, int(seed), before),
    )


def score_members(folder: Path, piece: str, settings: Settings) -> dict[str, Any]:
    """Score memories of a training's snapshots on drives; `piece` begins with their speed."""
    members = load_members(folder)
    speed = piece.split(", ")[0]
    end_ways = partial(member_ways, members, mean_network(folder))
    return _score(members[-1], speed, settings, all_members(members), end_ways)


def dropout_ways(network: DepthNetwork, seed: int, before: Sequence[Scene]) -> dict[str, Way]:
    """Return memories that have seen the frames before, and ways to compare them with."""
    every = ways_of(network, seed)
    ways = {name: every[name] for name in COMPARED}
    sample = sampled(network, 1, seed, "independent")
    ways[MEMORY] = _driven(Memory(sample), before)
    ways[CENTRED] = _driven(Memory(sample, one_pass(network)), before)
    return ways


def member_ways(
    members: Sequence[DepthNetwork], mean: DepthNetwork, before: Sequence[Scene]
) -> dict[str, Way]:
    """Return the same of members that take turns; the centre is the network of mean weights."""
    return {
        "one pass": one_pass(members[-1]),
        MEMORY: _driven(Memory(RoundRobin(members)), before),
        CENTRED: _driven(Memory(RoundRobin(members), one_pass(mean)), before),
        ALL_MEMBERS: all_members(members),
    }


def _driven(memory: Memory, before: Sequence[Scene]) -> Memory:
    for scene in before:
        memory(scene)
    return memory


def _score(
    network: DepthNetwork, speed: str, settings: Settings, reference: Way, end_ways: EndWays
) -> dict[str, Any]:
    scorings: dict[str, Scoring] = {}
    frames = settings.before + 1
    source = worlds(settings.frames // 3, frames, RATES_HZ[speed])
    for scenes in drives(network, source, frames):
        last = scenes[-1]
        expected = reference(last)
        for name, way in end_ways(scenes[:-1]).items():
            scorings.setdefault(name, Scoring(network)).add(way, expected, last)
    return {name: scoring.result() for name, scoring in scorings.items()}
