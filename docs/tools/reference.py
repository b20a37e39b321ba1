# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fill the reference pages from the code when the site is built: options, parameters, metrics.

mkdocs calls `on_page_markdown`; `make docs` needs neither torch nor ROS for it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from uncertainty_depth.core import config
from uncertainty_depth.core import node_config as nodes
from uncertainty_depth.metrics.registry import METRICS

MARKER = re.compile(r"^<!-- made from the code: (\w+) -->$", re.MULTILINE)
LIMITS = (("minimum", "at least"), ("maximum", "at most"))


def on_page_markdown(text: str, **_: Any) -> str:
    """Return the page with each marker replaced by the table that it names."""
    return MARKER.sub(lambda marker: table(marker[1]), text)


def table(name: str) -> str:
    """Return the table of the metrics, or of a config dataclass, in Markdown."""
    return (
        metrics_table()
        if name == "metrics"
        else options_table({**vars(config), **vars(nodes)}[name])
    )


def options_table(config_class: type) -> str:
    """Return a row for each option of a config dataclass, for each parameter of a node's."""
    rows = ["| name | default | what |", "| --- | --- | --- |"]
    is_node = config_class.__name__.endswith("NodeConfig")
    for field in dataclasses.fields(config_class):
        if "help" not in field.metadata or (is_node and not field.metadata["on_robot"]):
            continue
        what = field.metadata["help"].replace("|", "\\|").replace("<", "&lt;")
        if field.metadata["choices"]:
            what += f" ({', '.join(field.metadata['choices'])})"
        for key, words in LIMITS:
            if field.metadata[key] is not None:
                what += f"; {words} {field.metadata[key]:g}"
        default = f"`{field.default}`" if field.default not in ("", (), None) else ""
        rows.append(f"| `{field.name}` | {default} | {what} |")
    return "\n".join(rows)


def metrics_table() -> str:
    """Return a row for each metric of the registry."""
    rows = [
        "| name | unit | better | over | what | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for metric in METRICS:
        better = f"{metric.better:g}" if isinstance(metric.better, float) else metric.better
        name = f"`{metric.name}`" + (f" ({len(metric.groups)} values)" if metric.groups else "")
        what = metric.meaning or metric.label
        cells = (name, metric.unit, better, metric.over, what.replace("|", "\\|"), metric.source)
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(rows)
