# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands `compare` and `merge`, which read reports back."""

from __future__ import annotations

import argparse
from dataclasses import replace

from uncertainty_depth.cli.evaluate import check_requirements, write_and_print
from uncertainty_depth.config import RequirementConfig
from uncertainty_depth.options import from_arguments


def compare(arguments: argparse.Namespace) -> None:
    """Compare reports frame by frame: one table, curves over each other, one HTML page."""
    from uncertainty_depth.report import comparison_page, report
    from uncertainty_depth.report.comparison import compare as compare_reports
    from uncertainty_depth.report.saved_state import read_report

    report.check_folder(arguments.output)
    comparison = compare_reports([read_report(folder) for folder in arguments.reports])
    page = comparison_page.write(comparison, arguments.output, arguments.command_line)
    print("\n".join(comparison_page.headline(comparison)))
    print(f"page: {page}")


def merge(arguments: argparse.Namespace) -> None:
    """Fold reports of one model into one report over all their frames, exactly."""
    from uncertainty_depth.report import report
    from uncertainty_depth.report.merging import merge as merge_reports
    from uncertainty_depth.report.requirements import requirements_of
    from uncertainty_depth.report.saved_state import read_report

    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    report.check_folder(arguments.output)
    if not arguments.overwrite:
        report.refuse_existing(arguments.output)
    evaluation, context = merge_reports(map(read_report, arguments.reports))
    context = replace(context, command=arguments.command_line, requirements=requirements)
    scores = write_and_print(evaluation, arguments.output, context)
    check_requirements(scores, arguments.junit)
