# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The check of a GPU, in its small version on the CPU: every part gives its values."""

from benchmarks import gpu


def test_every_part_of_the_small_version_gives_its_values():
    found = gpu.run(gpu.TINY)
    assert not [name for name, value in found.items() if isinstance(value, str)]
    assert found["equality"]["demo, mc_dropout, auto"]["depth_max"] == 0
    assert found["two_threads"]["equal"]
    counts = found["operations"]["tiny, mc_dropout, M = 8"]
    assert 1 <= counts["ratio"] < 2
    assert found["tiny 64x48 mc_dropout auto"]["M = 4"]["ms"] > 0
