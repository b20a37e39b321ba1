# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Networks trained as tasks of Ray: the same bits as in one process, wherever they are trained.

The cluster of two nodes, one of which dies, takes a minute: UNCERTAINTY_DEPTH_RAY starts it.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from uncertainty_depth.cli.main import main
from uncertainty_depth.errors import TrainingError
from uncertainty_depth.fleet.on_ray import cluster_at
from uncertainty_depth.training import run
from uncertainty_depth.training.run import train

HERE = Path(__file__).parent


class RayError(Exception):
    """Of a task that no node could finish."""


class OneProcess:
    """What is used of the module `ray`; tasks are done as they are given."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, cores: tuple[int, ...] = (1,)) -> None:
        self.cores = cores
        self.options: list[dict[str, int]] = []
        self.results: list[object] = []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": sum(self.cores)}

    def nodes(self) -> list[dict]:
        return [{"Alive": True, "Resources": {"CPU": cores}} for cores in self.cores]

    def remote(self, **options: int):
        self.options.append(options)

        def task(work):
            def submit(*arguments):
                references = [isinstance(one, int) and i > 3 for i, one in enumerate(arguments)]
                given = zip(arguments, references, strict=True)
                self.results.append(
                    work(*(self.results[one] if known else one for one, known in given))
                )
                return len(self.results) - 1

            return SimpleNamespace(remote=submit)

        return task

    def wait(self, references, num_returns, timeout):
        return references[:num_returns], references[num_returns:]

    def get(self, reference):
        return self.results[reference]

    def cancel(self, reference, force) -> None:
        """Nothing runs any more."""


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*.safetensors")}


@pytest.mark.parametrize("method", ["multi_inits", "learned_error"])
def test_tasks_train_the_same_bits_as_one_process(method, small, tmp_path: Path) -> None:
    source, network, training = small
    training = replace(training, method=method, members=2)
    alone = content(train(source, tmp_path / "alone", network, training))
    ray = OneProcess()
    assert content(train(source, tmp_path / "tasks", network, training, ray=ray)) == alone
    assert len(ray.results) == 2
    assert ray.options == [{"num_cpus": 1, "num_gpus": 0, "max_retries": 5}]


def test_cores_are_shared_and_no_task_asks_for_more_than_a_node_has(small, tmp_path) -> None:
    source, network, training = small
    training = replace(training, method="multi_inits", members=2, epochs=1)
    ray = OneProcess(cores=(1, 2, 1))
    train(source, tmp_path / "shared", network, training, ray=ray)
    assert ray.options[0]["num_cpus"] == 2
    ray = OneProcess(cores=(1, 1, 1, 1, 1))
    train(source, tmp_path / "small_nodes", network, training, ray=ray)
    assert ray.options[0]["num_cpus"] == 1


def test_a_network_that_fails_leaves_the_others_to_be_trained(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, network, training = small
    training = replace(training, method="multi_inits", members=3)
    whole = content(train(source, tmp_path / "whole", network, training))
    monkeypatch.syspath_prepend(HERE)
    import broken_losses

    def with_broken(network, training):
        plan = broken_losses.plan_with({1: broken_losses.refused})(network, training)
        return [*plan[:2], replace(plan[2], targets=print)]

    folder = tmp_path / "model"
    sentence = (
        r"member_02 was not trained: the loss has had enough; see .*member_02.log \(1 more failed"
    )
    with monkeypatch.context() as patch:
        patch.setattr(run, "make_plan", with_broken)
        with pytest.raises(TrainingError, match=sentence):
            train(source, folder, network, training, ray=OneProcess())
    assert "ConfigError: the loss has had enough" in (folder / "member_02.log").read_text()
    assert not list(folder.glob(".*.npy"))
    ray = OneProcess()
    assert content(train(source, folder, network, training, resume=True, ray=ray)) == whole
    assert len(ray.results) == 2


def test_a_folder_that_a_node_does_not_have_is_named(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(OneProcess):
        def remote(self, **options: int):
            os.chdir(tmp_path)
            monkeypatch.setattr("uncertainty_depth.training.on_ray.go_to", lambda folder: None)
            return super().remote(**options)

    source, network, training = small
    training = replace(training, method="multi_inits", members=2)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(TrainingError, match=r"model is not on .*; expected a folder that all"):
        train(source, Path("model"), network, training, ray=Elsewhere())


def test_processes_and_a_cluster_contradict_each_other(tmp_path, capfd) -> None:
    output = str(tmp_path / "model")
    assert (
        main(["train", "bag", "--output", output, "--ray", "local", "--set", "processes=2"]) == 1
    )
    assert "expected either processes or --ray" in capfd.readouterr().err


@pytest.mark.skipif("UNCERTAINTY_DEPTH_RAY" not in os.environ, reason="starts a Ray cluster")
@pytest.mark.timeout(300)
def test_the_network_of_a_node_that_dies_is_trained_to_the_same_bits(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    utilities = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")
    source, network, training = small
    training = replace(training, method="multi_inits", members=2, epochs=150, patience=150)
    alone = weights(train(source, tmp_path / "alone", network, training))
    folder = tmp_path / "model"
    cluster = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    over = threading.Event()
    killed = threading.Event()

    def kill_in_the_middle() -> None:
        begun = [folder / f"checkpoint_member_0{number}.safetensors" for number in (1, 2)]
        while not over.wait(0.05):
            if all(path.exists() for path in begun):
                cluster.remove_node(doomed, allow_graceful=False)
                killed.set()
                return

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    try:
        with cluster_at(cluster.address) as ray:
            train(source, folder, network, training, ray=ray)
    finally:
        over.set()
        killer.join()
        cluster.shutdown()
    assert killed.is_set()
    assert weights(folder) == alone
    assert alone
