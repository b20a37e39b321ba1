# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check pages and sources for what no linter knows: links, width, length, and the licence line.

`make lint` runs it; it prints one sentence for each finding and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "experiments" / "docs").glob("*.md")),
]
WIDTH = 99
README_LINES = 120
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
UNWRAPPED = re.compile(r" *\|| *!\[|#|    ")
"""Tables, images, headings and indented code cannot be wrapped."""
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
COPYRIGHT = (
    "# Copyright 2026 The uncertainty_depth developers. "
    "Licensed under the Apache License, Version 2.0."
)


def findings() -> Iterator[str]:
    """Yield what is wrong, a sentence each."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for link in LINK.findall(text):
            if not (page.parent / link).exists():
                yield f"{page.relative_to(ROOT)} links to {link}, which does not exist"
        for line in CODE.sub("", text).splitlines():
            if len(line) > WIDTH and not UNWRAPPED.match(line):
                yield f"{page.relative_to(ROOT)} has a line of {len(line)} columns: {line[:40]}..."
    lines = len(PAGES[0].read_text(encoding="utf-8").splitlines())
    if lines > README_LINES:
        yield f"README.md has {lines} lines; expected at most {README_LINES}"
    for page, text in reference.pages():
        if page.read_text(encoding="utf-8") != text:
            yield f"{page.relative_to(ROOT)} is old: run python docs/tools/reference.py"
    for folder in ("uncertainty_depth", "experiments", "benchmarks", "launch"):
        for path in ROOT.glob(f"{folder}/**/*.py"):
            text = path.read_text(encoding="utf-8")
            if "test" not in path.parts and not text.startswith(COPYRIGHT):
                yield f"{path.relative_to(ROOT)} does not begin with the licence line"


if __name__ == "__main__":
    found = list(findings())
    print(*found, sep="\n")
    sys.exit(bool(found))
