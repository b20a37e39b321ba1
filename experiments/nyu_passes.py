# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The networks of a recipe search, run as each recipe says, each pass once for all recipes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.nyu_recipes import Recipe
from uncertainty_depth.inference.deployment import choose_device, prepare
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.encoder import image_tensor
from uncertainty_depth.uncertainty.mc_dropout import seeded
from uncertainty_depth.uncertainty.noise import IndependentStreams, random_stream

Maps = tuple[NDArray[np.float32], NDArray[np.float32]]


def load_networks(folder: Path) -> dict[str, Any]:
    """Load all members by name, ready to predict, in the order in which they are served."""
    model = read(folder)
    device = choose_device("auto")
    networks = model.load_all(model.members)
    return {
        name: prepare(network, device, "fp32")
        for name, network in zip(model.members, networks, strict=True)
    }


class Passes:
    """Forward passes of a model's networks on one frame, each computed once for all recipes."""

    def __init__(self, networks: Mapping[str, Any]) -> None:
        self._networks = networks
        self._device = next(next(iter(networks.values())).parameters()).device
        self._image = torch.zeros(())
        self._stamp = 0
        self._cache: dict[tuple[object, ...], Any] = {}

    @property
    def distribution(self) -> str:
        """Return the error distribution of the networks' head."""
        return distribution_of(next(iter(self._networks.values())).config.head)

    def look_at(self, image: NDArray[np.uint8], stamp: int) -> None:
        """Take the next frame, (h, w, 3) uint8; its stamp seeds the dropout."""
        self._image = image_tensor(image[None], self._device)
        self._stamp = stamp
        self._cache.clear()

    @torch.inference_mode()
    def maps(self, recipe: Recipe) -> Maps:
        """Return depth and sigma (h, w), metres.

        Depth is the mean over the passes; total variance = variance of the depths + mean
        predicted variance (Gustafsson et al. 2020, appendix A).
        """
        members = list(self._networks) if recipe.order == "served" else sorted(self._networks)
        selection = members[recipe.first : recipe.stop]
        samples = torch.cat(
            [self._samples(member, number, recipe) for number, member in enumerate(selection)]
        )
        depths = samples[:, 0]
        depth = depths.mean(0)
        if recipe.space == "metres":
            spread = depths.std(0, correction=0)
        else:
            spread = depth * depths.log().std(0, correction=0)
        epistemic = (recipe.weight * spread).square()
        parts = {"epistemic": epistemic, "aleatoric": samples[:, 1].mean(0)}
        variance = parts.get(recipe.part, epistemic + parts["aleatoric"])
        return depth.cpu().numpy(), variance.sqrt().cpu().numpy()

    def _samples(self, member: str, number: int, recipe: Recipe) -> Tensor:
        """Return depth and predicted variance of a member's passes, (M, 2, h, w).

        `number` seeds its dropout, so that members differ.
        """
        key = (member, number if recipe.passes else 0, recipe.passes, recipe.rate, recipe.places)
        if key not in self._cache:
            self._cache[key] = self._forward(member, number, recipe)
        return self._cache[key]

    def _forward(self, member: str, number: int, recipe: Recipe) -> Tensor:
        network = self._networks[member]
        size = self._image.shape[-2:]
        first = number * recipe.passes
        streams = [
            random_stream(0, self._stamp, first + index, self._device)
            for index in range(recipe.passes)
        ]
        dropouts = noise(network, recipe, IndependentStreams(streams))
        raw = network.decoder.branches(self._trunk(member), dropouts)
        output = network.to_metres(raw, size)
        variance = network.variance(output)
        maps = [output.depth_m, torch.zeros_like(output.depth_m) if variance is None else variance]
        return torch.cat(maps, dim=1)

    def _trunk(self, member: str) -> Any:
        key = ("trunk", member)
        if key not in self._cache:
            network = self._networks[member]
            self._cache[key] = network.decoder.trunk(network.encode(self._image))
        return self._cache[key]


def noise(network: Any, recipe: Recipe, streams: IndependentStreams) -> list[Any]:
    """Return the replacements of the three dropouts; all draw from the same streams."""
    layers = network.decoder.dropouts
    if recipe.rate is not None:
        layers = [nn.Dropout(recipe.rate)] * len(layers)
    return [
        partial(seeded(layer), streams=streams)
        if streams.streams and place in recipe.places
        else nn.Identity()
        for place, layer in enumerate(layers)
    ]
