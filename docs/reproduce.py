# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Make the numbers in these documents again, each by the command that stands in its marker.

A block is what stands between `<!-- made by: NAME -->` and `<!-- end -->` in a Markdown file.

    python docs/reproduce.py demo-model demo-scores
    python docs/reproduce.py nyu-scores --data NYU_DIR --models MODELS_DIR
    python docs/reproduce.py indoor-scores nyu-imagenet --reports REPORTS_DIR

MODELS_DIR is the folder `models` that `python -m experiments nyu` writes, REPORTS_DIR one
of outputs of `uncertainty-depth evaluate`. Without names, all blocks that need none of them are
made. `--check` writes nothing and fails where a block differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from experiments.nyu_methods import ROWS, TRAINING_FREE, TRAINING_FREE_LAPLACE, Row, prediction
from experiments.tables import markdown, mean_and_deviation
from uncertainty_depth.core import atomic
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.sigma.calibration.fit import SHAPES, SIZES
from uncertainty_depth.stream.opening import open_source

DOCS = Path(__file__).resolve().parent
DEMO = DOCS.parent / "uncertainty_depth" / "models" / "demo"
UNSEEN = "synthetic:worlds=16,frames=3,rate=0.5,seed=20000,test_objects=true"
BASELINES = {
    "constant": "– constant",
    "proportional_to_depth": "– depth",
}
BASELINE_PREFIXES = {title: f"baselines.{key}" for key, title in BASELINES.items()}
COLUMNS = {
    "AUSE abs_rel": "ause.abs_rel",
    "AUSE rmse (m)": "ause.rmse",
    "AUSE 1 - a1": "ause.a1",
    "AUCE": "auce",
    "AUCE (Laplace)": "auce_laplace",
    "95 %": "coverage_95",
    "95 % (Laplace)": "coverage_95_laplace",
    "NLL (Laplace)": "nll_laplace",
    "n-MeRCI": "n_merci",
    "Spearman": "spearman",
}
DEPTH_COLUMNS = ("abs_rel", "rmse", "a1")
DEPTH_TITLES = {"mae": "MAE (m)", "abs_rel": "abs_rel", "rmse": "rmse (m)", "a1": "a1"}
NYU_SCORED = (
    "multi_epochs",
    "multi_epochs_laplace",
    "multi_epochs_long",
    "mc_dropout",
    "mc_dropout_laplace",
    *TRAINING_FREE,
    *TRAINING_FREE_LAPLACE,
)
"""Rows of the NYU experiment."""
STARTS = {
    "ImageNet": "imagenet_laplace",
    "ImageNet, then rendered rooms": "rendered_laplace",
    "random weights": "scratch_laplace",
    "ImageNet, no head": "imagenet_none",
}
"""What the trainings start from to the first part of the names of their reports."""
INDOOR_REPORTS = {
    "KITTI street": "street",
    "table-tops": "tabletop",
    "rendered table-tops, low robots": "near",
    "classroom": "classroom",
    "HoloLens": "hololens",
    "7-Scenes kitchen": "kitchen",
    "rendered rooms": "rooms",
    "NYU test": "nyu",
}
"""Outputs of the commands beside the block."""
CONSTANT_CHECK = "a1 against the best constant depth"
REPORTED = {"NYU": "nyu", "HoloLens": "hololens", "kitchen": "kitchen"}
METHODS = {"mc_dropout": "[0-9]", "multi_epochs": "[0-9]", "multi_inits": "all"}
"""Method to the seeds in the names of its reports; three networks are one ensemble."""
SIZE_COLUMNS = {
    "AUCE (Laplace)": "auce_laplace",
    "95 % (Laplace)": "coverage_95_laplace",
    "n-MeRCI": "n_merci",
}
WORSENING = {"n-MeRCI with distance": "n_merci", "MAE with distance": "mae"}
Scores = Mapping[str, Sequence[Mapping[str, float]]]
"""Title to the metrics of each seed, by dotted name."""


class Inputs(NamedTuple):
    """Folders that some blocks need.

    Attributes:
        data: of NYU Depth v2.
        models: of the networks of the NYU experiment.
        reports: of outputs of `evaluate`.
    """

    data: Path | None = None
    models: Path | None = None
    reports: Path | None = None


