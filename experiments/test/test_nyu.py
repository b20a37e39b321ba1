# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The NYU experiment from end to end, its scores against `evaluate`, its tables and its rules."""

import csv
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments import nyu, nyu_figures, nyu_scores, nyu_tables
from experiments.merci_readings import by_depth
from experiments.nyu_methods import ROWS, load, open_splits, prediction
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training import run as training_run
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.stream.stream import predicted

pytestmark = pytest.mark.timeout(900)  # the quick run trains every row: minutes on a busy machine

AREAS = ("ause", "aurg")
FILES = {"table.md", "summary.json", "models", "results"}
TABLES = {f"{name}.csv" for name in ("table", "change", "intervals")}
PICTURES = {f"{name}.png" for name in ("intervals", "n_merci", "sparsification", "maps")}


@pytest.fixture(scope="module")
def run(nyu_like, tiny_settings):
    """Run the experiment in miniature."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nyu, "QUICK", tiny_settings)
        yield lambda output: nyu.run(output, 1, True, nyu_like.parent)


@pytest.fixture(scope="module")
def finished(run, tmp_path_factory):
    """Output folder of a whole run."""
    output = tmp_path_factory.mktemp("nyu")
    run(output)
    return output


def table(folder, name):
    with open(folder / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_writes_everything_and_says_that_it_was_quick(finished):
    assert {path.name for path in finished.iterdir()} == FILES | TABLES | PICTURES
    text = (finished / "table.md").read_text()
    assert text.startswith("**Quick run")
    assert "Multi Epochs is best (n-MeRCI 0.11)" in text
    assert json.loads((finished / "summary.json").read_text())["quick"] is True
    assert all((finished / name).read_bytes().startswith(b"\x89PNG") for name in PICTURES)


def test_a_second_run_trains_and_scores_nothing(finished, run, refuse_again):
    refuse_again(
        (training_run, "read_frames"), (nyu_scores, "score"), (nyu_scores, "side_by_side")
    )
    before = (finished / "table.md").read_text()
    run(finished)
    assert (finished / "table.md").read_text() == before


def test_rows_have_two_baselines_and_a_time(finished):
    rows = table(finished, "table")
    assert [row["method"] for row in rows] == [
        title for row in ROWS.values() for title in (row.title, *nyu_tables.BASELINE_KEYS)
    ]
    assert len(nyu_tables.BASELINE_KEYS) == 2
    assert all(row["n-MeRCI"].startswith("1.000") for row in rows[1::3])
    assert all(float(row["s / frame"]) > 0 < float(row["of one pass"]) for row in rows[::3])
    assert not any("trimmed" in title for title in rows[0])


@pytest.mark.parametrize("name", ["mc_dropout", "learned_error", "log_likelihood"])
def test_numbers_are_those_of_evaluate_on_the_same_folder(finished, nyu_like, name):
    row = ROWS[name]
    predictor = Predictor(
        finished / "models" / f"{row.variant}-0",
        prediction(row),
    )
    flat = flatten(
        evaluate(predicted(open_splits(nyu_like, 0, 3).test, predictor), progress=False).summary()
    )
    shown = next(line for line in table(finished, "table") if line["method"] == row.title)
    for title, key in {
        "abs_rel": "depth.abs_rel",
        "n-MeRCI": "uncertainty.n_merci",
        "AUSE rmse": "uncertainty.ause.rmse",
    }.items():
        assert shown[title] == f"{flat[key]:.3f}"


def summary_of(value, baseline=0.5, constant=None):
    """Give every metric `value`, but `baseline` or `constant` for the baselines."""

    def metrics(number):
        single = [*nyu_tables.SIZED.values(), *nyu_tables.N_MERCI.values(), "spearman"]
        areas = {kind: dict.fromkeys(("abs_rel", "rmse", "a1"), number) for kind in AREAS}
        return dict.fromkeys(single, number) | areas

    baselines = {name: metrics(baseline) for name in nyu_tables.BASELINE_KEYS.values()}
    baselines["constant"] = metrics(baseline if constant is None else constant)
    return {
        "depth": dict.fromkeys(("mae", "abs_rel", "rmse"), value),
        "uncertainty": metrics(value),
        "baselines": baselines,
    }


def scored(*values, **options):
    return [
        {"summary": summary_of(value, **options), "greatest_depth_m": value} for value in values
    ]


@pytest.mark.parametrize(("constant", "depth"), [(0.25, 0.5), (0.5, 0.25)])
def test_a_change_is_against_the_better_baseline(constant, depth):
    flat = flatten(summary_of(0.2, baseline=depth, constant=constant))
    assert nyu_tables.ratio(flat, "ause.rmse") == pytest.approx(0.8)
    assert nyu_tables.order_ratio(flat) == pytest.approx(0.8)


def test_change_is_against_the_same_depth(finished):
    summary = json.loads((finished / "summary.json").read_text())["scores"]["multi_inits"][0]
    of_baselines = [
        summary["baselines"][name]["ause"]["rmse"]
        for name in ("constant", "proportional_to_depth")
    ]
    change = 100 * (summary["uncertainty"]["ause"]["rmse"] / min(of_baselines) - 1)
    row = next(line for line in table(finished, "change") if line["method"] == "Multi Inits")
    assert row["AUSE rmse"] == f"{change:+.0f} %"


def test_intervals_are_the_exact_figures_of_the_thinned_pixels(nyu_models, nyu_like):
    source = open_splits(nyu_like).test
    predictor = load(nyu_models / "models", ROWS["learned_error"])
    found = nyu_scores.score(predictor, source)["intervals"]
    pixels = []
    for frame in source:
        made = predictor.predict(frame.image, frame.stamp_ns)
        depth, sigma, truth = (
            values[::2, ::2] for values in (made.depth_m, made.sigma_m, frame.ground_truth_m)
        )
        pixels.append(np.stack([np.abs(depth - truth), sigma, truth])[:, np.isfinite(truth)])
    expected = by_depth(*np.concatenate(pixels, axis=1), 0.1, 0.95)
    assert_allclose(found["plain"], expected.n_merci)
    assert found["mean_plain"] == expected.mean_n_merci > 0
    assert found["intervals_with_enough"] == expected.intervals_with_enough > 0
    assert_allclose(found["mae_kept"], expected.mae_kept)


def test_the_trend_of_n_merci_with_depth_is_a_rank_correlation():
    intervals = {
        "pixels": [5, 200, 300, 200, 200],
        "enough": 100,
        "plain": [9.0, 0.5, 0.7, None, 3.0],
        "mae_kept": [9.0, 1.0, 2.0, 2.0, 3.0],
    }
    assert nyu_tables._rank_correlation(intervals, "plain") == pytest.approx(1.0)
    assert nyu_tables._rank_correlation(intervals, "mae_kept") == pytest.approx(3 / 10**0.5)
    assert nyu_tables._mean_mae(intervals) == pytest.approx(2.0)
    falling = {**intervals, "plain": [0.0, 3.0, 2.5, 2.0, 1.0]}
    assert nyu_tables._rank_correlation(falling, "plain") == pytest.approx(-1.0)
    assert np.isnan(nyu_tables._rank_correlation({**intervals, "enough": 300}, "plain"))


def test_the_caption_of_a_map_leaves_out_the_largest_errors():
    truth = np.full((10, 10), 2.0, np.float32)
    depth = truth.copy()
    depth.flat[:5] = 9.0
    depth.flat[5:] = 2.5
    prediction = DepthPrediction(depth, np.ones_like(depth))
    assert nyu_figures._at_95(prediction, truth).endswith("MAE 0.50 m of 95 %")


def test_an_interrupted_score_is_not_kept(nyu_like):
    class Interrupted:
        def predict(self, image, stamp_ns, camera=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nyu_scores.score(Interrupted(), open_splits(nyu_like, 0, 2).test)


def test_side_by_side_gives_each_row_a_turn_in_every_round(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(nyu_scores.time, "perf_counter", lambda: now[0])

    class Counted:
        def __init__(self, seconds):
            self.seconds = seconds
            self.turns = 0

        def predict(self, image):
            self.turns += 1
            now[0] += self.seconds

    rows = {"much": Counted(3.0), "little": Counted(0.5)}
    single = Counted(1.5)
    found = nyu_scores.side_by_side(rows, single, np.zeros((4, 4, 3), np.uint8), 5)
    assert [one.turns for one in (*rows.values(), single)] == [5, 5, 5]
    assert found["much"] == pytest.approx({"seconds": 3.0, "of_one_pass": 2.0})
    assert found["little"] == pytest.approx({"seconds": 0.5, "of_one_pass": 1 / 3})


def test_ranking_is_by_the_middle_seed_the_best_first_and_what_has_no_figure_last():
    known = {"bagging": [0.1], "mc_dropout": [0.45, None, 0.05], "self_teaching": [0.3, 0.15]}
    ranking = nyu_tables.ranking({name: scored(*known.get(name, [None])) for name in ROWS})
    assert [entry[:2] for entry in ranking[:3]] == [
        ("bagging", 0),
        ("self_teaching", 1),
        ("mc_dropout", 0),
    ]
    assert [entry[2] for entry in ranking[:3]] == pytest.approx([0.2, 0.3, 0.9])
    assert all(value == math.inf for _, _, value in ranking[3:])
    assert len(ranking) == len(ROWS)


def test_what_is_not_finite_is_left_out_and_counted():
    assert nyu_tables.over_seeds([0.25, None, 0.75]) == "0.500 ± 0.354, 1 not finite"
    assert nyu_tables.over_seeds([None, math.inf]) == "–"
    assert nyu_tables.over_seeds([0.25, math.nan]) == "0.250, 1 not finite"


def test_maps_are_drawn_in_the_order_given_with_method_and_figure(nyu_like):
    frame = next(iter(open_splits(nyu_like, 0, 1).test))
    made = DepthPrediction(
        np.full((60, 80), 2.0, np.float32),
        np.linspace(0, 1, 4800, dtype=np.float32).reshape(60, 80),
    )
    figure = nyu_figures.maps_figure(
        frame, [("Bagging", 0.21, 0.3, made), ("MC-dropout", 0.9, 0.4, made)]
    )
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[0] == f"test image {frame.name}"
    at_95 = nyu_figures._at_95(made, frame.ground_truth_m)
    assert titles[4:] == [
        f"1. Bagging\n0.210 (this image 0.300)\n{at_95}",
        f"2. MC-dropout\n0.900 (this image 0.400)\n{at_95}",
    ]
