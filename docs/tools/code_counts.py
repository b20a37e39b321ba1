# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print what can be counted of the code's readability, and the path of an image through it.

    python docs/tools/code_counts.py            # style, per 1,000 lines of code
    python docs/tools/code_counts.py --rooms    # lines by room, and what each promise costs
    python docs/tools/code_counts.py --path     # files and functions from an image to a sigma
    python docs/tools/code_counts.py --frame    # modules from a bag's frame to summary.json
    python docs/tools/code_counts.py --command evaluate my_bag --model demo -o report

Nothing here decides anything: a count is a place to look.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).parents[2] / "uncertainty_depth"
WIDTH = 99
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PROMISES = {
    "depth, sigma and space on topics, live: nodes, launch files, RViz": ("ros",),
    "sigma of a recorded or camera's depth, in metres": (
        "sigma.recorded", "ros.sigma_node", "frames.recorded_folder", "frames.map_assembly",
    ),
    "sigma that fits: calibration, and its correction while driving": (
        "sigma.calibration", "sigma.online", "cli.calibrate",
    ),
    "depth corrected by LiDAR, odometry, another sensor": (
        "sigma.posterior", "sigma.interpolation", "sigma.measurement_option",
        "sigma.motion", "sigma.time_offset",
        "sigma.error_prior", "core.measurements", "frames.measured", "stream.motion",
        "ros.measurement_inputs",
    ),
    "your own network: training": ("depth.training", "core.config.training", "cli.train"),
    "your own network: Hugging Face's models": (
        "depth.networks.pretrained", "depth.networks.families",
        "depth.networks.transformers_backbone",
    ),
    "a report: verdict, page, plots": (
        "report.verdict", "report.judgement", "report.page",
        "report.plots", "report.frame_plots", "report.images",
        "report.repeats", "metrics.conditional",
    ),
    "to compare and to gate CI with": (
        "report.comparison", "report.tables", "report.requirements", "report.saved_state",
        "report.frame_table", "report.fleet", "stream.workers",
    ),
    "exact metrics with intervals": ("metrics",),
    "bags of ROS 2 and 1": (
        "frames.bag", "frames.topics", "frames.recording", "frames.limited_readers",
        "frames.messages", "frames.pairing", "frames.assembly", "frames.transforms",
        "cli.bags", "stream.prediction_bag",
    ),
    "KITTI, NYU Depth v2, RGB-D folders": ("frames.kitti", "frames.nyu", "frames.rgbd"),
    "LiDAR drawn on the image, its geometry checked": (
        "stream.geometry_check", "core.geometry.alignment",
    ),
    "other engines, the Hub, Ray, rerun": ("contrib",),
}  # fmt: skip
"""What README's first screen promises, and the modules that only this promise needs."""


