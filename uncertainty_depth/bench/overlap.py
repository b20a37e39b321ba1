# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What `evaluate` gains where reading, predicting and scoring overlap.

Each round scores the source part by part and then overlapped, so that other load hits both alike.
The floor is the slowest part alone: nothing that keeps the order can be faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from uncertainty_depth.bench.rounds import Spread, load, markdown
from uncertainty_depth.data.source import Source
from uncertainty_depth.evaluation.evaluate import DepthPredictor, evaluate
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

ROUNDS = 5


class Round(NamedTuple):
    """Wall seconds of one round; the parts are those of the sequence."""

    reading: float
    predicting: float
    scoring: float
    overlapped: float

    @property
    def in_sequence(self) -> float:
        """Seconds of the parts one after the other."""
        return self.reading + self.predicting + self.scoring

    @property
    def slowest_part(self) -> float:
        """Seconds of the part that takes longest."""
        return max(self.reading, self.predicting, self.scoring)


class Timed:
    """A source and a predictor that add up what they take."""

    def __init__(self, source: Source, predictor: DepthPredictor) -> None:
        self.name = source.name
        self.notes: list[str] = []
        self.reading = 0.0
        self.predicting = 0.0
        self._source = source
        self._predictor = predictor

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        start = time.perf_counter()
        for record in self._source:
            self.reading += time.perf_counter() - start
            yield record
            start = time.perf_counter()
        self.reading += time.perf_counter() - start

    def predict(self, *arguments: Any) -> DepthPrediction:
        """Predict as the predictor does."""
        start = time.perf_counter()
        prediction = self._predictor.predict(*arguments)
        self.predicting += time.perf_counter() - start
        return prediction


def run(source: Source, predictor: DepthPredictor, rounds: int = ROUNDS) -> list[Round]:
    """Time the rounds; one before them, which fills the caches, is not counted."""
    return [_round(source, predictor) for _ in range(rounds + 1)][1:]


def _round(source: Source, predictor: DepthPredictor) -> Round:
    timed = Timed(source, predictor)
    in_sequence = _seconds(lambda: evaluate(timed, timed, progress=False, overlapped=False))
    overlapped = _seconds(lambda: evaluate(source, predictor, progress=False))
    scoring = in_sequence - timed.reading - timed.predicting
    return Round(timed.reading, timed.predicting, scoring, overlapped)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def table(name: str, rounds: list[Round]) -> str:
    """Return times and ratios of the rounds as Markdown."""
    rows = [(f"{part.replace('_', ' ')}, s", _spread(rounds, attrgetter(part))) for part in _PARTS]
    ratio = _spread(rounds, lambda timing: timing.overlapped / timing.in_sequence)
    floor = _spread(rounds, lambda timing: timing.slowest_part / timing.in_sequence)
    rows += [("overlapped / in sequence", ratio), ("floor: slowest part / in sequence", floor)]
    return markdown((f"evaluate {name}", "median (min to max)"), rows) + f"\n\n{load()}"


def _spread(rounds: list[Round], value: Callable[[Round], float]) -> Spread:
    return Spread.of([value(timing) for timing in rounds])


_PARTS = ("reading", "predicting", "scoring", "in_sequence", "overlapped")
