# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several sources: scored in processes, merged in their order, and gone on with after a kill."""

import csv
import importlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from test.conftest import save_maps
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.process import Interrupt
from uncertainty_depth.metrics.calibration import of_distribution
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.fleet import FleetSource, open_fleet, rows_of
from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY, affine
from uncertainty_depth.sigma.recorded.interpreter import SavedMap
from uncertainty_depth.stream import workers as local

FRAMES = 4


def predictions(folder, seed, error=0.05):
    """Write recorded predictions as .npy files."""
    random = np.random.default_rng(seed)
    for index in range(FRAMES):
        truth = random.uniform(1, 9, (12, 16)).astype(np.float32)
        sigma = (error * truth * random.lognormal(0, 0.5, truth.shape)).astype(np.float32)
        depth = (truth + random.normal(0, sigma)).astype(np.float32)
        save_maps(folder, f"{index:03}", depth=depth, confidence=sigma, ground_truth=truth)
    return f"predictions:{folder}"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two sources, and between them one without ground truth."""
    root = tmp_path_factory.mktemp("sources")
    good = predictions(root / "good", 1)
    poor = predictions(root / "poor", 2, error=0.3)
    (root / "broken" / "depth").mkdir(parents=True)
    return [good, f"predictions:{root / 'broken'}", poor]


def evaluate(sources, output, *options):
    return main(["evaluate", *sources, "--output", str(output), *options])


@pytest.fixture(scope="module")
def scored(sources, tmp_path_factory):
    output = tmp_path_factory.mktemp("fleet") / "report"
    return evaluate(sources, output, "--jobs", "2"), output


def summary_of(output):
    summary = json.loads((output / "summary.json").read_text())
    for name in ("source", "sources", "notes"):
        summary.pop(name)
    return summary


def test_a_damaged_source_is_named_and_the_rest_scored(scored, sources):
    code, output = scored
    assert code == 1
    summary = json.loads((output / "summary.json").read_text())
    assert summary["frames"]["evaluated"] == 2 * FRAMES
    assert any(note.startswith(f"not scored: {sources[1]}") for note in summary["notes"])
    rows = list(csv.DictReader((output / "sources.csv").open()))
    assert [row["source"] for row in rows] == [sources[1], sources[2], sources[0]]
    assert rows[0]["failure"]
    assert float(rows[1]["uncertainty.crps"]) > float(rows[2]["uncertainty.crps"])
    page = (output / "report.html").read_text()
    for row in rows[1:]:
        assert (output / row["report"]).is_file()
        assert f'href="{row["report"]}"' in page


@pytest.mark.parametrize("head", ["gaussian", "laplace"])
def test_a_column_is_what_has_its_name_in_the_summary(tmp_path, head):
    evaluation = Evaluation()
    random = np.random.default_rng(0)
    truth = random.uniform(1, 9, (12, 16))
    evaluation.add_arrays(truth + random.laplace(0, 0.1, truth.shape), 0.1 * truth, truth)
    source = FleetSource("a", tmp_path / "sources" / "a", "")
    evaluation.write(source.folder, distribution=head)
    source.finish()
    (row,) = rows_of([source], tmp_path)
    summary = flatten(json.loads((source.folder / "summary.json").read_text()))
    metrics = {name: row[name] for name in row if "." in name}
    assert len(metrics) == 6
    assert metrics == {name: summary[name] for name in metrics}
    assert (f"uncertainty.{of_distribution('auce', head)}") in metrics
    page = report.page(evaluation, report.Context("a", {"head": head}, sources=(row,)))
    assert f"<th>AUCE ({head.title()})</th>" in page


def test_the_bits_do_not_depend_on_the_number_of_workers(scored, sources, tmp_path, caplog):
    _, output = scored
    for outcome in (output / "sources").glob("*-*.json"):
        if "good" not in outcome.name:  # begins anew, but for one source
            outcome.unlink()
    before = summary_of(output)
    caplog.set_level("INFO")
    assert evaluate(sources, output, "--jobs", "1") == 1
    assert "1 of 3 sources are scored already" in caplog.text
    assert summary_of(output) == before


def test_other_options_are_refused_in_one_sentence(scored, sources, capsys):
    _, output = scored
    assert evaluate(sources, output, "--max-depth", "5") == 1
    sentence = capsys.readouterr().err
    assert "was started with max_depth 80.0, now it is 5.0" in sentence
    assert sentence.count("\n") == 1


def opened(folder, names, inputs=(), options=(), overwrite=False):
    return open_fleet(folder, names, [inputs] * len(names), dict(options), overwrite)


def test_duplicate_sources_and_existing_reports_are_refused(sources, tmp_path):
    with pytest.raises(ConfigError, match="is listed twice"):
        opened(tmp_path, [sources[0], sources[0]])
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(SourceError, match="holds a report already"):
        opened(tmp_path, sources)
    opened(tmp_path, sources, options={"samples": 9}, overwrite=True)
    (first, *_) = opened(tmp_path, sources, options={"samples": 9})
    assert first.folder.parent.name == "sources"


def test_a_source_that_changed_is_scored_again(tmp_path):
    bag = tmp_path / "a.bag"
    bag.write_bytes(b"1")
    (job,) = opened(tmp_path / "out", [str(bag)], [bag])
    assert not job.is_done
    job.folder.mkdir()
    (job.folder / "summary.json").write_text("{}")
    bag.write_bytes(b"12")
    job.finish()  # what it was while it was read counts
    assert not opened(tmp_path / "out", [str(bag)], [bag])[0].is_done
    (job,) = opened(tmp_path / "out", [str(bag)], [bag])
    job.finish()
    assert opened(tmp_path / "out", [str(bag)], [bag])[0].is_done
    job.finish("it is damaged")
    assert not job.is_done


@pytest.fixture
def in_this_process(monkeypatch):
    """Score sources here: a process of their own takes seconds to start."""

    def run(work, processes, interrupt, on_source_done):
        for source, item in work.items():
            source.finish(local.score(item, source.folder))
            on_source_done(source)

    monkeypatch.setattr(local, "run", run)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("changed", ["depth", "sigma_map"])
def test_what_changed_since_is_scored_again_whatever_it_is(tmp_path, caplog, changed):
    """A folder is written with a prefix, and the map of sigma is no source at all."""
    names = [predictions(tmp_path / name, seed) for seed, name in enumerate(("one", "two"))]
    sigma_map = tmp_path / "map.json"
    SavedMap(IDENTITY, "sigma", "depth", "gaussian", {}).write(sigma_map)
    options = ["--sigma-map", str(sigma_map)]
    report = tmp_path / "report"
    assert evaluate(names, report, *options) == 0
    if changed == "depth":
        predictions(tmp_path / "two", 5, error=0.4)
    else:
        SavedMap(affine(0.1, 2.0), "sigma", "depth", "gaussian", {}).write(sigma_map)
    caplog.set_level("INFO")
    assert evaluate(names, report, *options) == 0
    assert ("1 of 2 sources are scored already" in caplog.text) == (changed == "depth")
    anew = tmp_path / "anew"
    assert evaluate(names, anew, *options) == 0
    assert summary_of(report) == summary_of(anew)


ENDS = '''"""Work whose process is killed as its source says, the first times it is tried."""
import os, signal
def ends(source, folder, command):
    tries = folder.with_suffix(".tries")
    number = len(tries.read_text()) if tries.exists() else 0
    tries.write_text("x" * (number + 1))
    if source == "raises":
        raise ValueError("no frame index")
    if source == "always" or (source == "once" and not number):
        os.kill(os.getpid(), signal.SIGKILL)
'''


def test_a_killed_worker_is_tried_again_and_its_end_recorded(tmp_path, monkeypatch):
    (tmp_path / "work_that_ends.py").write_text(ENDS)
    monkeypatch.syspath_prepend(tmp_path)  # where the workers too find it
    ends = importlib.import_module("work_that_ends").ends
    jobs = opened(tmp_path, ["once", "always", "raises", "fine"])
    told = []
    work = {job: (ends, job.notation, "") for job in jobs}
    local.run(work, 2, Interrupt(), told.append)
    assert set(told) == set(jobs)
    sentences = {job.notation: job.outcome()["sentence"] for job in jobs}
    assert sentences["once"] == sentences["fine"] == ""
    assert sentences["always"].startswith("its process was killed, 3 times; see ")
    assert sentences["raises"] == "ValueError: no frame index"
    raised = next(job for job in jobs if job.notation == "raises")
    assert "Traceback" in raised.log_file.read_text()


WAITING = """
import sys, time
from pathlib import Path
from uncertainty_depth.stream import workers as local
from uncertainty_depth.report.fleet import FleetSource
from uncertainty_depth.core.process import deferred_interrupt
def forever(source, folder, command):
    with Path(folder).with_suffix(".alive").open("w") as alive:
        print("working", file=alive, flush=True)
        time.sleep(600)
