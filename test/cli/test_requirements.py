# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate --require`: PASS or FAIL, the exit code, and the files for CI."""

from xml.etree import ElementTree

from uncertainty_depth.cli.main import main

WORLD = "synthetic:worlds=1,frames=2,seed=7,width=160,height=120"
EVALUATE = f"evaluate {WORLD} --model demo --samples 1".split()


def test_a_failed_requirement_exits_with_3_and_page_and_junit_file_hold_the_outcomes(tmp_path):
    """Of three requirements one fails."""
    limits = tmp_path / "limits.yaml"
    limits.write_text("- auce<=0.5\n")
    options = ["--require", "a1>=0.999", "--require", "frames.evaluated>=2"]
    options += ["--require", str(limits), "--junit", str(tmp_path / "junit.xml")]
    assert main([*EVALUATE, "--output", str(tmp_path / "report"), *options]) == 3
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    failed = [case.get("name") for case in suite.iter("testcase") if len(case.findall("failure"))]
    assert failed == ["a1>=0.999"]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "FAIL  a1 " in page
    assert "PASS  frames.evaluated 2" in page
