# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Render the report as one self-contained HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from uncertainty_depth.report.model_facts import law_of, limits_of, part_of
from uncertainty_depth.report.summary import (
    BASELINE_LABELS,
    by_group,
    compared,
    depth_with_intervals,
    headline_names,
    other_names,
    scale_text,
    scored_sigma,
    unfamiliarity_text,
)

CURVES = (
    "scale",
    "sparsification_abs_rel",
    "sparsification_rmse",
    "sparsification_a1",
    "by_distance",
    "n_merci",
)
CAPTION = {
    "abs_rel": "depth.abs_rel",
    "rmse (m)": "depth.rmse",
    "AUSE rmse (m) of this image": "uncertainty.ause.rmse",
}

MOST = 0.5
SOME = 0.1
"""Fractions of unfamiliar frames, for words; 0.01 of the training's are."""


@dataclass(frozen=True)
class FrameImage:
    """A frame of the page: its name, its metrics by dotted name, and its plot as JPEG."""

    name: str
    metrics: Mapping[str, float]
    data: bytes


@dataclass(frozen=True)
class Images:
    """The images of the page; empty for a report without images.

    Attributes:
        plots: PNG data by name.
        overlay: JPEG data of LiDAR on an image; None without a camera image.
        worst: the frames with the largest errors.
        typical: frames with an error near the median.
    """

    plots: Mapping[str, bytes]
    overlay: bytes | None = None
    worst: Sequence[FrameImage] = ()
    typical: Sequence[FrameImage] = ()


def render(summary: Mapping[str, Any], command: str, images: Images) -> str:
    """Return the HTML of the page.

    Args:
        summary: as `report.summarize` makes it.
        command: the command line that made the report; empty if there is none.
        images: to embed.
    """
    law = law_of(summary["model"])
    scored = summary["frames"]["evaluated"] > 0
    warnings = summary["geometry"].get("warnings", [])
    return render_template(
        "report.html.j2",
        title=f"{summary['source']}: depth and its uncertainty",
        facts=facts(summary, command),
        verdict=summary["verdict"],
        requirements=summary["requirements"],
        sources=summary["sources"],
        scored=scored,
        law=law,
        baselines=BASELINE_LABELS.values(),
        headline=[compared(summary, name) for name in headline_names(law)] if scored else [],
        others=[compared(summary, name) for name in other_names(law)] if scored else [],
        by_distance=by_group(summary, "by_distance.", law) if scored else None,
        by_sigma=by_group(summary, "uncertainty.", law) if scored else None,
        depth=depth_with_intervals(summary),
        scale=scale_text(summary["scale"]),
        without_size=summary["without_size"],
        frames=summary["frames"],
        warnings=warnings,
        notes=[note for note in summary["notes"] if note not in warnings],
        overlay=base64_text(images.overlay) if images.overlay else "",
        worst=[_frame(frame) for frame in images.worst],
        typical=[_frame(frame) for frame in images.typical],
        plots={name: base64_text(data) for name, data in images.plots.items()},
        curves=[name for name in CURVES if name in images.plots],
        settings=json.dumps(_settings(summary), indent=2),
    )


def _settings(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of the run, without the training's median depth: hundreds of numbers."""
    settings = {key: summary[key] for key in ("source", "config", "model", "versions")}
    training = dict(part_of(summary["model"], "training"))
    training.pop("median_depth_m", None)
    settings["model"] = {**summary["model"], "training": training}
    return settings


def facts(summary: Mapping[str, Any], command: str) -> list[tuple[str, str]]:
    """Return the facts that the metrics depend on, as (name, text)."""
    model = summary["model"]
    frames = summary["frames"]
    depth_range = limits_of(model.get("depth_range"))
    pixels = f"{frames['evaluated']} frames, {summary['pixels']:,} pixels"
    if frames["evaluated"]:
        pixels += f", {summary['scored_fraction']:.1%} of the ground truth"
    rows = [
        ("model", _model_text(model)),
        ("trained on", str(part_of(model, "training").get("source") or "unknown")),
        ("depth range", "{:g} to {:g} m".format(*depth_range) if depth_range else "unknown"),
        ("camera", _camera_text(summary["camera"])),
        ("images", _likeness(summary["unfamiliarity"])),
        ("geometry", summary["geometry"].get("description", "not checked")),
        ("scored", pixels),
        ("command", command),
    ]
    return [(name, text) for name, text in rows if text]


def _likeness(unfamiliarity: Mapping[str, Any]) -> str:
    """Return in words how similar the images are to the training images; empty if unknown."""
    if not unfamiliarity["frames"]:
        return ""
    above = unfamiliarity["fraction_above_1"]
    words = "unlike" if above > MOST else "partly unlike" if above > SOME else "like"
    numbers = unfamiliarity_text(unfamiliarity)
    return f"these images look {words} the training images: unfamiliarity {numbers}"


def _model_text(model: Mapping[str, Any]) -> str:
    if not model:
        return "unknown"
    parts = (model.get("model"), model.get("method", "unknown method"), scored_sigma(model))
    return ", ".join(str(part) for part in parts if part)


def _camera_text(camera: Mapping[str, Any]) -> str:
    if not camera["size"]:
        return "unknown"
    width, height = camera["size"]
    focal = camera["focal_length_per_width"]
    text = f"focal length {focal[0]:.3f} of the width" if focal else "focal length unknown"
    return f"{width} x {height} pixels, {text}"


def _frame(frame: FrameImage) -> dict[str, str]:
    numbers = (f"{label} {frame.metrics[key]:.3f}" for label, key in CAPTION.items())
    caption = f"frame {frame.name}: {', '.join(numbers)}"
    return {"name": frame.name, "data": base64_text(frame.data), "caption": caption}


def render_template(name: str, **values: Any) -> str:
    """Return a template of this package, filled with values, which are escaped."""
    environment = Environment(
        loader=PackageLoader("uncertainty_depth.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)


def base64_text(data: bytes) -> str:
    """Return the data of an image as base64, for the page to embed."""
    return base64.b64encode(data).decode("ascii")
