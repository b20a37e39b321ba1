"""An evaluation as files: `summary.json`, `frames.csv`, plots, the resumable metric state, and one self-contained `report.html`."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from uncertainty_depth import __version__, atomic
from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation.drawing import draw
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.model_facts import law_of
from uncertainty_depth.evaluation.page import Images, render
from uncertainty_depth.evaluation.verdict import judge
from uncertainty_depth.options import to_mapping

OWNED = ("summary.json", "frames.csv", "metrics.npz", "report.html", "*.png", "*.jpg")
"""The files of a report, of any version."""


@dataclass(frozen=True)
class Context:
    """What a report says about where its figures come from.

    Attributes:
        source: its name.
        model: the predictor's description.
        notes: sentences about losses.
        options: how the source was read, beside what the evaluation's own config says.
        trained_on: a sentence for each source scored that the model was trained on; None where
            nobody can tell, as in a live run.
        geometry: what the check of the geometry found, see `GeometryCheck.summary`.
        command: what was typed to make the report.
    """

    source: str
    model: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    trained_on: tuple[str, ...] | None = None
    geometry: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


def check_folder(folder: Path) -> None:
    """Raise `SourceError` when a report cannot be written to `folder`; called before the long work."""
    try:
        atomic.check_folder(folder)
    except NotADirectoryError as error:
        raise SourceError(
            f"cannot write a report to {folder}: {error.filename} is a file; expected a folder or a new path"
        ) from error
    except OSError as error:
        raise SourceError(f"cannot write a report to {folder}: {error.strerror}") from error


def refuse_existing(folder: Path) -> None:
    """Raise `SourceError` when `folder` holds a report: it may have taken hours to make."""
    if (folder / "summary.json").exists():
        raise SourceError(
            f"{folder} holds a report already; expected another folder, or the option overwrite"
        )


def write(evaluation: Evaluation, folder: Path, context: Context, images: bool = True) -> Path:
    """Write the report and return the path of `report.html`.

    All its files take the place of an earlier report's at once. Files that no report has stay.

    Args:
        evaluation: what to report on.
        folder: created where missing.
        context: what the report says about where its metrics come from.
        images: draw plots and frames; without them a report is written within a second.

    Raises:
        SourceError: it cannot be written; an earlier report is then as it was.
    """
    check_folder(folder)
    try:
        with atomic.replacing_folder(folder, OWNED) as staging:
            _write_files(evaluation, staging, context, images)
    except OSError as error:
        raise SourceError(
            f"the report cannot be written to {folder}: {error.strerror or error}"
        ) from error
    return folder / "report.html"


def _write_files(evaluation: Evaluation, folder: Path, context: Context, images: bool) -> None:
    summary = summarize(evaluation, context)
    text = json.dumps(_json_safe(summary), indent=2)
    (folder / "summary.json").write_text(text, encoding="utf-8")
    evaluation.table.write(folder / "frames.csv")
    evaluation.metrics.save(folder / "metrics.npz")
    drawn = draw(evaluation, law_of(context.model)) if images else Images({})
    for name, data in drawn.plots.items():
        (folder / f"{name}.png").write_bytes(data)
    if drawn.overlay:
        (folder / "overlay.jpg").write_bytes(drawn.overlay)
    for group, frames in (("worst", drawn.worst), ("typical", drawn.typical)):
        for index, frame in enumerate(frames):
            (folder / f"{group}_{index}.jpg").write_bytes(frame.data)
    page = render(summary, context.command, drawn)
    (folder / "report.html").write_bytes(page.encode("utf-8", "replace"))


def summarize(evaluation: Evaluation, context: Context) -> dict[str, Any]:
    """What `summary.json` holds: the figures, and everything needed to make them again."""
    verdict = judge(evaluation, context.model, context.trained_on)
    return {
        "verdict": verdict.as_dict(),
        **evaluation.summary(),
        "geometry": dict(context.geometry),
        "notes": list(context.notes),
        "source": context.source,
        "camera": evaluation.cameras.as_dict(),
        "config": {**context.options, **to_mapping(evaluation.config)},
        "model": dict(context.model),
        "versions": _versions(),
    }


def _versions() -> dict[str, str | None]:
    """What the figures were made with; None for a package that is not installed, or not by pip."""
    versions: dict[str, str | None] = {
        "uncertainty_depth": __version__,
        "python": platform.python_version(),
    }
    for name in ("numpy", "torch", "rosbags"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def _json_safe(value: Any) -> Any:
    """NaN and infinities as null and strings: JSON has neither."""
    if isinstance(value, Mapping):
        return {key: _json_safe(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
