# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One pass through each trained network, one or several; or two, for the mirror image.

With a head, `deterministic` is `log_likelihood` (Nix and Weigend 1994; Kendall and Gal 2017,
section 2.2): the network is trained with a normal or Laplace likelihood and predicts the
distribution's scale. `distilled` (after Hinton et al. 2015) learns a whole model's mean and sigma.

`mirrored` ("Post" of Poggi et al. 2020, section 3.2): a network treats an image and its mirror
image differently although they are equally likely, so averaging both lowers the error, and their
difference adds to sigma.

The ensembles differ in how their members were trained:

- `multi_epochs` (Moukari et al. 2019, section IV): snapshots of one training run, taken once the
  validation error has stopped improving.
- `multi_inits` (Moukari et al. 2019; deep ensemble, Lakshminarayanan et al. 2017): different
  initial weights and frame order.
- `bagging` (Breiman 1996; Moukari et al. 2019): as `multi_inits`, and each member sees its own
  bootstrap sample of training frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils import _pytree as pytree

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.depth.estimators.estimator import (
    Estimate,
    Estimator,
    Moments,
    Place,
    Samples,
)
from uncertainty_depth.depth.model_folder.folder import ModelFolder
from uncertainty_depth.depth.networks.depth_network import DepthNetwork, NetworkOutput


class StackedDecoders:
    """The decoders of S prepared networks with one architecture.

    The networks' own parameters become views of the stacked ones, so they need no memory beside.
    """

    def __init__(self, networks: Sequence[DepthNetwork]) -> None:
        self._one = _Decoding(networks[0])
        tensors = [
            {**dict(each.decoder.named_parameters()), **dict(each.decoder.named_buffers())}
            for each in networks
        ]
        self._stacked: dict[str, Tensor] = {}
        for name in tensors[0]:
            own = [of_network[name] for of_network in tensors]
            self._stacked[f"network.decoder.{name}"] = stacked = _stack(own)
            for tensor, view in zip(own, stacked, strict=True):
                tensor.data = view

    def decode(self, members: Sequence[int], features: Any, size: Sequence[int]) -> NetworkOutput:
        """Return these members' maps, (m, 1, h, w), from one image's features."""
        tensors = {name: _some(values, members) for name, values in self._stacked.items()}

        def decode(tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
            maps: tuple[Tensor, ...] = functional_call(self._one, tensors, (features, size))
            return maps

        depth_m, *scale_m = (maps[:, 0] for maps in vmap(decode)(tensors))
        return NetworkOutput(depth_m, scale_m[0] if scale_m else None)


class _Decoding(nn.Module):
    def __init__(self, network: DepthNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Any, size: Sequence[int]) -> tuple[Tensor, ...]:
        output = self.network.decode(features, size)
        return tuple(maps for maps in output if maps is not None)


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    """Return (S, ...) tensors; the weights of convolutions stay in channels-last order."""
    detached = [tensor.detach() for tensor in tensors]
    if detached[0].ndim != 4:
        return torch.stack(detached)
    return torch.stack([each.permute(0, 2, 3, 1) for each in detached]).permute(0, 1, 4, 2, 3)


def _some(stacked: Tensor, members: Sequence[int]) -> Tensor:
    """Return the tensors of some members; neighbours' without a copy."""
    if list(members) == list(range(members[0], members[0] + len(members))):
        return stacked[members[0] : members[0] + len(members)]
    return torch.stack([stacked[number] for number in members])


class Deterministic(Estimator):
    """The variance of one network's head; 0 without a head."""

    def compute(
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """See `Estimator`; on a CPU one by one, on a GPU together if they share an encoder."""
        first = len(self.networks) - self.passes(config)
        members = [first + number for number in numbers]
        if self.few_launches:  # the main encoder's last: its features hold, see `CudaGraphs`
            members.sort()
        encoders = {self.networks[number].encoder for number in members}
        at_once = self.at_once if self.few_launches and len(encoders) == 1 else 1
        moments = Moments(in_order=not self.few_launches)
        size = image.shape[-2:]
        encoder = features = main_features = None
        for start in range(0, len(members), at_once):
            some = members[start : start + at_once]
            network = self.networks[some[0]]
            if network.encoder is not encoder:
                encoder = network.encoder
                features = self.run(network.encode, image)
                if encoder is self.networks[-1].encoder:
                    main_features = features
            moments.add(*self.run(self._decode, features, tuple(some), size))
        return moments.estimate(main_features)

    def computed_together(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return super().computed_together(config) if self.few_launches else 1

    def _decode(self, features: Any, members: Sequence[int], size: Sequence[int]) -> Samples:
        if len(members) == 1:
            return self.samples_of(self.networks[members[0]].decode(features, size))
        return self.samples_of(self._stacked.decode(members, features, size))

    @cached_property
    def _stacked(self) -> StackedDecoders:
        return StackedDecoders(self.networks)


class Mirrored(Deterministic):
    """One network's maps of the image and of its mirror image; on a GPU in one batch."""

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`."""
        return min(config.samples, 2)

    def compute(
        self, image: Tensor, stamp_ns: int, config: PredictorConfig, numbers: Sequence[int]
    ) -> Estimate:
        """See `Estimator`; a single pass is the image's, so that sigma does not flicker."""
        passes = min(len(numbers), self.passes(config))
        moments = Moments(in_order=not self.few_launches)
        features: Any = None
        if passes == 2 and self.computed_together(config) == 2:
            features, maps = self.run(self._both, image)
            moments.add(*maps)
        else:
            for is_mirrored in (True, False)[-passes:]:
                features, maps = self.run(self._one, image, is_mirrored)
                moments.add(*maps)
        return moments.estimate(features)

    def _one(self, image: Tensor, is_mirrored: bool) -> tuple[Any, Samples]:
        network = self.networks[0]
        features = network.encode(image.flip(-1) if is_mirrored else image)
        output = network.decode(features, image.shape[-2:])
        return features, self.samples_of(output.mirrored() if is_mirrored else output)

    def _both(self, image: Tensor) -> tuple[Any, Samples]:
        network = self.networks[0]
        features = network.encode(torch.cat([image.flip(-1), image]))
        depths_m, variances = self.samples_of(network.decode(features, image.shape[-2:]))

        def at_pixels(maps: Tensor) -> Tensor:
            return torch.cat([maps[:1].flip(-1), maps[1:]])

        own = pytree.tree_map_only(Tensor, itemgetter(slice(1, 2)), features)
        return own, (at_pixels(depths_m), None if variances is None else at_pixels(variances))


class Ensemble(Deterministic):
    """One pass through each of the last `samples` members; a shared encoder runs once."""

    def __init__(self, networks: Sequence[DepthNetwork]) -> None:
        self.networks = list(networks)

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> Ensemble:
        """Load all of the model's members."""
        return cls([place(network) for network in model.load_all(model.members)])

    def passes(self, config: PredictorConfig) -> int:
        """See `Estimator`; at most the number of members."""
        return min(config.samples, len(self.networks))
