# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several sources are read as one, and each is found again in the record of a training."""

import numpy as np

from test.conftest import save_maps, summary_of
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.frames.protocol import NAME_SEPARATOR, JoinedSource
from uncertainty_depth.stream.opening import open_source

SMALL = "width=64,height=48"
NAMES = [f"synthetic:worlds=1,frames={n},seed={n},{SMALL}" for n in (2, 3)]


def test_frames_come_in_the_order_of_the_sources():
    sources = [open_source(name, SourceConfig()) for name in NAMES]
    joined = JoinedSource(sources)
    assert joined.name.split(NAME_SEPARATOR) == NAMES
    assert len(joined) == 5
    alone = [record for source in sources for record in source]
    together = list(joined)
    assert [record.name for record in together] == [record.name for record in alone]
    assert (together[3].image == alone[3].image).all()
    assert len(list(joined)) == 5


def test_at_most_so_many_frames_are_scored_evenly_spread(tmp_path):
    report = tmp_path / "report"
    source = "synthetic:worlds=1,frames=5,seed=3,width=80,height=64"
    command = ["evaluate", source, "--model", "demo", "--samples", "1", "--output", str(report)]
    assert main([*command, "--max-frames", "2"]) == 0
    summary = summary_of(report)
    assert summary["frames"]["evaluated"] == 2
    assert "2 of 5 frames are used, evenly spread" in summary["notes"]
    names = [row.split(",")[0] for row in (report / "frames.csv").read_text().splitlines()[1:]]
    frames = list(open_source(source, SourceConfig()))
    assert names == [frames[0].name, frames[2].name]
    assert summary["config"]["max_frames"] == 2


def test_frames_without_ground_truth_take_nobodys_place(tmp_path):
    """Of ten recorded frames the first and the sixth, which would be chosen, have none."""
    folder = tmp_path / "recorded"
    for index in range(10):
        depth = np.full((40, 50), 2.0 + index, np.float32)
        maps = {"depth": depth} if index in (0, 5) else {"depth": depth, "ground_truth": depth}
        save_maps(folder, str(index), **maps)
    (folder / "depth" / "9.npy").write_bytes(b"not read")
    report = tmp_path / "report"
    command = ["evaluate", f"predictions:{folder}", "--output", str(report), "--max-frames", "2"]
    assert main(command) == 0
    summary = summary_of(report)
    assert summary["frames"]["evaluated"] == 2
    assert summary["frames"]["skipped"] == {"no_ground_truth": 2}, "frames left out are not read"
    names = [row.split(",")[0] for row in (report / "frames.csv").read_text().splitlines()[1:]]
    assert names == ["1", "6"]
