# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A Ray cluster of two nodes, one of which dies in the middle: its source is scored again.

Half a minute, so it runs only where UNCERTAINTY_DEPTH_RAY is set; what needs no cluster always.
"""

import importlib
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from uncertainty_depth.contrib import on_ray
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.process import Interrupt
from uncertainty_depth.report.fleet import open_fleet

WORK = """
import os, time
from pathlib import Path
import ray
def slow(source, folder, command):
    node = ray.get_runtime_context().get_node_id()
    with (Path(__file__).parent / source).open("a") as marks:
        marks.write(node + " ")
    time.sleep(3)
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(source)
"""


def test_without_ray_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    jobs = open_fleet(tmp_path, ["a"], [[]], {}, False)
    with pytest.raises(ConfigError, match=r"pip install '\.\[ray\]'"):
        on_ray.run(dict.fromkeys(jobs, (print, "a", "")), "local", False, Interrupt(), print)


def test_a_ray_that_dies_while_it_starts_is_one_sentence(tmp_path, monkeypatch):
    """Its error, once its raylet was killed, is a plain Exception."""

    def init(**_):
        raise Exception("The current node timed out during startup. This could happen ...")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    jobs = open_fleet(tmp_path, ["a"], [[]], {}, False)
    with pytest.raises(ConfigError, match="Ray at local does not start: The current node timed"):
        on_ray.run(dict.fromkeys(jobs, (print, "a", "")), "local", False, Interrupt(), print)


@pytest.mark.skipif("UNCERTAINTY_DEPTH_RAY" not in os.environ, reason="starts a Ray cluster")
@pytest.mark.timeout(300)
def test_the_source_of_a_node_that_dies_is_scored_again(tmp_path, monkeypatch):
    utilities = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")
    (tmp_path / "slow_work.py").write_text(WORK)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.syspath_prepend(tmp_path)
    slow = importlib.import_module("slow_work").slow
    names = [f"bag{index}" for index in range(6)]
    jobs = open_fleet(tmp_path / "out", names, [[] for _ in names], {}, False)
    cluster = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    over = threading.Event()

    def kill_once_busy():
        while not over.wait(0.1):
            marks = [(tmp_path / name).read_text() for name in names if (tmp_path / name).exists()]
            if any(doomed.node_id in mark for mark in marks):
                cluster.remove_node(doomed, allow_graceful=False)
                return

    killer = threading.Thread(target=kill_once_busy)
    killer.start()
    try:
        work = {job: (slow, job.notation, "") for job in jobs}
        on_ray.run(work, cluster.address, False, Interrupt(), lambda job: None)
    finally:
        over.set()
        killer.join()
        cluster.shutdown()
    assert all(job.is_done for job in jobs)
    assert [(job.folder / "summary.json").read_text() for job in jobs] == names
    nodes = [(tmp_path / name).read_text().split() for name in names]
    assert any(len(tried) == 2 and tried[0] == doomed.node_id for tried in nodes)