if __name__ == "__main__":
    with deferred_interrupt() as interrupt:
        source = FleetSource("a", Path(sys.argv[1]) / "a", "")
        local.run({source: (forever, "a", "")}, 1, interrupt, print)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path, number):
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    os.mkfifo(tmp_path / "a.alive")
    parent = subprocess.Popen([sys.executable, script, tmp_path])
    with (tmp_path / "a.alive").open() as alive:  # waits until the worker opens it too
        assert alive.readline() == "working\n"
        parent.send_signal(number)
        parent.wait(60)
        assert alive.read() == "", "it is at its end when the worker is"
    assert FleetSource("a", tmp_path / "a", "").outcome() == {}


STARTING = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
if __name__ == "__mp_main__":  # in the worker, before it is prepared
    print("starting", file=(folder / "told").open("w"), flush=True)
    (folder / "go").open().readline()
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.report.fleet import FleetSource
from uncertainty_depth.stream import workers as local
if __name__ == "__main__":
    with deferred_interrupt() as interrupt:
        source = FleetSource("a", folder / "a", "")
        local.run({source: (print, "a", "")}, 1, interrupt, print)
    print(interrupt.requested, source.outcome())
"""


def test_ctrl_c_while_a_worker_starts_is_for_its_parent_alone(tmp_path):
    """A terminal sends it to both: the worker ended with the traceback of some import."""
    script = tmp_path / "starting.py"
    script.write_text(STARTING)
    for name in ("told", "go"):
        os.mkfifo(tmp_path / name)
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    go = os.open(tmp_path / "go", os.O_RDWR)  # what is written waits for the worker, if it lives
    assert (tmp_path / "told").open().readline() == "starting\n"
    os.killpg(parent.pid, signal.SIGINT)
    os.write(go, b"\n")
    assert parent.communicate(timeout=60)[0] == "True {}\n"


@pytest.mark.parametrize(
    ("has_gpu", "options", "processes"),
    [(True, [], 1), (True, ["--jobs", "3"], 3), (True, ["--device", "cpu"], 7), (False, [], 7)],
)
def test_a_gpu_has_one_process_unless_more_are_asked_for(
    has_gpu, options, processes, tmp_path, monkeypatch
):
    asked = []

    def run(work, jobs, *rest):
        asked.append(jobs)
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "run", run)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    worlds = [f"synthetic:worlds=1,seed={seed}" for seed in (1, 2)]
    evaluate(worlds, tmp_path / "report", "--model", "demo", *options)
    assert asked == [processes]
