# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The experiment `shift`: the same frames, clean and corrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments import shift, shift_methods, shift_report
from experiments.shift_methods import VARIANTS, methods
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import create, set_members, write_member
from uncertainty_depth.depth.networks.backbone import make_backbone
from uncertainty_depth.depth.networks.depth_network import DepthNetwork
from uncertainty_depth.depth.networks.hourglass import make_network


def frames(level: float, unfamiliarity: float | None = 0.5) -> dict[str, list[float | None]]:
    """Return the scores of three frames."""
    values = [level, level + 0.1, level + 0.2]
    return {
        "mae": values,
        "ause": values,
        "coverage_95": [0.9] * 3,
        "sigma": values,
        "unfamiliarity": [unfamiliarity] * 3,
    }


def test_a_report_has_means_over_corruptions_and_tells_corrupted_from_clean(
    tmp_path: Path,
) -> None:
    conditions = {
        "clean": frames(1.0),
        "elsewhere": frames(9.0),
        "fog_1": frames(1.0),
        "fog_5": frames(2.0, 3.0),
        "night_1": frames(3.0),
        "night_5": frames(4.0, 3.0),
    }
    results = {"rooms": {"sees it": conditions}}
    shift_report.write(tmp_path, results, ("fog", "night"), (1, 5))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["clean"]["rooms: sees it"]["mae"] == pytest.approx(1.1)
    by_kind = summary["corrupted"]["rooms: sees it"]
    assert [row["auroc_sigma"] for row in by_kind["fog"]] == [0.5, 1.0]
    assert [row["auroc_unfamiliarity"] for row in by_kind["fog"]] == [0.5, 1.0]
    table = (tmp_path / "table.md").read_text()
    assert "| rooms: sees it | MAE (m) | 1.100 | 2.100 | 3.100 |" in table
    assert "| rooms: sees it | 9.100 | 9.100 | 0.900 | 1.000 | 0.500 |" in table
    assert (tmp_path / "shift.png").stat().st_size > 1000


def test_a_model_without_familiarity_has_no_such_score(tmp_path: Path) -> None:
    results = {"rooms": {"blind": {"clean": frames(1.0, None), "fog_1": frames(1.0, None)}}}
    shift_report.write(tmp_path, results, ("fog",), (1,))
    table = (tmp_path / "table.md").read_text()
    assert "| rooms: blind | AUROC, unfamiliarity | – | – |" in table


def test_methods_are_compared_with_dropout_frame_by_frame(tmp_path: Path) -> None:
    """The same frames: what differs between frames cancels."""
    ensemble = {"clean": frames(1.0), "fog_1": frames(1.5)}
    dropout = {"clean": frames(1.25), "fog_1": frames(2.5)}
    shift_report.write(
        tmp_path, {"NYU": {"ensemble": ensemble, "MC-dropout": dropout}}, ("fog",), (1,)
    )
    table = (tmp_path / "table.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| ensemble | MAE (m) |"))
    differences = ["-0.250 (-0.250 to -0.250)", "-1.000 (-1.000 to -1.000)"]
    growth = "-0.750 (-0.750 to -0.750)"
    assert row == f"| ensemble | MAE (m) | {' | '.join([*differences, growth])} |"


def test_an_ensemble_is_compared_with_dropout_of_all_its_networks(tmp_path: Path) -> None:
    networks = {f"MC-dropout of network {number}": number for number in range(3)}
    scored = {name: {"clean": frames(n), "fog_1": frames(n + 1.0)} for name, n in networks.items()}
    scored["ensemble"] = {"clean": frames(0.5), "fog_1": frames(1.5)}
    shift_report.write(tmp_path, {"NYU": scored}, ("fog",), (1,))
    table = (tmp_path / "table.md").read_text()
    assert (
        "| ensemble | MAE (m) | -0.500 (-0.500 to -0.500) | -0.500 (-0.500 to -0.500) |" in table
    )
    assert "NYU: MC-dropout of 3 networks, mean ± deviation:" in table
    assert "| MAE (m) | 1.100 ± 1.000 | 2.100 ± 1.000 |" in table
    assert "network 1" not in table


def small_network() -> DepthNetwork:
    config = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(32, 32))
    return make_network(config, make_backbone("tiny"))


def test_a_student_of_the_networks_is_a_method(tmp_path: Path) -> None:
    for name in (f"{VARIANTS[0]}-0", f"{VARIANTS[0]}_distilled-0"):
        create(tmp_path / name, small_network(), {"source": "nyu"})
    (tmp_path / "nyuv2").mkdir()
    found = {method.name: method for method in methods(tmp_path, 2, 1, tmp_path)}
    student = found["distilled"]
    assert (student.folder.name, student.served) == (f"{VARIANTS[0]}_distilled-0", "distilled")
    assert "ensemble" not in found  # the student is not a second seed


def test_an_ensemble_is_joined_from_the_best_network_of_each_seed(tmp_path: Path) -> None:
    for seed in range(2):
        network = small_network()
        folder = tmp_path / f"{VARIANTS[0]}-{seed}"
        create(folder, network, {"source": "nyu"})
        write_member(folder, "worse", network)
        with torch.no_grad():
            network.decoder.final.bias.fill_(seed)
        write_member(folder, "best", network)
        set_members(folder, ["worse", "best"], "multi_epochs")
    (tmp_path / "nyuv2").mkdir()
    found = {method.name: method for method in methods(tmp_path, 2, 1, tmp_path)}
    joined = read_model(found["ensemble"].folder)
    biases = [one.decoder.final.bias[0].item() for one in joined.load_all(joined.members)]
    assert biases == [1, 0]  # the last is the one that single networks are compared with
    assert found["snapshots"].folder == tmp_path / f"{VARIANTS[0]}-0"
    assert found["ensemble"].served == joined.method == "multi_inits"


def test_a_run_scores_the_shipped_model_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse_again: Callable[..., None]
) -> None:
    small = replace(shift.QUICK, frames=2, corruptions=("night",), severities=(5,))
    monkeypatch.setattr(shift, "QUICK", small)
    monkeypatch.setattr(shift_methods, "OF_ONE_NETWORK", {"head alone": "deterministic"})
    monkeypatch.delenv("UNCERTAINTY_DEPTH_DATA", raising=False)
    shift.run(tmp_path, 1, quick=True)
    first = (tmp_path / "summary.json").read_text()
    by_kind = json.loads(first)["corrupted"]["rooms: head alone"]
    assert by_kind["night"][0]["auroc_unfamiliarity"] == 1
    assert np.isfinite(by_kind["night"][0]["mae"])
    refuse_again((shift, "score"))
    shift.run(tmp_path, 1, quick=True)
    assert (tmp_path / "summary.json").read_text() == first
