# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The documents' numbers are those that their commands make."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduce", DOCS / "reproduce.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reproduce = load_script()
CHEAP = [name for name, block in reproduce.BLOCKS.items() if block.is_cheap]


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_block_is_what_its_command_makes(name: str) -> None:
    made = reproduce.BLOCKS[name].make(reproduce.Inputs())
    assert reproduce.written(name) == reproduce.framed(made)


def test_every_block_of_a_document_has_a_command_and_the_other_way_round() -> None:
    marker = re.compile(r"<!-- made by: (\S+) -->")
    found = {
        (name, os.path.relpath(path, DOCS))
        for path in [*DOCS.rglob("*.md"), *(DOCS.parent / "experiments" / "docs").glob("*.md")]
        for name in marker.findall(path.read_text())
    }
    assert found == {(name, block.document) for name, block in reproduce.BLOCKS.items()}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A document with an old block, where the script looks for it."""
    text = "before\n<!-- made by: demo-model -->\nold\n<!-- end -->\nafter\n"
    (tmp_path / "models.md").write_text(text)
    monkeypatch.setattr(reproduce, "DOCS", tmp_path)
    return tmp_path / "models.md"


def test_a_check_fails_and_writes_nothing(copied: Path, capsys: pytest.CaptureFixture) -> None:
    before = copied.read_text()
    assert reproduce.main(["demo-model", "--check"]) == 1
    assert "differing: demo-model" in capsys.readouterr().out
    assert copied.read_text() == before


def test_a_block_is_replaced_and_the_rest_stays(copied: Path) -> None:
    assert reproduce.main(["demo-model"]) == 0
    text = copied.read_text()
    assert text.startswith("before\n<!-- made by: demo-model -->\n\n|")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert "old" not in text
    assert reproduce.main(["demo-model", "--check"]) == 0
