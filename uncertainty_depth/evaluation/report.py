"""An evaluation as files: `summary.json`, `frames.csv`, plots, the resumable metric state, and one self-contained `report.html`."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from uncertainty_depth import __version__
from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation import plots
from uncertainty_depth.evaluation.evaluation import Evaluation
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
    """

    source: str
    model: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    trained_on: tuple[str, ...] | None = None


def check_folder(folder: Path) -> None:
    """Raise `SourceError` when a report cannot be written to `folder`; called before the long work."""
    if folder.exists() and not folder.is_dir():
        raise SourceError(
            f"cannot write a report to {folder}: it is a file; expected a folder or a new path"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"cannot write a report to {folder}: {error.strerror}") from error


def write(evaluation: Evaluation, folder: Path, context: Context) -> Path:
    """Write the whole report and return the path of `report.html`. Files of an earlier report there are replaced."""
    check_folder(folder)
    summary = summarize(evaluation, context)
    _replace(folder / "summary.json", json.dumps(_json_safe(summary), indent=2))
    _replace(folder / "frames.csv", "".join(evaluation.table.text()))
    evaluation.metrics.save(folder / "metrics.npz")
    pictures = {name: _png(figure) for name, figure in _plots(evaluation)}
    shown = [
        (example, _png(example_figure(example), 80)) for example in evaluation.examples.chosen()
    ]
    for name, data in pictures.items():
        (folder / f"{name}.png").write_bytes(data)
    for earlier in folder.glob("frame_[0-9]*.png"):
        earlier.unlink()
    for index, (_, data) in enumerate(shown):
        (folder / f"frame_{index}.png").write_bytes(data)
    page = _render(
        summary,
        context,
        pictures,
        [(example.name, example.figures, data) for example, data in shown],
    )
    _replace(folder / "report.html", page)
    return folder / "report.html"


def summarize(evaluation: Evaluation, context: Context) -> dict[str, Any]:
    """What `summary.json` holds: the figures, and everything needed to make them again."""
    verdict = judge(evaluation, context.model, context.trained_on)
    return {
        "verdict": verdict.as_dict(),
        **evaluation.summary(),
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


def _replace(path: Path, text: str) -> None:
    """Write whole or not at all, so that an interrupted save leaves the earlier file."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
