# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The end of a command that scores: requirements are printed, and decide the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth.errors import RequirementError
from uncertainty_depth.report import junit


def check_requirements(summary: Mapping[str, Any], junit_path: Path | None) -> None:
    """Print PASS or FAIL of each requirement, and write the JUnit file if there is a path.

    Args:
        summary: as `report.report.summarize` makes it.
        junit_path: file to write; None for none.

    Raises:
        RequirementError: a requirement is not met; the command then exits with 3.
    """
    outcomes = summary["requirements"]
    for outcome in outcomes:
        print(outcome["text"])
    if junit_path:
        junit.write(junit_path, summary)
    failed = [outcome["requirement"] for outcome in outcomes if not outcome["passed"]]
    if failed:
        raise RequirementError(
            f"{len(failed)} of {len(outcomes)} requirements not met: {', '.join(failed)}"
        )
