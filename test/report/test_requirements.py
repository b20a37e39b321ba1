# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Requirements are read, judged with their interval, and written for CI."""

from xml.etree import ElementTree

import pytest

from test.report.conftest import evaluation_of
from uncertainty_depth.core.config.scoring import RequirementConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.requirements import metric_names, parse, requirements_of, write_junit


@pytest.fixture(scope="module")
def evaluation():
    return evaluation_of(frames=40)


def summary_of(evaluation, *texts):
    requirements = tuple(parse(text) for text in texts)
    context = report.Context("bag", {"head": "laplace"}, requirements=requirements)
    return report.summarize(evaluation, context)


ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("ause.rmse<=0.2", "uncertainty.ause.rmse"),
        (" auce < 0.05 ", "uncertainty.auce"),
        ("rmse<=1e-1", "depth.rmse"),
        ("depth.a1>=.9", "depth.a1"),
        ("baselines.constant.nll>0", "baselines.constant.nll"),
        ("scored_fraction>=0.99", "scored_fraction"),
        ("frames.skipped<=3", "frames.skipped"),
        ("picp>=0.9", "uncertainty.coverage_95"),
        ("scale_deviation<=0.1", "scale.scale_deviation"),
    ],
)
def test_a_requirement_names_a_metric_and_its_limit(text, metric):
    assert parse(text).metric == metric


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ause.rms<=0.2", "unknown metric 'ause.rms'.*near are .*ause.rmse"),
        ("coverage>=0.9", "near are .*coverage_95"),
        ("ause<=0.2", "near are ause.abs_rel, ause.rmse, ause.a1"),
        ("auce", "the requirement is 'auce'; expected a metric"),
        ("auce=0.1", "the requirement is 'auce=0.1'; expected a metric"),
        ("auce<=low", "the requirement is 'auce<=low'; expected a metric"),
        ("auce<=nan", "the requirement is 'auce<=nan'; expected a metric"),
        ("auce<=inf", "the requirement is 'auce<=inf'; expected a metric"),
        ("a1>=-1e999", "the requirement is 'a1>=-1e999'; expected a metric"),
    ],
)
def test_what_cannot_be_required_is_one_sentence(text, words):
    with pytest.raises(ConfigError, match=words) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_every_metric_of_a_summary_can_be_required(evaluation):
    summary = evaluation.summary()
    summary["frames"] = {**summary["frames"], "skipped": 0}
    assert set(metric_names()) == set(flatten(summary))


def test_outcomes_hold_value_and_interval(evaluation):
    summary = summary_of(evaluation, "auce_laplace<=0.05", "rmse<=0.001", "frames.evaluated>=40")
    met, missed, counted = summary["requirements"]
    assert [met["passed"], missed["passed"], counted["passed"]] == [True, False, True]
    assert met["value"] == summary["uncertainty"]["auce_laplace"]
    low, high = summary["intervals"]["uncertainty.auce_laplace"]
    assert met["interval"] == (low, high)
    expected = f"PASS  auce_laplace {met['value']:.4f} ({low:.4f} to {high:.4f}), required <= 0.05"
    assert met["text"] == expected
    assert missed["text"].startswith("FAIL  rmse ")
    assert counted["text"] == "PASS  frames.evaluated 40, required >= 40"


def test_a_limit_within_the_interval_is_pointed_out(evaluation):
    value = evaluation.summary()["depth"]["rmse"]
    (outcome,) = summary_of(evaluation, f"rmse<={value}")["requirements"]
    assert outcome["passed"]
    assert "more frames could change this" in outcome["text"]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("auce<=1", "auce_laplace"),
        ("picp<=1", "coverage_95_laplace"),
        ("coverage_95_by_sigma.3<=1", "coverage_95_laplace_by_sigma.3"),
        ("by_distance.coverage_95.2_3m<=1", "by_distance.coverage_95_laplace.2_3m"),
    ],
)
def test_a_metric_of_another_law_than_the_models_names_the_models_own(evaluation, text, own):
    outcome, same = summary_of(evaluation, text, f"{own}<=1")["requirements"]
    assert outcome["text"].endswith(
        f"; it is under the Gaussian distribution, the model's is Laplace: {own}"
    )
    assert "distribution, " not in same["text"]


