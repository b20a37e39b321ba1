# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The documents' numbers are those that their commands make."""

import importlib.util
import json
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
def test_a_cheap_block_is_what_its_command_makes(name):
    made = reproduce.BLOCKS[name].make(reproduce.Inputs())
    assert reproduce.written(name) == reproduce.framed(made)


def test_every_block_of_a_document_has_a_command_and_the_other_way_round():
    marker = re.compile(r"<!-- made by: (\S+) -->")
    found = {
        (name, os.path.relpath(path, DOCS))
        for path in [*DOCS.rglob("*.md"), *(DOCS.parent / "experiments" / "docs").glob("*.md")]
        for name in marker.findall(path.read_text())
    }
    assert found == {(name, block.document) for name, block in reproduce.BLOCKS.items()}


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A document with an old block, where the script looks for it."""
    text = "before\n<!-- made by: demo-model -->\nold\n<!-- end -->\nafter\n"
    (tmp_path / "models.md").write_text(text)
    monkeypatch.setattr(reproduce, "DOCS", tmp_path)
    return tmp_path / "models.md"


def test_a_check_fails_and_writes_nothing(copied, capsys):
    before = copied.read_text()
    assert reproduce.main(["demo-model", "--check"]) == 1
    assert "differing: demo-model" in capsys.readouterr().out
    assert copied.read_text() == before


def test_a_block_is_replaced_and_the_rest_stays(copied):
    assert reproduce.main(["demo-model"]) == 0
    text = copied.read_text()
    assert text.startswith("before\n<!-- made by: demo-model -->\n\n|")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert "old" not in text
    assert reproduce.main(["demo-model", "--check"]) == 0


def indoor_reports(folder: Path, checks: list[dict[str, str]]) -> None:
    """Write summaries whose values are all 0.5."""
    half = dict.fromkeys(
        ["mae", "abs_rel", "rmse", "a1", "n_merci", "auce_laplace", "coverage_95_laplace"], 0.5
    )
    ranked = {**half, "ause": half}
    summary = {
        "depth": half,
        "uncertainty": ranked,
        "baselines": {"constant": ranked, "proportional_to_depth": ranked},
        "unfamiliarity": {"mean": 0.5, "fraction_above_1": 0.5},
        "verdict": {"lines": [{"name": "depth", "color": "green", "checks": checks}]},
    }
    for name in reproduce.INDOOR_REPORTS.values():
        (folder / name).mkdir()
        (folder / name / "summary.json").write_text(json.dumps(summary))


def test_the_constants_a1_is_of_the_check_with_its_name(tmp_path):
    against = "against the best constant depth"
    checks = [
        {
            "name": "rmse_log " + against,
            "text": "rmse_log 0.2 beats the best constant depth (0.391)",
        },
        {"name": "a1 " + against, "text": "a1 0.8 beats the best constant depth (0.456)"},
    ]
    indoor_reports(tmp_path, checks)
    made = reproduce.indoor_scores(reproduce.Inputs(reports=tmp_path))
    assert "0.456" in made
    assert "0.391" not in made


@pytest.mark.parametrize("text", ["", "a1 0.8 beats the best constant depth"])
def test_a_report_without_the_constants_a1_is_refused(tmp_path, text):
    indoor_reports(
        tmp_path, [{"name": "a1 against the best constant depth" if text else "a1", "text": text}]
    )
    with pytest.raises(SystemExit, match="the report street has the checks"):
        reproduce.indoor_scores(reproduce.Inputs(reports=tmp_path))
