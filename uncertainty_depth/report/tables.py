# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A comparison as a table for a spreadsheet or a paper; its first report is the baseline."""

from __future__ import annotations

import csv
import io
import math
from itertools import chain

from uncertainty_depth.core.output import MARK
from uncertainty_depth.metrics.bootstrap import Interval
from uncertainty_depth.metrics.metric import Metric
from uncertainty_depth.report.comparison import Comparison, Row, headline_of

CSV_MARK = "metric,unit,better,over,best,"
"""How every CSV file begins, by which it is known for ours."""
OF_INTERVAL = ("", " low", " high")
LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "\n": " ",
    }
)


def csv_table(comparison: Comparison) -> str:
    """Return a row for each metric: the reports' values and differences, with 95 % intervals."""
    baseline, *others = comparison.names
    columns = [f"{baseline} (baseline){end}" for end in OF_INTERVAL]
    for name in others:
        columns += [f"{name}{end}" for end in OF_INTERVAL]
        columns += [f"{name} difference{end}" for end in OF_INTERVAL]
        columns.append(f"{name} outcome")
    file = io.StringIO()
    file.write(CSV_MARK)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in comparison.rows:
        metric = row.metric
        best = "; ".join(comparison.names[place] for place in sorted(row.best()))
        cells = [_numbers(row.values[0])]
        for index, (value, gap) in enumerate(zip(row.values[1:], row.differences, strict=True)):
            cells += [_numbers(value), _numbers(gap), [row.outcome(index)]]
        own = [row.name, metric.unit, str(metric.better), metric.over, best]
        writer.writerow([*own, *chain.from_iterable(cells)])
    return file.getvalue()


def _numbers(interval: Interval) -> list[str]:
    values = (interval.value, interval.low, interval.high)
    return ["" if math.isnan(value) else repr(float(value)) for value in values]


def latex_table(comparison: Comparison) -> str:
    """Return the headline metrics as a table for booktabs: a line each report, the best bold."""
    names = headline_of(comparison)
    rows = [row for row in comparison.rows if row.name in names]
    heads = [_head(row.metric) for row in rows]
    lines = [" & ".join(["", *heads])]
    for place, name in enumerate(comparison.names):
        cells = [_cell(row, place) for row in rows]
        lines.append(" & ".join([name.translate(LATEX), *cells]))
    first, baseline, *others = (f"{line} \\\\" for line in lines)
    marked = [f"% {MARK}, {comparison.series.shape[1]} common frames; \\usepackage{{booktabs}}"]
    begin = [f"\\begin{{tabular}}{{l{'r' * len(rows)}}}", r"\toprule"]
    end = [r"\bottomrule", r"\end{tabular}"]
    body = [first, r"\midrule", baseline, r"\midrule", *others]
    return "\n".join([*marked, *begin, *body, *end, ""])


def _head(metric: Metric) -> str:
    """Return a metric's label with its unit, and where it is best."""
    arrow = {"lower": r"$\downarrow$", "higher": r"$\uparrow$"}.get(str(metric.better), "")
    unit = f" ({metric.unit})" if metric.unit else ""
    return f"{(metric.label + unit).translate(LATEX)} {arrow}".strip()


def _cell(row: Row, place: int) -> str:
    value = row.values[place].value
    text = "--" if math.isnan(value) else row.metric.text(value).translate(LATEX)
    return rf"\textbf{{{text}}}" if place in row.best() else text
