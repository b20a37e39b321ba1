# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Limits on metrics, such as `ause.rmse<=0.2`, and whether an evaluation meets them."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.scoring import RequirementConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.output import MARK, OutputFile
from uncertainty_depth.metrics.bootstrap import Interval
from uncertainty_depth.metrics.calibration import without_distribution
from uncertainty_depth.metrics.metric import NOT_JUDGED, SigmaKind
from uncertainty_depth.metrics.registry import BASELINES, BY_VALUE, METRICS, baseline_name, flatten
from uncertainty_depth.report.judgement import GREEN, RED

COMPARISONS: dict[str, Callable[[float, float], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt}
PATTERN = re.compile(r"\s*(?P<metric>[\w.]+)\s*(?P<comparison><=|>=|<|>)\s*(?P<limit>\S+)\s*")
PREFIXES = ("uncertainty.", "depth.", "scale.")
"""May be left out of a metric's name."""
OTHER_NAMES = {"picp": "coverage_95", "mpiw": "mpiw_95", "interval_score": "interval_score_95"}
"""Usual names for metrics that are called by their level here."""
FRAME_COUNTS = ("read", "evaluated", "skipped")
MAX_NEAR_NAMES = 4
FILE_SUFFIXES = (".yaml", ".yml")
MAX_FILE_BYTES = 2**16
MAX_LENGTH = 200
"""Characters in a requirement."""
PASS = "PASS  "
FAIL = "FAIL  "


@dataclass(frozen=True)
class Requirement:
    """A metric's limit: dotted name, one of `COMPARISONS`, value, and the text that it was."""

    metric: str
    comparison: str
    limit: float
    text: str


@dataclass(frozen=True)
class Outcome:
    """Whether a requirement is met, with value and interval; NaN fails. `text` is for the user."""

    requirement: str
    passed: bool
    value: float
    interval: tuple[float, float]
    text: str


def requirements_of(config: RequirementConfig) -> tuple[Requirement, ...]:
    """Return the requirements, of .yaml files too; raise `ConfigError` for one that names none."""
    texts: list[str] = []
    for text in config.require:
        if not text.endswith(FILE_SUFFIXES):
            texts.append(text)
            continue
        try:
            content = strict.read_yaml_file(Path(text), MAX_FILE_BYTES)
        except (OSError, strict.FormatError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"{text}, of require, cannot be read: {reason}") from error
        if not isinstance(content, list) or not all(isinstance(line, str) for line in content):
            raise ConfigError(
                f"{text}, of require, holds {reprlib.repr(content)}; expected a list of "
                "requirements, one a line: - ause.rmse<=0.2"
            )
        texts += content
    return tuple(map(parse, texts))


def parse(text: str) -> Requirement:
    """Return the requirement in a text such as `auce<=0.05`, or raise `ConfigError`."""
    match = PATTERN.fullmatch(text) if len(text) <= MAX_LENGTH else None
    limit = math.nan
    if match is not None:
        with suppress(ValueError):
            limit = float(match["limit"])
    if match is None or not math.isfinite(limit):
        raise ConfigError(
            f"the requirement is {reprlib.repr(text)}; expected a metric, one of "
            f"{', '.join(COMPARISONS)}, and a number, such as 'ause.rmse<=0.2'"
        )
    return Requirement(_resolved(match["metric"], text), match["comparison"], limit, text)


def check_judged(requirements: Iterable[Requirement], kind: SigmaKind) -> None:
    """Raise `ConfigError`, before any work, for requirements that this kind of sigma lacks."""
    for requirement in requirements:
        metric = BY_VALUE.get(requirement.metric)
        if metric is not None and not metric.is_judged(kind):
            raise ConfigError(f"{requirement.text!r} is required of sigma, but {NOT_JUDGED[kind]}")


@cache
def metric_names() -> tuple[str, ...]:
    """Return the dotted names that can be required."""
    of_baselines = [
        baseline_name(baseline, metric)
        for baseline in BASELINES
        for metric in METRICS
        if metric.is_of_sigma
    ]
    return (*(f"frames.{name}" for name in FRAME_COUNTS), *BY_VALUE, *of_baselines)


def outcome(requirement: Requirement, summary: Mapping[str, Any], distribution: str) -> Outcome:
    """Return whether metrics meet a requirement, and say if the distribution is another."""
    frames = summary["frames"]
    counts = {**frames, "skipped": sum(frames["skipped"].values())}
    value = float(flatten({**summary, "frames": counts})[requirement.metric])
    low, high = summary["intervals"].get(requirement.metric, (math.nan, math.nan))
    limit = f"{requirement.comparison} {requirement.limit:g}"
    name = _short(requirement.metric)
    if math.isnan(value):
        reason = summary["undefined"].get(requirement.metric, "it is not defined on these frames")
        if not frames["evaluated"]:
            skipped = ", ".join(f"{count} {cause}" for cause, count in frames["skipped"].items())
            reason = f"no frame was scored ({skipped or 'none was read'})"
        text = f"{FAIL}{name} is not a number, required {limit}: {reason}"
        return Outcome(requirement.text, False, value, (low, high), text)
    passed = COMPARISONS[requirement.comparison](value, requirement.limit)
    value_text = f"{value:g}" if value.is_integer() else Interval(value, low, high).text(4)
    text = f"{PASS if passed else FAIL}{name} {value_text}, required {limit}"
    if low < requirement.limit < high:
        text += " (the limit lies in the interval: more frames could change this)"
    metric = BY_VALUE.get(requirement.metric)
    if metric is not None and metric.distribution not in ("", distribution):
        own = next(
            each
            for each, other in BY_VALUE.items()
            if other.distribution == distribution
            and without_distribution(each) == without_distribution(requirement.metric)
        )
        claimed, modelled = metric.distribution.title(), distribution.title()
        text += (
            f"; it is under the {claimed} distribution, the model's is {modelled}: {_short(own)}"
        )
    return Outcome(requirement.text, passed, value, (low, high), text)


def _resolved(name: str, text: str) -> str:
    names = metric_names()
    full = OTHER_NAMES.get(name, name)
    for prefix in ("", *PREFIXES):
        if prefix + full in names:
            return prefix + full
    short = [_short(metric) for metric in names]
    parts = [metric for metric in short if metric.startswith(name) or metric.endswith(f".{name}")]
    close = get_close_matches(name, short, MAX_NEAR_NAMES, 0.5)
    near = list(dict.fromkeys([*parts, *close]))[:MAX_NEAR_NAMES]
    hint = f"near are {', '.join(near)}" if near else "the names are those in summary.json"
    raise ConfigError(f"unknown metric {name!r} in {text!r}; {hint}")


def _short(metric: str) -> str:
    """Return the name without the prefix that may be left out."""
    for prefix in PREFIXES:
        if metric.startswith(prefix):
            return metric.removeprefix(prefix)
    return metric


def write_junit(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the outcome as JUnit, which continuous integration services display.

    There is one test case for each requirement; without any, one for each line of the verdict. A
    red line is a failure, a grey one is skipped. The verdict is always among the properties.
    """
    suite = ElementTree.Element("testsuite", name=f"evaluate {summary['source']}")
    verdict = summary["verdict"]
    properties = ElementTree.SubElement(suite, "properties")
    lines = {f"verdict.{line['name']}": line for line in verdict["lines"]}
    for name, line in {"verdict": verdict, **lines}.items():
        value = f"{line['color']}: {line['text']}"
        ElementTree.SubElement(properties, "property", name=name, value=value)
    if summary["requirements"]:
        cases = [
            ("requirement", result["requirement"], GREEN if result["passed"] else RED, result)
            for result in summary["requirements"]
        ]
    elif verdict["lines"]:
        cases = [("verdict", line["name"], line["color"], line) for line in verdict["lines"]]
    else:
        cases = [("verdict", "scored", RED, verdict)]
    for group, name, color, result in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=name)
        if color != GREEN:
            tag = "failure" if color == RED else "skipped"
            ElementTree.SubElement(case, tag, message=result["text"])
        ElementTree.SubElement(case, "system-out").text = result["text"]
    for tag, attribute in (("testcase", "tests"), ("failure", "failures"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{tag}"))))
    root = ElementTree.Element("testsuites", name=MARK)
    root.append(suite)
    ElementTree.indent(root)
    OutputFile(path).write(f"{ElementTree.tostring(root, encoding='unicode')}\n".encode())
