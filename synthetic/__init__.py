# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Rendered worlds: rooms, a ray tracer, a robot with camera and LiDAR, and the demo.

In a clone `synthetic:worlds=4,seed=1` is a source of every command, see
`uncertainty_depth.stream.opening`. A robot installs none of this.
"""

from __future__ import annotations

from pathlib import Path

from synthetic.config import SynthesisConfig, synthesis_config
from synthetic.source import SyntheticSource, synthesize
from uncertainty_depth.core.config.source import SourceConfig

__all__ = ["SynthesisConfig", "SyntheticSource", "frames_of", "open_source", "write_bag"]


def open_source(rest: str, config: SourceConfig) -> SyntheticSource:
    """Return the worlds of options such as `worlds=4,noise=0.5`."""
    return SyntheticSource(synthesis_config(rest))


def write_bag(rest: str, bag: Path) -> None:
    """Render the worlds of such options into a new bag."""
    synthesize(bag, synthesis_config(rest))


def frames_of(rest: str) -> tuple[Path, set[object]]:
    """Return which worlds these are: a seed's first ones do not depend on their number."""
    options = dict(part.partition("=")[::2] for part in rest.split(","))
    seed = (options.get("seed", "0"), options.get("test_objects", "false").lower())
    scenes = {"rooms", options.get("scenes", "rooms")}  # other worlds may include these
    return Path(), {(*seed, name) for name in scenes}