class Block(NamedTuple):
    """A part of a document, and the function that makes it.

    Attributes:
        document: relative to this folder.
        make: returns its Markdown.
        is_cheap: takes less than a few seconds, and no processor rounds it differently.
        needs_folders: needs folders of `Inputs`.
    """

    document: str
    make: Callable[[Inputs], str]
    is_cheap: bool = False
    needs_folders: bool = False


def demo_model(_: Inputs) -> str:
    """Return what the demo's model.json says."""
    content = json.loads((DEMO / "model.json").read_text())
    training = content["training"]
    frames = training["frames"]
    camera = training["camera"]
    median_m = training["median_depth_m"]
    rows = [
        ["source", f"`{training['source']}`"],
        ["frames, training / held out", f"{frames['training']} / {frames['validation']}"],
        ["epochs, and the one kept", f"{training['epochs']} / {training['kept_epochs'][0]}"],
        ["head", content["network"]["head"]],
        ["depth range (m)", " to ".join(map(str, content["network"]["depth_range"]))],
        ["focal length / width", " to ".join(map(str, camera["focal_length_per_width"]))],
        ["aspect", " to ".join(map(str, camera["aspect"]))],
        ["median depth, middle of the top row (m)", str(median_m[0][10])],
        ["median depth, middle of the bottom row (m)", str(median_m[-1][10])],
        ["weights (MB)", f"{(DEMO / 'best.safetensors').stat().st_size / 1e6:.1f}"],
    ]
    return markdown(["", ""], rows)


def maps(_: Inputs) -> str:
    """Return the maps that a calibration chooses among."""
    sizes = [name.strip(", ") or "coverage" for name in SIZES]
    number = 1 + len(sizes) * (1 + len(SHAPES))
    sentence = (
        f"{number} maps: raw sigma; and, sized by {' and by '.join(sizes)}, a pure scale and the "
        f"shapes {' and '.join(SHAPES)}."
    )
    return textwrap.fill(sentence, 99) + "\n"


def demo_scores(_: Inputs) -> str:
    """Score the demo's model on unseen worlds, by exact depth and by LiDAR."""
    predictor = Predictor(DEMO, PredictorConfig(device="cpu"))
    scores = {
        "dense": [score(predictor, UNSEEN + ",dense=true")],
        "LiDAR": [score(predictor, UNSEEN)],
    }
    return depth_table(scores) + "\n" + sigma_table(scores)


def score(predictor: Predictor, source: str) -> dict[str, Any]:
    """Return all metrics over a source, by dotted name."""
    metrics = OnlineMetrics()
    for record in open_source(source, SourceConfig()):
        if isinstance(record, Frame):
            prediction = predictor.predict(record.image, record.stamp_ns, record.camera)
            metrics.update(prediction.depth_m, prediction.sigma_m, record.ground_truth_m)
    return flatten(metrics.compute())


def depth_table(scores: Scores) -> str:
    """Return the depth metrics, a row for each entry."""
    rows = []
    for title, seeds in scores.items():
        rows.append([title, *_cells(seeds, [f"depth.{key}" for key in DEPTH_COLUMNS])])
    return markdown(["", *(DEPTH_TITLES[key] for key in DEPTH_COLUMNS)], rows)


def sigma_table(scores: Scores) -> str:
    """Return rows for each entry, each baseline on its depth, and the change to the better."""
    rows: list[list[str]] = []
    for title, seeds in scores.items():
        for row_title, prefix in {title: "uncertainty", **BASELINE_PREFIXES}.items():
            keys = [f"{prefix}.{key}" for key in COLUMNS.values()]
            rows.append([row_title, *_cells(seeds, keys)])
        rows.append(["– against the better of the two", *_changes(seeds)])
    return markdown(["", *COLUMNS], rows)


def _cells(seeds: Sequence[Mapping[str, float]], keys: Sequence[str]) -> list[str]:
    """Return mean and sample standard deviation over the seeds, or the only value."""
    cells = []
    for key in keys:
        values = [seed[key] for seed in seeds]
        cells.append(mean_and_deviation(values) if np.isfinite(values).all() else "–")
    return cells


