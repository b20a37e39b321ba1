# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Tables of `samples`, and the curve of quality against cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import figures
from experiments.samples_drives import ALL_MEMBERS
from experiments.tables import markdown
from uncertainty_depth import atomic, strict_json

BASES = ("independent 64", ALL_MEMBERS)
"""What others are compared with; a piece has one of them."""
COLUMNS = {
    "n_merci": "n-MeRCI",
    "ause_abs_rel": "AUSE abs_rel",
    "ause_rmse": "AUSE rmse",
    "ause_a1": "AUSE 1 - a1",
    "auce": "AUCE",
    "mae": "MAE, m",
}
WITHOUT_SPREAD = ("one pass", "distilled student")
PANELS = {
    "relative_error": "relative error of sigma against many",
    "depth_error": "error of depth against many, in sigmas",
    "ause_rmse": "AUSE rmse (m)",
}
PARTS = (
    ("shipped", "total"),
    ("shipped", "spread"),
    ("shipped on NYU", "total"),
    ("nyu", "spread"),
)


def write(output: Path, results: dict[str, list[Any]], speeds: Sequence[str]) -> None:
    """Write table.md, summary.json and samples.png.

    Args:
        output: folder.
        results: of each network and of the drives, what `samples_scores.score` returns, piece by
            piece; the drives' pieces go speed by speed.
        speeds: of the drives.
    """
    sections = []
    for network, part in PARTS:
        if network in results:
            sections.append(f"{network}, {part}\n\n{_table(results[network], part)}")
    for name in ("drives", "snapshots"):
        for number, pieces in enumerate(_by_speed(results.get(name, []), len(speeds))):
            sections.append(f"{name}, {speeds[number]}, spread\n\n{_table(pieces, 'spread')}")
    atomic.write_text(output / "table.md", "\n".join(sections))
    strict_json.write(output / "summary.json", results)
    figure, axes = figures.panels(1, len(PANELS))
    for axis, (key, label) in zip(axes[0], PANELS.items(), strict=True):
        _plot(axis, results["shipped"], key, label)
    axes[0][0].legend(fontsize=8)
    figures.save(figure, output / "samples.png")


def _by_speed(pieces: list[Any], speeds: int) -> list[list[Any]]:
    """Return the pieces of each speed; nothing without pieces."""
    of_one = len(pieces) // speeds
    return [pieces[start : start + of_one] for start in range(0, len(pieces), max(of_one, 1))]


def _table(pieces: list[Any], part: str) -> str:
    """Return a row per way: cost, agreement, and differences of scores to those of `BASES`."""
    header = ["way", "CPU ms", "passes", "depth off", "sigma off", "correlation"]
    one = _median_ms(pieces, "one pass")
    rows = []
    for way in pieces[0]:
        if part == "spread" and way in WITHOUT_SPREAD:
            continue
        cost = _median_ms(pieces, way)
        rows.append(
            [
                way,
                f"{cost:.1f}",
                f"{cost / one:.2f}",
                f"{_mean(pieces, way, part, 'depth_error'):.3f}",
                f"{_mean(pieces, way, part, 'relative_error'):.3f}",
                f"{_mean(pieces, way, part, 'correlation'):.3f}",
                *[_difference(pieces, way, part, key) for key in COLUMNS],
            ]
        )
    return markdown([*header, *COLUMNS.values()], rows)


def _values(pieces: list[Any], way: str, part: str, key: str) -> np.ndarray:
    return np.array([piece[way][part][key] for piece in pieces], dtype=float)


def _mean(pieces: list[Any], way: str, part: str, key: str) -> float:
    return float(np.mean(_values(pieces, way, part, key)))


def _difference(pieces: list[Any], way: str, part: str, key: str) -> str:
    """Return the mean over the seeds; but for the base, its paired difference, 2 standard errors.

    An n-MeRCI that does not exist is left out.
    """
    values = _values(pieces, way, part, key)
    if not np.isfinite(values).all():
        return "–"
    base = next(name for name in BASES if name in pieces[0])
    if way == base or len(values) < 2:
        return f"{values.mean():.4f}"
    difference = values - _values(pieces, base, part, key)
    interval = 2 * difference.std(ddof=1) / np.sqrt(len(difference))
    return f"{values.mean():.4f} ({difference.mean():+.4f} ± {interval:.4f})"


def _median_ms(pieces: list[Any], way: str) -> float:
    """Return the median cost of a way over the pieces, milliseconds."""
    return float(np.median([piece[way]["ms"] for piece in pieces]))


def _plot(axis: Any, pieces: list[Any], key: str, label: str) -> None:
    """Plot the total (solid) and the spread (dashed) of each family of ways against its cost."""
    one = _median_ms(pieces, "one pass")
    families: dict[str, list[str]] = {}
    for way in pieces[0]:
        families.setdefault(way.rsplit(" ", 1)[0] if way[-1].isdigit() else way, []).append(way)
    for color, (family, ways) in zip(figures.COLORS, families.items(), strict=False):
        cost = [_median_ms(pieces, way) / one for way in ways]
        for part, style in (("total", "-o"), ("spread", "--s")):
            values = [_mean(pieces, way, part, key) for way in ways]
            if family in WITHOUT_SPREAD and part == "spread":
                continue
            axis.plot(
                cost,
                values,
                style,
                color=color,
                markersize=4,
                label=family if part == "total" else None,
            )
    axis.set(xscale="log", yscale="log", xlabel="CPU time, passes", ylabel=label)
    axis.grid(alpha=0.3)
