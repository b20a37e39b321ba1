# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arguments of the commands that score predictions, and show them."""

from __future__ import annotations

from pathlib import Path

from uncertainty_depth.calibration.depth_scale import DepthScaleConfig
from uncertainty_depth.cli.arguments.signature import (
    MODEL,
    SOURCE,
    Signature,
    argument,
    at_least_one,
)
from uncertainty_depth.config import (
    EvaluationConfig,
    PredictorConfig,
    RequirementConfig,
    SourceConfig,
)
from uncertainty_depth.config.choices import CORRUPTIONS
from uncertainty_depth.config.prediction import HeldOutConfig, PredictionConfig, PredictionTopics
from uncertainty_depth.viewing.config import ViewConfig

SIGNATURES: dict[str, Signature] = {
    "evaluate": Signature(
        (
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            EvaluationConfig,
            RequirementConfig,
            HeldOutConfig,
            DepthScaleConfig,
            SourceConfig,
        ),
        (
            argument(
                "source",
                nargs="+",
                metavar="SOURCE",
                help=f"{SOURCE}; or predictions:DIR, with depth, confidence and ground truth; "
                "several are scored in workers of their own and merged",
            ),
            argument(
                "--jobs",
                type=at_least_one,
                metavar="N",
                help="several sources: workers at a time (default: one a core)",
            ),
            argument(
                "--ray",
                default="",
                metavar="ADDRESS",
                help="score the sources on the Ray cluster at this address, or local",
            ),
            argument(
                "--model",
                type=Path,
                help=f"{MODEL}; none to score recorded predictions",
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="REPORT",
                help="folder for summary.json, frames.csv, plots and report.html",
            ),
            argument(
                "--overwrite",
                action="store_true",
                help="replace the report that is in the folder",
            ),
            argument(
                "--write-bag",
                type=Path,
                metavar="OUT",
                help="also write a bag with the predictions, for RViz",
            ),
            argument(
                "--junit",
                type=Path,
                metavar="XML",
                help="also write the requirements, or without any the verdict, as a JUnit file",
            ),
            argument(
                "--max-frames",
                type=at_least_one,
                default=0,
                metavar="N",
                help="score at most N frames of each source, evenly spread; default: all",
            ),
            argument(
                "--corrupt",
                action="append",
                default=[],
                metavar="NAME:SEVERITY",
                help=f"corrupt the images, e.g. fog:3; {', '.join(sorted(CORRUPTIONS))}, each 1 "
                "to 5; may be given several times",
            ),
        ),
        "my_bag --model my_model --output my_report",
    ),
    "compare": Signature(
        (),
        (
            argument(
                "reports",
                type=Path,
                nargs="+",
                metavar="REPORT",
                help="report folders; the others are compared with the first",
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder for compare.html and compare.json",
            ),
        ),
        "report_a report_b --output comparison",
    ),
    "merge": Signature(
        (RequirementConfig,),
        (
            argument(
                "reports", type=Path, nargs="+", metavar="REPORT", help="report folders to merge"
            ),
            argument(
                "-o",
                "--output",
                type=Path,
                required=True,
                metavar="REPORT",
                help="folder to write",
            ),
            argument(
                "--overwrite", action="store_true", help="replace the report that is in the folder"
            ),
            argument(
                "--junit",
                type=Path,
                metavar="XML",
                help="also write the requirements, or without any the verdict, as a JUnit file",
            ),
        ),
        "monday tuesday --output week",
    ),
    "view": Signature(
        (
            ViewConfig,
            PredictorConfig,
            PredictionTopics,
            PredictionConfig,
            EvaluationConfig,
            SourceConfig,
        ),
        (
            argument(
                "source",
                nargs="?",
                default="",
                help=f"a report, predictions:DIR, or with --model {SOURCE}",
            ),
            argument("--model", type=Path, help=MODEL),
            argument(
                "--live", action="store_true", help="show what the nodes publish, until Ctrl-C"
            ),
            argument(
                "--save",
                type=Path,
                metavar="RRD",
                help="write a file for rerun instead of opening its viewer",
            ),
        ),
        "my_bag --model demo --save my_bag.rrd",
    ),
}
