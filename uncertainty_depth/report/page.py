# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Render the report as one self-contained HTML page."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from uncertainty_depth.core import strict
from uncertainty_depth.metrics.calibration import of_distribution
from uncertainty_depth.metrics.metric import NOT_JUDGED, SigmaKind, percent_text
from uncertainty_depth.metrics.registry import BY_NAME, METRICS, baseline_name, flatten
from uncertainty_depth.report.model_facts import distribution_of_model, part_of
from uncertainty_depth.report.scores import frame_name
from uncertainty_depth.sigma.calibration import IDENTITY

SPARSIFICATION = (
    "Error of the remaining pixels when the most uncertain ones are removed. A good sigma falls "
    "like the oracle, a useless one stays level; the blue area is the AUSE."
)
CURVES = {
    "reliability": "Coverage of each level's interval: below the diagonal sigma is too small.",
    "timeline": "Error, sigma and coverage over time. Sigma should rise with the error; coverage "
    "should stay at the dashed line of its level.",
    "positions": "Error and coverage by position in the image; grey: too few pixels.",
    "by_distance": "Error, sigma, coverage and n-MeRCI of the pixels at each true distance.",
    "sparsification_abs_rel": SPARSIFICATION,
    "sparsification_rmse": "The same with the rmse.",
    "sparsification_a1": "The same with the share of inaccurate pixels.",
    "scale": "Ground truth / depth of each frame: above 1: depth too small.",
}
"""The page's plots, with what each shows."""
WITHOUT_SIGMA = {"by_distance": "Error and bias of the pixels at each true distance."}
CAPTION = {
    "abs_rel": "depth.abs_rel",
    "rmse (m)": "depth.rmse",
    "AUSE rmse (m) of this image": "uncertainty.ause.rmse",
}


@dataclass(frozen=True)
class FrameImage:
    """A frame on the page: its name, its metrics by dotted name, and its plot as JPEG."""

    name: str
    metrics: Mapping[str, float]
    data: bytes


@dataclass(frozen=True)
class Images:
    """A report's images: PNG and JPEG data; empty, or None, for what was not drawn."""

    plots: Mapping[str, bytes]
    overlay: bytes | None = None
    worst: Sequence[FrameImage] = ()
    typical: Sequence[FrameImage] = ()


OF_SIGMA = ("order", "size", "sigma ~ depth", "Spearman", "AUSE", "AUCE", "CRPS", "NLL", "n-MeRCI")
TERMS = {
    "depth": "is it better than a depth that ignores the image?",
    "order": "does sigma rank the errors: is it larger where the error is larger?",
    "size": "do the intervals that sigma claims cover as many errors as they promise?",
    "domain": "are these data like those that the model was trained on?",
    "sigma": "standard deviation of the depth's error, in metres: the error bar of a pixel.",
    "sigma ~ depth": "a trivial sigma, proportional to the depth; the other one is constant. A "
    "sigma is worth something if it ranks the errors better than both.",
    "interval": "in parentheses: the metric of 95 of 100 runs like this one lies in it. It comes "
    "from a block bootstrap over frames.",
    "independent views": "neighbouring frames show nearly the same, and count as one view.",
    "unfamiliarity": "how unlike the training's an image is. Only a few % of familiar images "
    "score above 1.",
    "rmse_log": "root mean square of ln depth - ln truth; 0.1 is an error of about 10 %.",
    **{
        term: f"{BY_NAME[name].meaning}."
        for term, name in {
            "a1": "depth.a1",
            "abs_rel": "depth.abs_rel",
            "Spearman": "uncertainty.spearman",
            "AUSE": "uncertainty.ause.abs_rel",
            "AUCE": "uncertainty.auce",
            "CRPS": "uncertainty.crps",
            "NLL": "uncertainty.nll",
            "n-MeRCI": "uncertainty.n_merci",
        }.items()
    },
}
"""What each term in the verdict and in the tables means, for the page's readers."""
LINES = ("depth", "order", "size", "domain")
"""Terms only where they name a line in the verdict: elsewhere they are common words."""
_TERM = re.compile(
    "|".join(
        rf"^{term}$" if term in LINES else rf"(?<![\w-]){re.escape(term)}(?![\w-])"
        for term in sorted(TERMS, key=len)[::-1]
    )
)
_CODE = re.compile("`([^`]+)`")


def linked(text: str) -> str:
    """Return a text as HTML, with each term's first use linked to what it means."""
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        term = found[0]
        if term in seen:
            return term
        seen.add(term)
        return f'<a class="term" href="#{anchor(term)}">{term}</a>'

    return _TERM.sub(link, with_code(text))


