# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate --require`: PASS or FAIL, the exit code, and the files for CI."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from uncertainty_depth.cli.main import main

WORLD = "synthetic:worlds=1,frames=2,seed=7,width=160,height=120"
EVALUATE = ["evaluate", WORLD, "--model", "demo", "--samples", "1", "--example-frames", "0"]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The exit code of a run with three requirements, one of which fails, and its folder."""
    folder = tmp_path_factory.mktemp("judged")
    limits = folder / "limits.yaml"
    limits.write_text("- auce<=0.5\n")
    options = ["--require", "a1>=0.999", "--require", "frames.evaluated>=2"]
    options += ["--require", str(limits), "--junit", str(folder / "junit.xml")]
    return main([*EVALUATE, "--output", str(folder / "report"), *options]), folder


def test_a_failed_requirement_exits_with_3(judged):
    code, folder = judged
    assert code == 3
    assert (folder / "report" / "report.html").is_file()


def test_the_page_and_the_junit_file_hold_the_outcomes(judged):
    _, folder = judged
    (suite,) = ElementTree.parse(folder / "junit.xml").getroot()
    failed = [case.get("name") for case in suite.iter("testcase") if len(case.findall("failure"))]
    assert failed == ["a1>=0.999"]
    page = (folder / "report" / "report.html").read_text()
    assert "FAIL  a1 " in page
    assert "PASS  frames.evaluated 2" in page


def test_an_unknown_metric_is_reported_before_anything_is_scored(tmp_path, capsys):
    output = tmp_path / "report"
    assert main([*EVALUATE, "--output", str(output), "--require", "ause.rsme<=0.2"]) == 1
    sentence = capsys.readouterr().err
    assert "unknown metric 'ause.rsme'" in sentence
    assert "ause.rmse" in sentence
    assert sentence.count("\n") == 1
    assert not output.exists()
