# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write the reference pages from the code: options, parameters and metrics.

`python docs/tools/reference.py` writes them anew; `check_pages.py` tells if they are not what the
code makes. Neither torch nor ROS is needed.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from uncertainty_depth.cli.arguments import configs_of  # noqa: E402  after the path
from uncertainty_depth.cli.main import COMMANDS  # noqa: E402
from uncertainty_depth.core.config import nodes  # noqa: E402
from uncertainty_depth.core.options import flag_of, parameters_of  # noqa: E402
from uncertainty_depth.metrics.registry import METRICS  # noqa: E402

MARKED = re.compile(r"(<!-- made from the code: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = ("options", "parameters", "metrics")


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the path of each reference page, and the text that it is to have."""
    for name in PAGES:
        path = ROOT / "docs" / "reference" / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        yield path, MARKED.sub(lambda found: f"{found[1]}\n{made(found[2])}\n\n{found[3]}", text)


def made(name: str) -> str:
    """Return what a marker stands for, as Markdown."""
    makers = {"commands": commands, "option_groups": option_groups, "metrics": metrics_table}
    if name in makers:
        return makers[name]()
    node = getattr(nodes, name)
    return table((field.name, field) for field in parameters_of(node))


def commands() -> str:
    """Return each command with its arguments, and the groups of options that it takes."""
    parts = []
    for name, command in COMMANDS.items():
        parts += [f"### {name}", (command.__doc__ or "").strip()]
        parts.append(f"```bash\nuncertainty-depth {name} {command.example}\n```")
        rows = [*map(argument_row, filter(is_argument, dataclasses.fields(command)))]
        links = [f"[{title(group)}](#{anchor(group)})" for group in configs_of(command).values()]
        if links:
            rows.append(f"| options | {', '.join(links)} |")
        parts.append("\n".join(["| argument | what |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def is_argument(field: dataclasses.Field[Any]) -> bool:
    """Return whether a command's field is an argument, not a group of options."""
    return "options" in field.metadata


def argument_row(field: dataclasses.Field[Any]) -> str:
    """Return the row of an argument that a command declares itself."""
    options = field.metadata["options"]
    long = f"--{field.name.replace('_', '-')}"
    flags = ", ".join(filter(None, (*field.metadata["flags"], long)))
    name = flags if field.metadata["flags"] else options.get("metavar", field.name.upper())
    return f"| `{name}` | {cell(options['help'])} |"


def option_groups() -> str:
    """Return a table for each group of options, with the commands that take it."""
    takers: dict[type[Any], list[str]] = {}
    for name, command in COMMANDS.items():
        for group in configs_of(command).values():
            takers.setdefault(group, []).append(f"`{name}`")
    parts = []
    for group, names in takers.items():
        meaning = (group.__doc__ or "").splitlines()[0]
        parts += [f"### {title(group).capitalize()}", meaning, f"Of {', '.join(names)}:"]
        parts.append(table((flag_of(field), field) for field in dataclasses.fields(group)))
    return "\n\n".join(parts)


def title(group: type[Any]) -> str:
    """Return the words of the name of a group of options."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", group.__name__.removesuffix("Config")).lower()


def anchor(group: type[Any]) -> str:
    """Return the link target that Markdown makes of the title."""
    return title(group).replace(" ", "-")


def table(options: Iterable[tuple[str, dataclasses.Field[Any]]]) -> str:
    """Return a row for each option: its name here, its default, and what it is."""
    rows = ["| name | default | what |", "| --- | --- | --- |"]
    for name, field in options:
        what = field.metadata["help"]
        if field.metadata["choices"]:
            what += f" ({', '.join(filter(None, field.metadata['choices']))})"
        if field.metadata["limits"]:
            what += "; at least {:.12g}; at most {:.12g}".format(*field.metadata["limits"])
        default = f"`{field.default}`" if field.default not in ("", (), None) else ""
        rows.append(f"| `{name}` | {default} | {cell(what)} |".replace("  ", " "))
    return "\n".join(rows)


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def metrics_table() -> str:
    """Return a row for each metric of the registry."""
    rows = [
        "| name | unit | better | over | what | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for metric in METRICS:
        better = f"{metric.better:g}" if isinstance(metric.better, float) else metric.better
        name = f"`{metric.name}`" + (f" ({len(metric.groups)} values)" if metric.groups else "")
        what = cell(metric.meaning or metric.label)
        cells = (name, metric.unit, better, metric.over, what, metric.source)
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(rows)


if __name__ == "__main__":
    for page, text in pages():
        page.write_text(text, encoding="utf-8")
