# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Publish a model on the Hugging Face Hub, with a card made from the model and its report.

The way back needs no function: wherever a model is asked for, `ORG/NAME` of one published so is
downloaded into the local cache and used.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncertainty_depth.core.errors import ModelError, first_line
from uncertainty_depth.core.model_location import HUB_FILES
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.depth.model_folder.folder import ModelFolder, read_model
from uncertainty_depth.report.saved_state import read_summary

METRICS = ("mae", "abs_rel", "rmse", "a1")
"""Depth metrics in the card's table."""


def push(
    model: Path | str,
    repository: str,
    report: Path | str | None = None,
    license_id: str = "other",
    private: bool = False,
) -> str:
    """Upload a model folder to the Hub as one commit, and return the commit's address.

    The repository is created if it does not exist. Log in first: `hf auth login`.

    Args:
        model: a model folder, or a shipped model's name.
        repository: ORG/NAME.
        report: a folder that `evaluate` wrote for this model; its verdict goes into the card.
        license_id: of the weights, as the Hub names licenses.
        private: create the repository as a private one.

    Raises:
        ModelError: the folder is not a model, or the Hub refuses the upload.
        SourceError: the report cannot be read.
    """
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    folder = read_model(model)
    if not folder.path.is_dir():
        raise ModelError(f"{model} is no model folder; expected one that train or wrap wrote")
    text = card(folder, repository, read_summary(Path(report)) if report else None, license_id)
    files = sorted({path for pattern in HUB_FILES for path in folder.path.glob(pattern)})
    operations = [
        CommitOperationAdd("README.md", text.encode()),
        *(CommitOperationAdd(path.name, str(path)) for path in files),
    ]
    api = HfApi()
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.create_commit(
            repository, operations, commit_message=f"Upload {folder.name} by uncertainty_depth"
        )
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise ModelError(
            f"the hub did not take {folder.path} as {repository}: {first_line(error)}"
        ) from error
    return str(commit.commit_url)


def card(
    model: ModelFolder,
    repository: str,
    summary: Mapping[str, Any] | None = None,
    license_id: str = "other",
) -> str:
    """Return the model card: what the model is, how to run it, and a report's verdict."""
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        library_name="uncertainty_depth",
        license=license_id,
        pipeline_tag="depth-estimation",
        tags=["uncertainty", "depth-estimation", "ros2"],
    )
    rows = {name: value for name, value in model.describe().items() if name != "trained on"}
    lines = [
        f"---\n{data.to_yaml()}\n---",
        f"# {repository.rpartition('/')[2]}",
        "Depth from one image, with its standard deviation at every pixel.",
        f"```bash\nuncertainty-depth predict {repository} photo.jpg --output maps\n"
        f"uncertainty-depth evaluate my_bag --model {repository} --output report\n```",
        _table("", "", rows),
    ]
    if summary is None:
        lines.append("Not evaluated: this card was made without a report.")
    else:
        lines += _judged(summary)
    options = to_mapping(model.network)
    lines.append(
        f"The network predicts {options['depth_range'][0]:g} to {options['depth_range'][1]:g} m, "
        "and was tried on nothing but what is named here."
    )
    return "\n\n".join(lines) + "\n"


def _judged(summary: Mapping[str, Any]) -> list[str]:
    """Return a report's content, with only its source's name, as the path is private."""
    verdict, model = summary["verdict"], summary["model"]
    measured = [f"{summary['frames']['evaluated']} frames"]
    if "method" in model:  # not if arrays were scored in Python
        measured.append(f"{model['method']}, {model.get('samples', 1)} samples")
    parts = [
        f"## Measured on {Path(summary['source']).name}",
        f"**{verdict['text']}** ({', '.join(measured)})",
        *([verdict["numbers"]] if verdict["numbers"] else []),
        "\n".join(
            f"- *{line['name']}*, {line['color']}: {line['text']}" for line in verdict["lines"]
        ),
    ]
    values = {name: summary["depth"].get(name) for name in METRICS}
    depth = {name: f"{value:.3g}" for name, value in values.items() if value is not None}
    if depth:
        parts.append(_table("depth", "value", depth))
    return parts


def _table(left: str, right: str, rows: Mapping[str, Any]) -> str:
    head = [f"| {left} | {right} |", "| --- | --- |"]
    return "\n".join(head + [f"| {name} | {value} |" for name, value in rows.items()])