def _changes(seeds: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield percent, of the metrics that do not depend on the size of sigma; below 0 is better."""
    for key in COLUMNS.values():
        yield _change(seeds, key) if key.startswith(("ause", "n_merci")) else ""


def _change(seeds: Sequence[Mapping[str, float]], key: str) -> str:
    """Return the change of a metric in percent, against the better of the first two baselines."""
    changes = []
    for seed in seeds:
        baselines = [seed[f"baselines.{name}.{key}"] for name in list(BASELINES)[:2]]
        changes.append(100 * (seed[f"uncertainty.{key}"] / min(baselines) - 1))
    deviation = f" ± {np.std(changes, ddof=1):.0f}" if len(changes) > 1 else ""
    return f"{np.mean(changes):+.0f}{deviation}%"


def nyu_scores(inputs: Inputs) -> str:
    """Score all finished seeds of the NYU experiment's networks on the official test split."""
    scores = _nyu_rows(inputs, NYU_SCORED)
    return depth_table(scores) + "\n" + sigma_table(scores)


def nyu_imagenet(inputs: Inputs) -> str:
    """Return the scores of trainings with three starts, from the reports of each seed."""
    if inputs.reports is None:
        raise SystemExit("reproduce: nyu-imagenet needs --reports REPORTS_DIR")
    ause = [key for key in COLUMNS.values() if key.startswith("ause")]
    tables = []
    for title, data in REPORTED.items():
        trends = WORSENING if data == "nyu" else {}
        rows = []
        for start, training in STARTS.items():
            for method, seed in METHODS.items():
                seeds = []
                for path in sorted(
                    inputs.reports.glob(f"{data}-{training}-{method}-{seed}/summary.json")
                ):
                    seeds.append(flatten(json.loads(path.read_text())))
                if not seeds:
                    continue
                cells = _cells(seeds, [f"depth.{key}" for key in DEPTH_TITLES])
                cells += [_change(seeds, key) for key in ause]
                cells += _cells(seeds, [f"uncertainty.{key}" for key in SIZE_COLUMNS.values()])
                for key in trends.values():
                    cells.append(mean_and_deviation([_trend(seed, key) for seed in seeds]))
                rows.append([f"{start}, {method}", *cells])
        header = [title, *DEPTH_TITLES.values(), "AUSE abs_rel", "AUSE rmse", "AUSE 1 - a1"]
        tables.append(markdown([*header, *SIZE_COLUMNS, *trends], rows))
    return "\n".join(tables)


def indoor_scores(inputs: Inputs) -> str:
    """Return the scores of the model indoor, from its reports."""
    if inputs.reports is None:
        raise SystemExit("reproduce: indoor-scores needs --reports REPORTS_DIR")
    depth_rows = []
    sigma_rows = []
    for title, folder in INDOOR_REPORTS.items():
        summary = json.loads((inputs.reports / folder / "summary.json").read_text())
        values = flatten(summary)
        lines = {line["name"]: line for line in summary["verdict"]["lines"]}
        cells = [f"{values[f'depth.{key}']:.3f}" for key in DEPTH_TITLES]
        cells.append(_constant_a1(folder, lines["depth"]["checks"]))
        depth_rows.append([title, *cells, *(line["color"] for line in lines.values())])
        cells = []
        for key in ("ause.abs_rel", "ause.rmse", "ause.a1"):
            baselines = [f"{values[f'baselines.{name}.{key}']:.3f}" for name in BASELINES]
            cells += [f"{values[f'uncertainty.{key}']:.3f}", ", ".join(baselines)]
        cells.append(f"{values['uncertainty.n_merci']:.2f}")
        cells.append(f"{values['uncertainty.auce_laplace']:.3f}")
        cells.append(f"{100 * values['uncertainty.coverage_95_laplace']:.1f} %")
        cells.append(f"{values['unfamiliarity.mean']:.2f}")
        cells.append(f"{100 * values['unfamiliarity.fraction_above_1']:.0f} %")
        sigma_rows.append([title, *cells])
    depth_header = ["", *DEPTH_TITLES.values(), "a1 of a constant", *(f"*{n}*" for n in lines)]
    sigma_header = [""]
    for name in ("abs_rel", "rmse (m)", "1 - a1"):
        sigma_header += [f"AUSE {name}", "of constant, depth"]
    sigma_header += ["n-MeRCI", "AUCE (Laplace)", "95 % (Laplace)", "unfamiliarity", "above 1"]
    return markdown(depth_header, depth_rows) + "\n" + markdown(sigma_header, sigma_rows)


def _constant_a1(folder: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """Return a1 of the best constant depth, which stands in the verdict's text alone."""
    texts = {check["name"]: check["text"] for check in checks}
    found = re.search(r"best constant depth \(([\d.]+)\)", texts.get(CONSTANT_CHECK, ""))
    if found is None:
        raise SystemExit(
            f"reproduce: the report {folder} has the checks {list(texts)}; expected "
            f"{CONSTANT_CHECK!r}, with that constant's a1 in its text"
        )
    return found.group(1)


def _trend(seed: Mapping[str, float], key: str) -> float:
    """Return the rank correlation of a metric with distance, over the report's intervals."""
    by_distance = [value for name, value in seed.items() if name.startswith(f"by_distance.{key}.")]
    known = [value for value in by_distance if value is not None]
    return float(spearmanr(range(len(known)), known).statistic)


def _nyu_rows(inputs: Inputs, names: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Return the scores of every finished seed, by title."""
    scores: dict[str, list[dict[str, float]]] = {}
    for name in names:
        row = ROWS[name]
        folders = nyu_folders(inputs, row.variant)
        title = nyu_title(row)
        if len(folders) > 1:
            title += f" ({len(folders)} seeds)"
        for folder in folders:
            metrics = score(Predictor(folder, prediction(row)), f"nyu:{inputs.data}:test")
            print(json.dumps({f"{folder.name}, {nyu_title(row)}": metrics}), file=sys.stderr)
            scores.setdefault(title, []).append(metrics)
    return scores


def nyu_title(row: Row) -> str:
    """Return the training and the method of a row, with its samples where they are its own."""
    samples = f" --samples {row.samples}" if row.samples != PredictorConfig().samples else ""
    return f"{row.variant}, {row.served}{samples}"


def nyu_folders(inputs: Inputs, training: str) -> list[Path]:
    """Return the folders of a training's finished seeds, seed 0 first."""
    if inputs.data is None or inputs.models is None:
        raise SystemExit("reproduce: the NYU blocks need --data NYU_DIR and --models MODELS_DIR")
    return [
        folder
        for folder in sorted(inputs.models.glob(f"{training}-[0-9]*"))
        if is_finished(folder)
    ]


def is_finished(folder: Path) -> bool:
    """Return whether the training in the folder finished."""
    path = folder / "model.json"
    return path.exists() and bool(json.loads(path.read_text())["training"].get("finished"))


BLOCKS = {
    "demo-model": Block("models.md", demo_model, is_cheap=True),
    "demo-scores": Block("models.md", demo_scores),
    "indoor-scores": Block("models.md", indoor_scores, needs_folders=True),
    "calibration-maps": Block("calibration.md", maps, is_cheap=True),
    "nyu-scores": Block("../experiments/docs/nyu.md", nyu_scores, needs_folders=True),
    "nyu-imagenet": Block("../experiments/docs/nyu.md", nyu_imagenet, needs_folders=True),
}


def pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a block's content between its markers."""
    return re.compile(rf"(?<=<!-- made by: {name} -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def written(name: str) -> str:
    """Return the block's content in its document.

    Raises:
        SystemExit: the document has no such block.
    """
    document = DOCS / BLOCKS[name].document
    match = pattern(name).search(document.read_text())
    if match is None:
        raise SystemExit(f"reproduce: {document.name} has no block {name}; expected its markers")
    return match.group()


def framed(content: str) -> str:
    """Return the content with an empty line before and after, as Markdown wants it."""
    return f"\n{content.strip()}\n\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the blocks, or compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BLOCKS))
    parser.add_argument("--data", type=Path, metavar="NYU_DIR")
    parser.add_argument("--models", type=Path, metavar="MODELS_DIR")
    parser.add_argument("--reports", type=Path, metavar="REPORTS_DIR")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.names) - set(BLOCKS):
        parser.error(f"unknown block {sorted(unknown)[0]!r}; expected {', '.join(BLOCKS)}")
    inputs = Inputs(arguments.data, arguments.models, arguments.reports)
    names = arguments.names or [name for name, block in BLOCKS.items() if not block.needs_folders]
    differing = []
    for name in names:
        before = written(name)
        content = framed(BLOCKS[name].make(inputs))
        if content == before:
            continue
        differing.append(name)
        if not arguments.check:
            document = DOCS / BLOCKS[name].document
            changed = pattern(name).sub(lambda _, new=content: new, document.read_text())
            atomic.write_text(document, changed)
    print(f"differing: {', '.join(differing) or 'none'}")
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
