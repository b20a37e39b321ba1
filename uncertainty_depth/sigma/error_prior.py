# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How a network errs: the prior for `posterior`, fitted once per model and stored with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import from_mapping, option


def _positive(default: float, help: str) -> Any:
    return option(default, help, limits=(1e-6, 1e6))


@dataclass(frozen=True)
class ErrorPrior:
    """What pixels near each other share in the error of the predicted depth's logarithm.

    `common`, `wide` and `local` are standard deviations, the first two over the frame's mean
    relative sigma, the third over each pixel's. A part's correlation is Matern's with order
    3/2, (1 + d) exp(-d), of the distance d = sqrt(3) |x|, x the differences in place, depth and
    colour, each over its length. `benchmarks/error_prior.py` finds the most likely values for a
    model; the defaults are those of `indoor`.
    """

    common: float = _positive(0.44, "what all pixels of a frame share")
    wide: float = _positive(0.97, "what pixels share that are near in the image and in depth")
    wide_length: float = _positive(0.47, "its reach in the image, of its width")
    wide_depth_length: float = _positive(0.84, "its reach in the logarithm of depth")
    local: float = _positive(0.68, "what pixels share that are near in colour too")
    local_length: float = _positive(0.172, "its reach in the image, of its width")
    local_depth_length: float = _positive(0.206, "its reach in the logarithm of depth")
    colour_length: float = _positive(28.9, "its reach in CIE Lab units")
    freedom: float = _positive(
        2.9,
        "how many independent measurements it takes to believe them as much as the network about "
        "a frame's variance: degrees of freedom less two",
    )


FOREIGN = ErrorPrior()
"""Serves a network whose own is not known."""


def error_prior(values: Any) -> ErrorPrior:
    """Return a model's stored prior; raise `ConfigError` unless each field is a number above 0."""
    names = {field.name for field in fields(ErrorPrior)}
    if not isinstance(values, dict) or set(values) != names:
        raise ConfigError(f"the error prior is {values!r}; expected {', '.join(sorted(names))}")
    return from_mapping(ErrorPrior, values)
