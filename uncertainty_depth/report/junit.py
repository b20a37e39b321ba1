# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An evaluation's outcome as a JUnit file, which continuous integration services display."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from uncertainty_depth import atomic


def write(path: Path, summary: Mapping[str, Any]) -> None:
    """Write one test case for each requirement; without any, one for each line of the verdict.

    A red line is a failure, a grey one is skipped. The verdict is always among the properties.

    Args:
        path: file to write, replaced in one step.
        summary: as `report.summarize` makes it.
    """
    suite = ElementTree.Element("testsuite", name=f"evaluate {summary['source']}")
    verdict = summary["verdict"]
    properties = ElementTree.SubElement(suite, "properties")
    _property(properties, "verdict", f"{verdict['color']}: {verdict['text']}")
    for line in verdict["lines"]:
        _property(properties, f"verdict.{line['name']}", f"{line['color']}: {line['text']}")
    if summary["requirements"]:
        for outcome in summary["requirements"]:
            failure = "" if outcome["passed"] else outcome["text"]
            _case(suite, "requirement", outcome["requirement"], failure, text=outcome["text"])
    else:
        _verdict_cases(suite, verdict)
    for tag, attribute in (("testcase", "tests"), ("failure", "failures"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{tag}"))))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    atomic.write_text(path, ElementTree.tostring(root, encoding="unicode") + "\n")


def _verdict_cases(suite: ElementTree.Element, verdict: Mapping[str, Any]) -> None:
    if not verdict["lines"]:
        _case(suite, "verdict", "scored", verdict["text"])
    for line in verdict["lines"]:
        failure = line["text"] if line["color"] == "red" else ""
        skipped = line["text"] if line["color"] == "grey" else ""
        _case(suite, "verdict", line["name"], failure, skipped, line["text"])


def _case(
    suite: ElementTree.Element,
    group: str,
    name: str,
    failure: str,
    skipped: str = "",
    text: str = "",
) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=group, name=name)
    if failure:
        ElementTree.SubElement(case, "failure", message=failure)
    elif skipped:
        ElementTree.SubElement(case, "skipped", message=skipped)
    if text:
        ElementTree.SubElement(case, "system-out").text = text


def _property(properties: ElementTree.Element, name: str, value: str) -> None:
    ElementTree.SubElement(properties, "property", name=name, value=value)