def with_code(text: str) -> str:
    """Return a text as HTML, with what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))


def anchor(term: str) -> str:
    """Return a term's id on the page."""
    return f"term-{re.sub(r'[^a-z0-9]+', '-', term.lower())}"


def render(summary: Mapping[str, Any], command: str, images: Images) -> str:
    """Return the page's HTML from a `report.summarize`; the command may be empty."""
    kind = SigmaKind(summary["sigma_kind"])
    has_sigma = kind is not SigmaKind.NONE
    distribution = distribution_of_model(summary["model"])
    scored = summary["frames"]["evaluated"] > 0
    sources = summary["sources"]
    model = summary["model"].get("name")
    warnings = summary["geometry"].get("warnings", [])
    captions = CURVES if has_sigma else {**CURVES, **WITHOUT_SIGMA}
    of_sigma = headline_names(distribution), other_names(distribution)
    headline, others = (
        [compared(summary, name) for name in names if scored and has_sigma] for names in of_sigma
    )
    of_depth = [f"depth.{name}" for name in summary["depth"]]
    return render_template(
        "report.html.j2",
        source=summary["source"],
        sources=sources,
        verdict=summary["verdict"],
        requirements=summary["requirements"],
        frames=summary["frames"],
        title=f"Depth and sigma of {model}" if model else "Depth and its uncertainty",
        made=made(summary),
        rows_of_summary=summary_rows(summary, command),
        terms=[
            (anchor(term), term, meaning)
            for term, meaning in TERMS.items()
            if term not in OF_SIGMA or has_sigma
        ],
        source_metrics=[BY_NAME[name] for name in (sources or [{}])[0] if name in BY_NAME],
        scored=scored,
        baselines=BASELINE_LABELS.values(),
        has_sigma=has_sigma,
        has_size=kind is SigmaKind.METRES,
        headline=headline,
        others=others,
        by_distance=by_group(summary, "by_distance.", distribution) if scored else None,
        by_sigma=by_group(summary, "uncertainty.", distribution) if scored and has_sigma else None,
        conditional=conditional_text(summary["conditional_coverage"]),
        depth=[depth_row(summary, name) for name in HEADLINE_DEPTH] if scored else [],
        other_depth=[depth_row(summary, name) for name in of_depth if name not in HEADLINE_DEPTH],
        scale=scale_text(summary["scale"]),
        not_judged=NOT_JUDGED.get(kind, ""),
        warnings=warnings,
        notes=[note for note in summary["notes"] if note not in warnings],
        overlay=base64_text(images.overlay) if images.overlay else "",
        worst=[_frame(frame) for frame in images.worst],
        typical=[_frame(frame) for frame in images.typical],
        shown_plots=[
            (name, base64_text(images.plots[name]), caption)
            for name, caption in captions.items()
            if name in images.plots
        ],
        settings=_settings(summary),
    )


def _settings(summary: Mapping[str, Any]) -> str:
    """Return what the report was made with, as JSON, without a map's hundreds of numbers."""
    training = dict(part_of(summary["model"], "training"))
    training.pop("median_depth_m", None)
    settings = {key: summary[key] for key in ("source", "config", "model", "versions")}
    settings["model"] = {**summary["model"], "training": training}
    return json.dumps(settings, indent=2)


def made(summary: Mapping[str, Any]) -> str:
    """Return when the page is made, by what, and of how much, as one line."""
    versions = summary["versions"]
    frames = summary["frames"]["evaluated"]
    parts = [
        time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        f"uncertainty_depth {versions['uncertainty_depth']}",
        *([f"torch {torch}"] if (torch := versions.get("torch")) else []),
        f"{frames} {'frame' if frames == 1 else 'frames'}",
    ]
    return " · ".join(parts)


def summary_rows(summary: Mapping[str, Any], command: str) -> list[tuple[str, str]]:
    """Return what the metrics depend on, as (name, text)."""
    model = summary["model"]
    frames = summary["frames"]
    depth_range = strict.limits_of(model.get("depth_range"))
    pixels = f"{frames['evaluated']} frames, {summary['pixels']:,} pixels"
    if frames["evaluated"]:
        pixels += f", {percent_text(summary['scored_fraction'])} of the ground truth"
        if left_out := summary["left_out_fraction"]:
            pixels += f" beside the {percent_text(left_out)} that a mask leaves out"
    names = (model.get("name"), model.get("method", "unknown method"), scored_maps(model))
    camera = "unknown"
    if summary["camera"]["size"]:
        focal = summary["camera"]["focal_length_per_width"]
        camera = "{} x {} pixels, ".format(*summary["camera"]["size"])
        camera += f"focal length {focal[0]:.3f} of the width" if focal else "focal length unknown"
    rows = [
        ("source", str(summary["source"])),
        ("model", ", ".join(str(name) for name in names if name) if model else "unknown"),
        ("trained on", str(part_of(model, "training").get("source") or "unknown")),
        ("depth range", "{:.3g} to {:.3g} m".format(*depth_range) if depth_range else "unknown"),
        ("camera", camera),
        ("unfamiliarity", unfamiliarity_text(summary["unfamiliarity"])),
        ("geometry", summary["geometry"].get("description", "not checked")),
        ("scored", pixels),
        ("command", command),
    ]
    return [(name, text) for name, text in rows if text]


