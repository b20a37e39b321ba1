# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Change the joints between rooms one expression at a time, and print what no test notices.

Run by hand, from a clone: `python docs/tools/mutate_joints.py --minutes 30`. It works on a copy.
Each mutant is tried in a fork of a process that has the libraries loaded already. What survived
the last run, and what became of it, is in docs/mutations.md.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("uncertainty_depth", "test", "config", "launch", "pyproject.toml")
LIVE = "test/ros/test_live_scores.py"
JOINTS = {
    "frames/pairing.py": ("test/frames/test_pairing.py",),
    "frames/cameras.py": (
        "test/frames/test_bag_ground_truth.py",
        "test/frames/test_bag_faults.py",
    ),
    "frames/map_assembly.py": (LIVE, "test/sigma/recorded/test_report_images.py"),
    "core/geometry/focal_length.py": ("test/core/geometry/test_focal_length.py",),
    "stream/held_out.py": ("test/stream/test_held_out.py",),
    "sigma/online/estimates.py": ("test/sigma/calibration/test_online.py",),
    "ros/live_scores.py": (LIVE,),
}
"""The tests that are to hold each: those of its room, and of what is beside it."""
LIBRARIES = ("cv2", "hypothesis", "matplotlib", "numpy", "pytest", "rosbags", "scipy", "torch")
TRIAL_S = 120
OTHERS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def mutants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, the expression, what it becomes, and the whole text of each mutant."""
    tree = ast.parse(source)
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in [inner for statement in function.body for inner in ast.walk(statement)]:
            if not isinstance(node, ast.expr) or (before := ast.unparse(node)) == "":
                continue
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            for after in changed(node):
                text = source.encode()
                whole = text[:begin] + f"({after})".encode() + text[end:]
                with suppress(SyntaxError):  # in an f-string, say
                    ast.parse(whole)
                    yield node.lineno, before, after, whole.decode()


def changed(node: ast.expr) -> Iterator[str]:
    """Yield what an expression may become."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHERS:
        other = OTHERS[type(node.ops[0])]()
        yield ast.unparse(ast.Compare(node.left, [other], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in OTHERS:
        yield ast.unparse(ast.BinOp(node.left, OTHERS[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        yield ast.unparse(ast.BoolOp(OTHERS[type(node.op)](), node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.unparse(node.body)
        yield ast.unparse(node.orelse)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield repr(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield NAMES[node.id]


def survives(folder: Path, tests: tuple[str, ...]) -> bool:
    """Return whether the tests of a copy pass, in a fork of this process."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", f"--timeout={TRIAL_S}"]
        os._exit(pytest.main([*options, *tests]))
    deadline = time.monotonic() + TRIAL_S
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        if time.monotonic() > deadline:
            os.killpg(child, 9)
            os.waitpid(child, 0)
            return False
        time.sleep(0.05)


def main() -> None:
    """Try mutants of all joints in turn until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("joint", nargs="*", default=list(JOINTS), help="modules, of JOINTS")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    for name in LIBRARIES:
        __import__(name)
    counts = {joint: [0, 0, 0] for joint in arguments.joint}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in COPIED:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        waiting = {}
        for joint in arguments.joint:
            began = time.monotonic()
            if not survives(folder, JOINTS[joint]):
                parser.error(f"the tests of {joint} fail without a mutant")
            found = list(mutants((ROOT / "uncertainty_depth" / joint).read_text()))
            counts[joint][0] = len(found)
            print(
                f"{joint}: {len(found)} mutants, {time.monotonic() - began:.1f} s each", flush=True
            )
            waiting[joint] = random.Random(arguments.seed).sample(found, len(found))
        while any(waiting.values()) and time.monotonic() < end:
            for joint, left in waiting.items():
                if not left or time.monotonic() > end:
                    continue
                line, before, after, text = left.pop()
                path = folder / "uncertainty_depth" / joint
                original = path.read_text()
                path.write_text(text)
                counts[joint][1] += 1
                if survives(folder, JOINTS[joint]):
                    counts[joint][2] += 1
                    print(f"{joint}:{line}: `{before}` -> `{after}`", flush=True)
                path.write_text(original)
    print("| joint | mutants | tried | survived |\n| --- | --- | --- | --- |")
    for joint, numbers in counts.items():
        print(f"| `{joint}` | {' | '.join(map(str, numbers))} |")


if __name__ == "__main__":
    main()
