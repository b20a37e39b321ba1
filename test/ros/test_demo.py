# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The demo on a tiny world: every frame accounted for, live metrics equal to offline ones."""

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from synthetic import demo
from synthetic.config import SynthesisConfig
from synthetic.live_run import drained, running
from test.conftest import summary_of
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import Evaluation

FRAMES = 3


def test_the_demo_accounts_for_every_frame_and_live_equals_offline(tmp_path, monkeypatch):
    world = SynthesisConfig(
        worlds=1, frames=FRAMES, seed=20_000, width=96, height=72, rings=16, rate=0.5
    )
    monkeypatch.setattr(demo, "WORLD", world)
    lines = list(demo.run(tmp_path))
    assert f"sent by the player: {FRAMES} images" in lines
    assert f"depth node: {FRAMES} received" in lines
    assert f"depth node: {FRAMES} processed" in lines
    assert f"evaluator node: {FRAMES} predictions received" in lines
    assert "evaluator node: messages of all topics lost: none" in lines
    assert f"evaluator node: {FRAMES} scored" in lines
    live, offline = (summary_of(tmp_path / name) for name in ("live", "offline"))
    counts = {"read": FRAMES, "evaluated": FRAMES, "skipped": {}}
    assert live["frames"] == offline["frames"] == counts
    shown = flatten(live)
    metrics = {
        name: value
        for name, value in flatten(offline).items()
        if name.startswith(("depth.", "uncertainty.", "baselines.", "pixels"))
    }
    assert len(metrics) > 60
    for name, value in metrics.items():
        assert shown[name] == value, name
    assert live["intervals"] == offline["intervals"]
    page, *commands = (line for line in lines[-5:] if not line.startswith(" "))
    assert str(tmp_path / "offline" / "report.html") in page
    programs = [line.split(":", 1)[1].split()[0] for line in commands]
    assert all(Path(program).exists() for program in programs), "they can be typed as they are"
    for log in ("depth_node.log", "evaluator_node.log", "player.log"):
        assert "Traceback" not in (tmp_path / "logs" / log).read_text()


def test_the_account_names_losses_and_what_nothing_explains():
    depth = {"received": 8, "processed": 5, "dropped.stale": 2, "lost_in_transport.image": 1}
    scores = {"received": 20, "received.depth/image_rect": 5, "evaluated": 3}
    scores["lost_in_transport.lidar/points"] = 4
    counts = {"player": {"/image": 10}, "depth_node": depth, "evaluator_node": scores}
    summary = {"frames": {"evaluated": 3, "skipped": {"no_lidar": 1}}}
    assert list(demo.account(counts, "/image", summary)) == [
        "sent by the player: 10 images",
        "depth node: 8 received, 1 lost_in_transport, 1 unaccounted",
        "depth node: 5 processed, 2 dropped.stale, 1 unaccounted",
        "evaluator node: 5 predictions received",
        "evaluator node: messages of all topics lost: 4 lost_in_transport",
        "evaluator node: 3 scored, 1 no_lidar, 1 unaccounted",
    ]


DEPTH = {"received": 9, "lost_in_transport.image": 1, "processed": 7, "dropped.stale": 2}
SCORES = {"received.lidar/points": 10, "evaluated": 5, "skipped.no_lidar": 1, "waiting": 1}


@pytest.mark.parametrize(
    ("depth", "scores", "expected"),
    [
        ({}, {}, True),
        ({"received": 8}, {}, False),  # an image is still on its way
        ({"processed": 6}, {}, False),  # one is being processed
        ({}, {"evaluated": 4}, False),  # a prediction is on its way
        ({}, {"received.lidar/points": 9}, False),  # the one that waits may wait for this cloud
        ({}, {"waiting": 0}, False),
        ({}, {"evaluated": 6, "waiting": 0}, True),
        ({}, {"evaluated": 4, "lost_in_transport.depth/image_rect": 1}, True),
    ],
)
def test_a_run_is_drained_once_every_frame_is_settled(depth, scores, expected):
    assert drained(DEPTH | depth, SCORES | scores, images=10, clouds=10) == expected


def test_processes_of_a_job_in_the_background_end_too(tmp_path):
    """A shell starts it with SIGINT ignored, and children would inherit that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with running({"asleep": ["sleep", "1000"]}, tmp_path) as processes:
            assert processes["asleep"].poll() is None
        assert processes["asleep"].returncode == -signal.SIGINT
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_in_the_offline_part_ends_the_demo(tmp_path, monkeypatch):
    stopped = Evaluation()
    stopped.interrupted = True
    monkeypatch.setattr(demo, "score", lambda *_: (stopped, None))
    with pytest.raises(KeyboardInterrupt):
        demo.evaluate_offline(SimpleNamespace(name="bag", notes=[]), tmp_path / "offline")
    assert not (tmp_path / "offline").exists()