def test_nan_and_infinity_fail_with_their_reason():
    nothing = Evaluation()
    nothing.skip(Skipped(1, "no_lidar", "..."))
    (outcome,) = summary_of(nothing, "auce<=1")["requirements"]
    assert not outcome["passed"]
    assert outcome["text"] == (
        "FAIL  auce is not a number, required <= 1: no frame was scored (1 no_lidar)"
    )
    constant = evaluation_of(lambda it: (it.depth, 0 * it.sigma + 1), frames=2)
    (outcome,) = summary_of(constant, "spearman>=0.1")["requirements"]
    assert outcome["text"].endswith("sigma or the error is the same everywhere")
    copied = evaluation_of(lambda it: (1.0000001 * it.truth, it.sigma), frames=2)
    (outcome,) = summary_of(copied, "n_merci<=1")["requirements"]
    assert outcome["text"].endswith(
        ": 95 % of the errors are below 4e-06 m, where none is resolved"
    )
    certain = evaluation_of(lambda it: (it.depth, 0 * it.sigma), frames=2)
    (outcome,) = summary_of(certain, "nll_laplace<=5")["requirements"]
    assert outcome["text"] == "FAIL  nll_laplace inf, required <= 5"


def test_a_file_stands_for_its_requirements(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text("# of the front camera\n- ause.rmse<=0.2\n- coverage_95>=0.9\n")
    requirements = requirements_of(RequirementConfig((str(path), "auce<=0.05")))
    texts = [each.text for each in requirements]
    assert texts == ["ause.rmse<=0.2", "coverage_95>=0.9", "auce<=0.05"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("auce: 0.1", "expected a list of requirements"),
        ("- [auce]", "expected a list of requirements"),
        ("- 'auce", "cannot be read: it is not YAML"),
        (b"\xff", "cannot be read: it is not UTF-8"),
        (ALIAS_BOMB, r"it has the alias \*a; expected none"),
        ("[" * 1000, "it is nested more than 16 levels deep"),
        ("- " * 1000, "it is nested more than 16 levels deep"),
        ("- auce<=1\n" * 10_000, "it is longer than 65536 bytes"),
        ("- " + "auce" * 10_000 + "<=1", "the requirement is 'auceauce"),
        ("- 2024-99-99", "the requirement is '2024-99-99'; expected a metric"),
        ("!!timestamp auce", "holds 'auce'; expected a list"),
        ("", "expected a list of requirements"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "limits.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=words) as caught:
        requirements_of(RequirementConfig((str(path),)))
    assert len(str(caught.value)) < 500


def test_junit_holds_a_case_for_each_requirement(evaluation, tmp_path):
    summary = summary_of(evaluation, "auce_laplace<=0.05", "rmse<=0.001")
    write_junit(tmp_path / "junit.xml", summary)
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert cases["auce_laplace<=0.05"].find("failure") is None
    assert cases["rmse<=0.001"].find("failure").get("message").startswith("FAIL  rmse")
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["verdict"].startswith(summary["verdict"]["color"])


def test_junit_without_requirements_holds_the_verdict(evaluation, tmp_path):
    summary = summary_of(evaluation)
    write_junit(tmp_path / "junit.xml", summary)
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    colors = {line["name"]: line["color"] for line in summary["verdict"]["lines"]}
    for case in suite.findall("testcase"):
        color = colors.pop(case.get("name"))
        assert (case.find("failure") is not None) == (color == "red")
        assert (case.find("skipped") is not None) == (color == "grey")
    assert not colors
    write_junit(tmp_path / "none.xml", summary_of(Evaluation()))
    (suite,) = ElementTree.parse(tmp_path / "none.xml").getroot()
    assert suite.find("testcase").get("name") == "scored"