def main() -> None:
    """Print the counts of the package, or the path of one image or frame."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", action="store_true", help="lines by room and promise instead")
    parser.add_argument("--path", action="store_true", help="trace one image to its sigma instead")
    parser.add_argument(
        "--frame", action="store_true", help="trace a bag's frame to summary.json instead"
    )
    parser.add_argument(
        "--command", nargs=argparse.REMAINDER, help="trace an `uncertainty-depth` command instead"
    )
    arguments = parser.parse_args()
    if arguments.command:
        print_command_path(arguments.command)
    elif arguments.rooms:
        print_rooms(sorted(PACKAGE.rglob("*.py")))
    elif arguments.path:
        print_path()
    elif arguments.frame:
        print_frame_path()
    else:
        print_style(sorted(PACKAGE.rglob("*.py")))


def print_style(paths: list[Path]) -> None:
    """Print how often each habit occurs, per 1,000 lines."""
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: text.count("\n") for path, text in texts.items()}
    total = sum(lines.values())
    print(f"{'lines of the package':34}{total:10}")
    habits = count_habits(trees.values())
    habits[f"lines over {WIDTH} columns"] = count_wide_lines(texts.values())
    for name, count in habits.items():
        print(f"{name:34}{count:10}   {1000 * count / total:6.1f} per 1,000 lines")
    lengths = list(function_lengths(trees.values()))
    print(
        f"{'functions':34}{len(lengths):10}   median {statistics.median(lengths):.0f} lines,",
        end=" ",
    )
    print(f"{sum(length > 25 for length in lengths)} over 25 lines")
    once, private = called_once(trees.values())
    print(f"{'private functions called once':34}{once:10}   of {private}")


def print_rooms(paths: list[Path]) -> None:
    """Print files, lines and docstring lines by room, then each promise's lines and the rest's."""
    modules: dict[str, Counter[str]] = {}
    for path in paths:
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        docstrings = sum(docstring_lines(ast.parse(text)))
        modules[name] = Counter(files=1, lines=text.count("\n"), docstrings=docstrings)
    for part in (part for parts in PROMISES.values() for part in parts):
        if not any(f"{name}.".startswith(f"{part}.") for name in modules):
            raise SystemExit(f"no module is called {part}: PROMISES is out of date")
    rooms: dict[str, Counter[str]] = {}
    promises: dict[str, Counter[str]] = {}
    for name, counts in modules.items():
        rooms.setdefault(name.partition(".")[0] if "." in name else "", Counter()).update(counts)
        promise = next((text for text, parts in PROMISES.items() if _is_in(name, parts)), "rest")
        promises.setdefault(promise, Counter()).update(counts)
    rooms["in all"] = sum(modules.values(), Counter())
    for table in (rooms, dict(sorted(promises.items(), key=lambda row: -row[1]["lines"]))):
        for name, counts in table.items():
            numbers = (counts["files"], counts["lines"], counts["docstrings"])
            print(f"{name:68}{numbers[0]:5} files{numbers[1]:7} lines{numbers[2]:6} of docstrings")


def _is_in(module: str, parts: tuple[str, ...]) -> bool:
    """Return whether a module is one of these, or below one; the longest name decides."""
    named = [part for promise in PROMISES.values() for part in promise]
    places = [part for part in named if module == part or module.startswith(f"{part}.")]
    return bool(places) and max(places, key=len) in parts


def docstring_lines(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of each docstring in a module."""
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
            yield (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def count_habits(trees: Any) -> Counter[str]:
    """Return how often each habit occurs in the syntax trees."""
    counts: Counter[str] = Counter()
    for node in (node for tree in trees for node in ast.walk(tree)):
        counts["tuple assignments"] += _is_tuple_assignment(node)
        counts["unpacked comprehensions"] += _is_unpacked_comprehension(node)
        counts["comprehensions"] += isinstance(node, COMPREHENSIONS)
        counts["nested comprehensions"] += _is_nested_comprehension(node)
        counts["lambdas"] += isinstance(node, ast.Lambda)
        counts["lambdas outside calls"] += _lambdas_in(node) if not _takes_lambdas(node) else 0
    return counts


def count_wide_lines(texts: Any) -> int:
    """Return the number of lines wider than `WIDTH` columns."""
    return sum(len(line) > WIDTH for text in texts for line in text.split("\n"))


def function_lengths(trees: Any) -> Iterator[int]:
    """Yield the lines of each function's body, its docstring left out."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, FUNCTIONS):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def called_once(trees: Any) -> tuple[int, int]:
    """Return how many private functions are used once, and how many there are."""
    private: set[str] = set()
    uses: Counter[str] = Counter()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, FUNCTIONS) and node.name.startswith("_") and node.name[1:2] != "_":
            private.add(node.name)
        elif isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute):
            uses[node.attr] += 1
    return sum(uses[name] == 1 for name in private), len(private)


def _takes_lambdas(node: ast.AST) -> bool:
    """Return whether a lambda directly in this node is an argument of a call."""
    return isinstance(node, (ast.Call, ast.keyword))


def _lambdas_in(node: ast.AST) -> int:
    return sum(isinstance(child, ast.Lambda) for child in ast.iter_child_nodes(node))


def _is_tuple_assignment(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def _is_unpacked_comprehension(node: ast.AST) -> bool:
    """Return whether a comprehension is unpacked into several names."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return False
    return isinstance(node.value, COMPREHENSIONS)


def _is_nested_comprehension(node: ast.AST) -> bool:
    if not isinstance(node, COMPREHENSIONS):
        return False
    inner = (child for child in ast.walk(node) if child is not node)
    return len(node.generators) > 1 or any(isinstance(child, COMPREHENSIONS) for child in inner)


def print_path() -> None:
    """Print the package's files and functions that one image passes on its way to a sigma.

    The predictor is called twice: what happens once, on the first image, is left out. So are
    comprehensions, which some versions of Python count as functions.
    """
    import numpy as np

    from uncertainty_depth.depth.predictor import Predictor

    predictor = Predictor(PACKAGE / "models" / "demo")
    image = np.zeros((240, 320, 3), np.uint8)
    predictor.predict(image)
    with traced() as functions:
        predictor.predict(image, 1)
    for path, name in functions:
        print(f"{path:40}{name}")
    print(f"{len({path for path, _ in functions})} files, {len(functions)} functions")


def print_frame_path() -> None:
    """Print the package's modules that a bag's frame passes on its way to `summary.json`.

    The predictor is a stand-in of this script: its modules are those of `--path`. What a module
    does at its import is left out, and so are `report.html`, its plots and the other files.
    """
    import numpy as np

    from uncertainty_depth.cli.main import main as command
    from uncertainty_depth.core.config.source import SourceConfig
    from uncertainty_depth.core.records import DepthPrediction
    from uncertainty_depth.report.evaluation import evaluate
    from uncertainty_depth.report.report import Context, summarize
    from uncertainty_depth.stream.opening import open_source
    from uncertainty_depth.stream.stream import predicted

    class Constant:
        """Predicts 3 m and a sigma of 1 m everywhere."""

        def predict(
            self, image: np.ndarray, stamp_ns: int, camera: object = None
        ) -> DepthPrediction:
            ones = np.ones(image.shape[:2], np.float32)
            return DepthPrediction(3 * ones, ones)

    with tempfile.TemporaryDirectory() as folder:
        bag = f"{folder}/bag"
        command(["convert", "synthetic:worlds=1,frames=2", bag])
        source = open_source(bag, SourceConfig())
        with traced() as functions:
            evaluation = evaluate(predicted(source, Constant()), progress=False)
            summarize(evaluation, Context("bag", {}))
    modules = Counter(path for path, _ in functions)
    for module, number in sorted(modules.items()):
        print(f"{module:40}{number:4} functions")
    rooms = Counter(module.partition("/")[0] for module in modules)
    print(", ".join(f"{room} {number}" for room, number in sorted(rooms.items())))
    print(f"{len(modules)} modules, {len(functions)} functions")


def print_command_path(words: list[str]) -> None:
    """Run a command, and print how many files and functions of the package it enters.

    Bodies of classes count as functions, those of modules do not.
    """
    with traced() as functions:
        from uncertainty_depth.cli.main import main as command

        command(words)
    entered = [(path, name) for path, name in functions if name not in ("<module>", "<lambda>")]
    files = len({path for path, _ in entered})
    print(f"{words[0]}: {files} files, {len(entered)} functions and class bodies")


@contextmanager
def traced() -> Iterator[dict[tuple[str, str], None]]:
    """Collect the functions of the package called in this block, as (file, name), in order."""
    functions: dict[tuple[str, str], None] = {}

    def record(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        is_comprehension = frame.f_code.co_name.endswith(("comp>", "<genexpr>"))
        if event == "call" and PACKAGE in path.parents and not is_comprehension:
            name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
            functions.setdefault((path.relative_to(PACKAGE).as_posix(), name))

    threading.setprofile(record)  # of threads that start in the block: reading is on one
    sys.setprofile(record)
    try:
        yield functions
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


if __name__ == "__main__":
    main()
