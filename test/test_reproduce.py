# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The documents' numbers are those that their commands make."""

from __future__ import annotations

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


def test_no_block_is_empty() -> None:
    for name in reproduce.BLOCKS:
        assert reproduce.written(name).strip(), name


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


def test_nyu_blocks_say_what_they_need() -> None:
    with pytest.raises(SystemExit, match="--data NYU_DIR and --models"):
        reproduce.main(["nyu-scores"])


def test_reports_of_larger_networks_become_rows(tmp_path: Path) -> None:
    for name, ause in {"tuned-0": 0.2, "tuned-1": 0.4, "scratch-0": 0.3}.items():
        summary = {
            key: None if value != value else value for key, value in metrics_of(ause).items()
        }
        summary.update({f"depth.{key}": 0.1 for key in reproduce.DEPTH_TITLES})
        summary.update({f"uncertainty.{key}": 0.5 for key in reproduce.LARGER_COLUMNS.values()})
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    lines = reproduce.nyu_larger(reproduce.Inputs(reports=tmp_path)).splitlines()
    tuned = "| demo's model, fine-tuned (2 seeds) | 0.100 ± 0.000 |"
    assert lines[2].startswith(tuned)
    assert "| -25 ± 35% | -25 ± 35% | -25 ± 35% | 0.500 ± 0.000 |" in lines[2]
    assert lines[3].startswith("| the same network from scratch (1 seed) | 0.100 |")
    with pytest.raises(SystemExit, match="--reports REPORTS_DIR"):
        reproduce.main(["nyu-larger"])


def metrics_of(ause: float) -> dict[str, float]:
    """Return metrics where all AUSE are `ause`, and those of the baselines 0.5 and 0.4."""
    metrics = {f"depth.{key}": 0.1 for key in reproduce.DEPTH_COLUMNS}
    values = {"uncertainty": ause, **{f"baselines.{key}": 0.5 for key in reproduce.BASELINES}}
    values["baselines.proportional_to_depth"] = 0.4
    for prefix, value in values.items():
        for key in reproduce.COLUMNS.values():
            metrics[f"{prefix}.{key}"] = value
    metrics["baselines.constant.spearman"] = float("nan")
    return metrics


def test_several_seeds_are_a_mean_and_a_sample_deviation_one_is_its_value() -> None:
    lines = reproduce.sigma_table({"two": [metrics_of(0.2), metrics_of(0.4)]}).splitlines()
    assert lines[2].startswith("| two | 0.300 ± 0.141 |")
    assert lines[3].startswith("| – constant | 0.500 ± 0.000 |")
    assert lines[3].endswith(" – |")
    assert lines[5].startswith("| – against the better of the two | -25 ± 35% |")
    single = reproduce.sigma_table({"one": [metrics_of(0.2)]}).splitlines()
    assert single[2].startswith("| one | 0.200 |")
    assert single[5].startswith("| – against the better of the two | -50% |")


def test_only_finished_seeds_are_scored(tmp_path: Path) -> None:
    done = '{"finished": 1}'
    folders = {"net-0": done, "net-1": "{}", "net_long-0": "{}", "net-ensemble-of-2": done}
    for name, text in folders.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.json").write_text(f'{{"training": {text}}}')
    inputs = reproduce.Inputs(tmp_path, tmp_path)
    assert reproduce.nyu_folders(inputs, "net") == [tmp_path / "net-0"]
