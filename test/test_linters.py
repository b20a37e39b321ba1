"""The linters of ROS 2 packages, where they are installed (`make lint` does)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = [str(ROOT / name) for name in ("uncertainty_depth", "launch", "test", "docs")]
COPYRIGHT = (
    "# Copyright 2026 The uncertainty_depth developers. "
    "Licensed under the Apache License, Version 2.0."
)


def lint(module: str, *options: str) -> None:
    """Run a linter in a process of its own: in a deep stack Python 3.11's parser can fail."""
    command = f"import sys; from {module}.main import main; sys.exit(main(sys.argv[1:]))"
    result = subprocess.run(
        [sys.executable, "-c", command, *options], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def test_ament_flake8():
    pytest.importorskip("ament_flake8")
    pytest.importorskip("flake8")
    lint("ament_flake8", "--config", str(ROOT / ".flake8"), *FOLDERS)


def test_ament_pep257():
    pytest.importorskip("ament_pep257")
    pytest.importorskip("pydocstyle")
    options = ["--convention", "google", "--add-ignore", "D105", "D107", "D415"]
    folders = [str(ROOT / "uncertainty_depth"), str(ROOT / "launch")]
    lint("ament_pep257", *options, "--", *folders)


def test_xmllint():
    if shutil.which("xmllint") is None:
        pytest.skip("xmllint is not installed (libxml2-utils)")
    subprocess.run(["xmllint", "--noout", str(ROOT / "package.xml")], check=True)


def test_every_file_says_whose_it_is():
    sources = [*ROOT.glob("uncertainty_depth/**/*.py"), *ROOT.glob("launch/*.py")]
    without = [
        str(path.relative_to(ROOT))
        for path in sources
        if not path.read_text(encoding="utf-8").startswith(COPYRIGHT)
    ]
    assert not without
