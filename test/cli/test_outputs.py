# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""No command deletes, moves or replaces what a run of ours did not write."""

from pathlib import Path

import pytest

from test.test_output import CONTEXT, content
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation


@pytest.fixture
def photos(tmp_path):
    """A folder of somebody's pictures."""
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.png", "worst_0.jpg", "b.jpg", "sub/c.png"):
        (folder / name).write_text(name)
    return folder


def test_evaluate_refuses_a_folder_of_other_files_before_the_work(command, photos):
    before = content(photos)
    for option in ((), ("--overwrite",)):
        done = command("evaluate", "no_bag", "--model", "demo", "-o", photos, *option)
        assert done.returncode == 1
        assert f"cannot write to {photos}: it holds files, and no " in done.stderr
        assert content(photos) == before


@pytest.mark.parametrize("output", ["", ".", "..", "../photos/sub/.."])
def test_evaluate_refuses_the_current_folder_and_those_that_hold_it(
    command, photos, monkeypatch, output
):
    before = content(photos)
    monkeypatch.chdir(photos)
    done = command("evaluate", "no_bag", "--model", "demo", "--overwrite", "-o", output)
    assert done.returncode == 1
    assert "is the current folder or holds it" in done.stderr
    assert content(photos) == before


@pytest.mark.parametrize("kind", ["link", "broken link", "loop", "file", "device", "below a loop"])
def test_evaluate_refuses_links_files_and_devices(command, photos, tmp_path, kind):
    output = tmp_path / "output"
    if kind == "file":
        output.write_text("mine")
    elif kind == "device":
        output = Path("/dev/null")
    else:
        targets = {"link": photos, "broken link": tmp_path / "nothing"}
        output.symlink_to(targets.get(kind, output))
    before = content(tmp_path)
    path = output / "report" if kind == "below a loop" else output
    done = command("evaluate", "no_bag", "--model", "demo", "--overwrite", "-o", path)
    assert done.returncode == 1
    assert f"cannot write to {path}: " in done.stderr
    assert content(tmp_path) == before


def test_merge_never_writes_to_its_input(command, tmp_path):
    report.write(Evaluation(), tmp_path / "one", CONTEXT, images=False)
    before = content(tmp_path)
    done = command("merge", tmp_path / "one", "--overwrite", "-o", tmp_path / "one")
    assert done.returncode == 1
    assert "it is an input" in done.stderr
    assert content(tmp_path) == before


def test_a_report_of_an_earlier_version_is_refused_and_stays(command, tmp_path):
    folder = tmp_path / "report"
    report.write(Evaluation(), folder, CONTEXT, images=False)
    (folder / ".uncertainty_depth.json").unlink()
    before = content(folder)
    done = command("evaluate", "no_bag", "--model", "demo", "--overwrite", "-o", folder)
    assert done.returncode == 1
    assert "earlier versions wrote none" in done.stderr
    assert content(folder) == before