def _frame(frame: FrameImage) -> dict[str, str]:
    numbers = (
        f"{label} {frame.metrics[key]:.3f}"
        for label, key in CAPTION.items()
        if key in frame.metrics
    )
    name = frame_name(frame.name)
    caption = f"frame {name}: {', '.join(numbers)}"
    return {"name": name, "data": base64_text(frame.data), "caption": caption}


_ENVIRONMENT = Environment(
    loader=PackageLoader("uncertainty_depth.report", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"linked": linked, "with_code": with_code}


def render_template(name: str, **values: Any) -> str:
    """Return a template of this package, filled with values, which are escaped, as UTF-8."""
    text: str = strict.encodable(_ENVIRONMENT.get_template(name).render(**values))
    return text


def base64_text(data: bytes) -> str:
    """Return an image's data as base64, for the page to embed."""
    return base64.b64encode(data).decode("ascii")


BASELINE_LABELS = {"constant": "constant", "proportional_to_depth": "sigma ~ depth"}
"""Each trivial baseline's label."""
MIN_PIXELS = 100
"""Pixels that a distance needs to have a row."""


HEADLINE_DEPTH = ("depth.abs_rel", "depth.mae", "depth.p95", "depth.rmse", "depth.a1")


def headline_names(distribution: str) -> tuple[str, ...]:
    """Return the headline metrics: order, size under an error distribution, n-MeRCI."""
    sizes = (of_distribution(name, distribution) for name in ("auce", "coverage_95"))
    names = ("ause.abs_rel", "ause.rmse", "ause.a1", *sizes)
    return tuple(f"uncertainty.{name}" for name in (*names, "n_merci"))


def other_names(distribution: str) -> tuple[str, ...]:
    """Return the other metrics on sigma, sizes under this distribution first."""
    headline = headline_names(distribution)
    others = [
        metric
        for metric in METRICS
        if metric.name.startswith("uncertainty.")
        and not metric.groups
        and metric.name not in headline
    ]
    others.sort(key=lambda each: each.distribution != distribution)
    return tuple(metric.name for metric in others)


def table(summary: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the headline metrics as text for a terminal."""
    frames = summary["frames"]
    skipped = "".join(f", {count} {reason}" for reason, count in frames["skipped"].items())
    lines = [f"frames: {frames['read']} read, {frames['evaluated']} evaluated{skipped}"]
    if not frames["evaluated"]:
        return lines[0]
    errors = [
        f"{name} {BY_NAME[f'depth.{name}'].text(value)}"
        for name, value in summary["depth"].items()
    ]
    lines += [f"depth: {'  '.join(errors)}"]
    lines += [scale_text(summary["scale"]), ""]
    kind = SigmaKind(summary["sigma_kind"])
    if kind in NOT_JUDGED:
        lines += [NOT_JUDGED[kind], ""]
    if kind is SigmaKind.NONE:
        return "\n".join(lines[:-1])
    titles = "".join(f"{label:>16}" for label in BASELINE_LABELS.values())
    lines.append(f"{'':26}{'sigma':>10}{'95 % interval':>20}{titles}")
    rows = [compared(summary, name) for name in headline_names(distribution_of_model(model))]
    for row in rows:
        method, *baselines = (cell["text"] for cell in row["cells"])
        cells = "".join(f"{text:>16}" for text in baselines)
        lines.append(f"{row['label']:26}{method:>10}{row['interval']:>20}{cells}")
    meanings = {row["label"].split()[0]: row["note"] for row in rows}
    lines.append("")
    lines += [
        textwrap.fill(f"{label:9} {meaning}", 88, subsequent_indent=" " * 10)
        for label, meaning in meanings.items()
    ]
    return "\n".join(lines)


def interval_text(summary: Mapping[str, Any], name: str) -> str:
    """Return a metric's 95 % interval as `0.0280 to 0.0345`; empty if it has none."""
    low, high = summary["intervals"].get(name, (math.nan, math.nan))
    written = BY_NAME[name].text
    return "" if math.isnan(low) else f"{written(low)} to {written(high)}"


def scale_text(scale: Mapping[str, float]) -> str:
    """Return how the depth's scale wanders, as one line."""
    return (
        f"scale: {scale['mean_factor']:.3f}, scale_deviation "
        f"{percent_text(scale['scale_deviation'], 2)} over the frames, scale_jump "
        f"{percent_text(scale['scale_jump'], 2)} from frame to frame"
    )


def conditional_text(found: Mapping[str, Any]) -> str:
    """Return whether anything predicts where the interval fails; empty if it was not asked."""
    if not found:
        return ""
    begin = "Conditional coverage (excess risk of the target coverage, Braun et al. 2025): "
    if "undefined" in found:
        return f"{begin}not a number: {found['undefined']}."
    risk, of_all = (percent_text(found[name]) for name in ("excess_risk", "all_pixels"))
    return (
        f"{begin}{risk}. So far from 95 %, in the mean over the pixels, is the coverage that "
        f"sigma, predicted depth and place in the image foretell; the coverage of all pixels is "
        f"{of_all} from it. At 0 nothing tells where the 95 % interval fails."
    )


def unfamiliarity_text(unfamiliarity: Mapping[str, Any]) -> str:
    """Return how much the images differ from the training's, as a phrase; empty if unknown."""
    if not unfamiliarity["frames"]:
        return ""
    share = percent_text(unfamiliarity["fraction_above_1"], 0)
    return (
        f"{unfamiliarity['mean']:.2f} on average, {unfamiliarity['max']:.2f} at most, above 1 in "
        f"{share} of {unfamiliarity['frames']} frames (expected for familiar images: a few %)"
    )


def scored_maps(model: Mapping[str, Any]) -> str:
    """Return which sigma was scored, raw or calibrated, and whether depth's scale was followed."""
    name = model.get("calibration")
    if name is None and model.get("confidence_type") == "none":
        return "depth alone"
    raw = {None: "sigma", "off": "raw sigma (calibration is off)", IDENTITY.name: IDENTITY.name}
    sigma = raw.get(name, f"calibrated sigma ({name})")
    return sigma if "depth_scale" not in model else f"{sigma}, depth's scale followed from LiDAR"


def depth_row(summary: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return an error in depth as a table row: label, value, interval and note."""
    metric = BY_NAME[name]
    value = metric.text(summary["depth"][name.removeprefix("depth.")])
    interval = interval_text(summary, name)
    return {"label": metric.title, "text": value, "interval": interval, "note": metric.note}


def compared(summary: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a metric as a table row: label, note, and cells for sigma and baselines."""
    metric = BY_NAME[name]
    by_name = flatten({key: summary[key] for key in ("uncertainty", "baselines")})
    names = [name, *(baseline_name(baseline, metric) for baseline in BASELINE_LABELS)]
    values = [by_name.get(each, math.nan) for each in names]
    best = metric.best_of(values)
    cells = [
        {"text": "" if math.isnan(value) else metric.text(value), "best": value == best}
        for value in values
    ]
    no_unit = not metric.is_judged(SigmaKind(summary["sigma_kind"]))
    cells[0]["text"] = "no unit" if no_unit else metric.text(values[0])
    interval = interval_text(summary, name)
    reason = "" if no_unit else summary["undefined"].get(name, "")
    notes = "; not a number: ".join(part for part in (metric.note, reason) if part)
    return {"label": metric.title, "note": notes, "cells": cells, "interval": interval}


def by_group(
    summary: Mapping[str, Any], prefix: str, distribution: str
) -> tuple[list[str], list[Any]]:
    """Return the lists' metrics of a prefix as a table: titles, and rows of (name, texts)."""
    kind = SigmaKind(summary["sigma_kind"])
    values = flatten({key: summary[key] for key in ("uncertainty", "by_distance")})
    metrics = [
        metric
        for metric in METRICS
        if metric.groups
        and metric.name.startswith(prefix)
        and metric.distribution in ("", distribution)
        and (kind is not SigmaKind.NONE or metric.is_judged(kind))
    ]
    rows = []
    for group in metrics[0].groups:
        if values.get(f"{prefix}pixels.{group}", MIN_PIXELS) < MIN_PIXELS:
            continue
        cells = []
        for metric in metrics:
            value = values[f"{metric.name}.{group}"]
            text = f"{value:,}" if metric.unit == "count" else metric.text(value)
            cells.append("" if math.isnan(value) else text)
        # under_0.5m, 2_3m
        name = group.replace("_", " " if group[0].isalpha() else " to ", 1)
        rows.append((name, cells))
    return [metric.title for metric in metrics], rows
