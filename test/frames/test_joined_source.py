# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several sources are read as one, and each is found again in the record of a training."""

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.joined_source import JoinedSource
from uncertainty_depth.frames.source import NAME_SEPARATOR, open_source, trained_on

NAMES = ["synthetic:worlds=1,frames=2,seed=3", "synthetic:worlds=1,frames=3,seed=4"]


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


def test_notes_are_told_by_source():
    class Noted:
        def __init__(self, name, notes):
            self.name = name
            self.notes = notes

    joined = JoinedSource([Noted("a", ["lost 1 cloud"]), Noted("b", [])])
    assert joined.notes == ["a: lost 1 cloud"]


def test_each_source_of_a_training_is_recognised():
    record = {"source": NAME_SEPARATOR.join(NAMES)}
    for name in NAMES:
        assert len(trained_on("model", record, [name])) == 1
    assert not trained_on("model", record, ["synthetic:worlds=1,frames=2,seed=5"])
