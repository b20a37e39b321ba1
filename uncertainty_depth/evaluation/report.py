"""An evaluation as files: `summary.json`, `frames.csv`, plots, the resumable metric state, and one self-contained `report.html`."""

from __future__ import annotations

import base64
import io
import json
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from uncertainty_depth import __version__, atomic
from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation import plots
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.examples import Example
from uncertainty_depth.evaluation.images import example_figure
from uncertainty_depth.evaluation.summary import (
    BASELINES,
    UNCERTAINTY_ROWS,
    compared,
    depth,
    scored_sigma,
)
from uncertainty_depth.evaluation.verdict import judge
from uncertainty_depth.options import to_mapping

OWNED = ("summary.json", "frames.csv", "metrics.npz", "report.html", "*.png")
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
    """

    source: str
    model: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    trained_on: tuple[str, ...] | None = None
    geometry: Mapping[str, Any] = field(default_factory=dict)


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
    (folder / "summary.json").write_text(json.dumps(_json_safe(summary), indent=2))
    evaluation.table.write(folder / "frames.csv")
    evaluation.metrics.save(folder / "metrics.npz")
    plot_images: dict[str, bytes] = {}
    shown: list[tuple[Example, bytes]] = []
    if images:
        plot_images = {name: _png(figure) for name, figure in _plots(evaluation)}
        shown = [
            (example, _png(example_figure(example), 80))
            for example in evaluation.examples.chosen()
        ]
    for name, data in plot_images.items():
        (folder / f"{name}.png").write_bytes(data)
    for index, (_, data) in enumerate(shown):
        (folder / f"frame_{index}.png").write_bytes(data)
    examples = [(example.name, example.figures, data) for example, data in shown]
    page = _render(summary, context, plot_images, examples)
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


def _plots(evaluation: Evaluation) -> Iterator[tuple[str, Figure]]:
    if evaluation.evaluated:
        yield from plots.figures(evaluation.metrics.curves()).items()


def _png(figure: Figure, dpi: int = 110) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _render(
    summary: Mapping[str, Any],
    context: Context,
    pictures: Mapping[str, bytes],
    examples: list[tuple[str, Mapping[str, float], bytes]],
) -> str:
    environment = Environment(
        loader=PackageLoader("uncertainty_depth.evaluation", "."),
        autoescape=True,
        undefined=StrictUndefined,
    )
    method = context.model.get("method", "unknown method")
    return environment.get_template("report.html.j2").render(
        title=f"{context.source}: depth and its uncertainty",
        lead=f"{method}, {scored_sigma(context.model)}, {summary['frames']['evaluated']} frames, {summary['pixels']:,} pixels with ground truth",
        verdict=summary["verdict"],
        baselines=BASELINES.values(),
        uncertainty=[compared(summary, key) for key in UNCERTAINTY_ROWS],
        depth=depth(summary),
        frames=summary["frames"],
        notes=context.notes,
        plots=[{"name": name, "data": _base64(data)} for name, data in pictures.items()],
        examples=[
            {"name": name, "data": _base64(data), "caption": _caption(name, figures)}
            for name, figures, data in examples
        ],
        settings=json.dumps(
            _json_safe({key: summary[key] for key in ("source", "config", "model", "versions")}),
            indent=2,
        ),
    )


def _caption(name: str, figures: Mapping[str, float]) -> str:
    chosen = {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI trimmed": "uncertainty.n_merci_trimmed",
        "AUSE rmse": "uncertainty.ause.rmse",
    }
    return f"frame {name}: " + ", ".join(
        f"{label} {figures[key]:.3f}" for label, key in chosen.items()
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _json_safe(value: Any) -> Any:
    """NaN and infinities as null and strings: JSON has neither."""
    if isinstance(value, Mapping):
        return {key: _json_safe(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
