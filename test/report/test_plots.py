# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Plots name their variant, axes and units."""

import pytest
from matplotlib.figure import Figure

from uncertainty_depth.report.frame_plots import number_axis
from uncertainty_depth.report.plots import LOG_STEPS, figures, sparsification_figure


@pytest.fixture
def curves(evaluate_moments):
    return evaluate_moments(frames=8).metrics.curves()


def test_every_axis_is_labelled_and_every_title_names_its_source(curves):
    named = figures(curves)
    assert sorted(named) == [
        "by_distance",
        "reliability",
        "sparsification_a1",
        "sparsification_abs_rel",
        "sparsification_rmse",
    ]
    for name, figure in named.items():
        titles = " ".join([figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)])
        assert {"r": "Gustafsson", "s": "Poggi", "b": "By distance"}[name[0]] in titles
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[-1].get_xlabel()


def test_the_sparsification_figure_holds_the_curves_it_was_given(curves):
    figure = sparsification_figure(curves, "rmse")
    lines = {line.get_label().split(",")[0]: line for line in figure.axes[0].get_lines()}
    assert set(lines) == {
        "predicted sigma",
        "sigma proportional to depth",
        "oracle (true error)",
        "random removal",
    }
    assert list(lines["predicted sigma"].get_ydata()) == list(
        curves["sparsification"]["rmse"]["method"]
    )
    assert "rmse of the remaining pixels (m)" in figure.axes[0].get_ylabel()


@pytest.mark.parametrize("limits", [(0.6, 12.0), (0.05, 80.0), (0.8, 1.3), (2.0, 3.6)])
def test_a_logarithmic_axis_is_numbered_with_the_numbers_where_they_stand(limits):
    axes = Figure().subplots()
    axes.set(xscale="log", xlim=limits)
    number_axis(axes.xaxis, LOG_STEPS)
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert [float(label) for label in labels] == pytest.approx(axes.get_xticks())
