# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A stand-in for tf2_ros, which no wheel has: its questions, answered by a `TransformTree`."""

import sys
from types import ModuleType, SimpleNamespace

from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.transforms import parameters_from
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.transforms import TransformTree


class TransformException(Exception):
    pass


def stamped(parameters):
    x, y, z, qx, qy, qz, qw = parameters
    translation = SimpleNamespace(x=x, y=y, z=z)
    rotation = SimpleNamespace(x=qx, y=qy, z=qz, w=qw)
    return SimpleNamespace(transform=SimpleNamespace(translation=translation, rotation=rotation))


class Buffer:
    """A tf2 buffer over a `TransformTree`, with tf2's two questions.

    Like tf2's, it ignores what is 10 s older than the newest; `stamps_s` is what it kept.
    """

    tree = TransformTree()
    timeouts_s: list[float] = []  # noqa: RUF012

    def __init__(self):
        self.stamps_s = []
        self.cleared = 0

    def set_transform(self, transform, authority):
        seconds = transform.header.stamp.sec
        if not self.stamps_s or seconds > max(self.stamps_s) - 10:
            self.stamps_s.append(seconds)

    def clear(self):
        self.stamps_s.clear()
        self.cleared += 1

    def _answer(self, timeout, lookup, *arguments):
        Buffer.timeouts_s.append(timeout.nanoseconds / SECOND_NS)
        try:
            return stamped(parameters_from(lookup(*arguments)))
        except SourceError as error:
            raise TransformException(str(error)) from error

    def lookup_transform(self, target, source, time, timeout):
        return self._answer(timeout, Buffer.tree.lookup, target, source, time.nanoseconds)

    def lookup_transform_full(
        self, target, target_time, source, source_time, fixed_frame, timeout
    ):
        times_ns = (target_time.nanoseconds, source_time.nanoseconds)
        lookup = Buffer.tree.lookup_through
        return self._answer(timeout, lookup, fixed_frame, target, times_ns[0], source, times_ns[1])


class TransformListener:
    """tf2's: the node keeps its subscriptions until it is told to let go."""

    buffers: list[Buffer] = []  # noqa: RUF012

    def __init__(self, buffer, node):
        self.buffer = buffer
        self.buffers.append(buffer)

    def unregister(self):
        self.buffers.remove(self.buffer)


def install(monkeypatch, tree):
    """Put the stand-in in tf2_ros's place; it knows what the tree says."""
    module = ModuleType("tf2_ros")
    module.TransformException = TransformException
    module.Buffer = Buffer
    module.TransformListener = TransformListener
    monkeypatch.setitem(sys.modules, "tf2_ros", module)
    monkeypatch.setattr(Buffer, "tree", tree)
    monkeypatch.setattr(Buffer, "timeouts_s", [])
    monkeypatch.setattr(TransformListener, "buffers", [])
