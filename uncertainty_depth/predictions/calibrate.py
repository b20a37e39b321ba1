# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fit a map from any confidence, and the depth, to sigma in metres.

The map is chosen on frames left out and reported on frames not used, as that of a model is (see
`calibration.run`). What it must not be worse than is the confidence itself where it is a sigma,
and else the best constant sigma, which needs no confidence at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uncertainty_depth.calibration.fit import candidates, likelihood_scale
from uncertainty_depth.calibration.fitted_data import FittedData
from uncertainty_depth.calibration.sample import (
    Sample,
    all_pixels,
    check_sample,
    evenly_spread,
    fitted_data,
    random_pixels,
)
from uncertainty_depth.calibration.scores import (
    LABELS,
    Scores,
    harmed,
    mean_over_folds,
    mean_scores,
    scores_of_sigma,
)
from uncertainty_depth.calibration.sigma_map import IDENTITY, affine
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.errors import CalibrationError, MessageError
from uncertainty_depth.frames.source import Source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.predictions.confidence_map import POWERS, ConfidenceMap
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import Frame

OFFSET = 0.01
"""Added to an uncertainty without a unit, as a fraction of its 99 % quantile."""
FLAT = 1e-6
"""Rise of the constant map, which must rise strictly, over an uncertainty of 1."""
Maps = dict[str, ConfidenceMap]


@dataclass(frozen=True, eq=False)
class Trial:
    """Held-out frames, and a map that was neither fitted nor selected on them.

    Attributes:
        name: of the frames.
        confidence_map: the map.
        frames: number of frames.
        pixels: number of pixels.
        before: scores of the reference.
        after: scores of the map.
    """

    name: str
    confidence_map: ConfidenceMap
    frames: int
    pixels: int
    before: Scores
    after: Scores


@dataclass(frozen=True, eq=False)
class MapCalibration:
    """A fitted map, the scores it was selected by, and its scores on held-out frames.

    Attributes:
        confidence_map: fitted to all parts.
        reference: name of what it must not be worse than: "identity" or "constant".
        held_out: scores of each candidate on parts it was not fitted to, the mean over the parts.
        trials: one for each held-out sequence; of a single source, one for its last frames.
        fitted: the data that the map was fitted to.
        distribution: what sigma is taken to be the standard deviation of.
    """

    confidence_map: ConfidenceMap
    reference: str
    held_out: dict[str, Scores]
    trials: tuple[Trial, ...]
    fitted: FittedData
    distribution: str

    def scores(self) -> tuple[Scores, Scores]:
        """Return the scores of the reference and of the map, the mean over the trials."""
        before = mean_scores([trial.before for trial in self.trials])
        return before, mean_scores([trial.after for trial in self.trials])

    def harmed(self) -> list[str]:
        """Return the names of the scores by which the map is worse than the reference."""
        return harms(*self.scores(), self.reference)


def collect(
    source: Source,
    interpreter: Interpreter,
    config: CalibrationConfig,
    progress: bool = True,
) -> Sample:
    """Return random pixels of at most `max_frames` frames of a source, see `Sample`.

    The first Ctrl-C ends it after the frame at hand.

    Raises:
        SourceError: fewer frames or pixels than a map can be fitted to; it says why the first
            frame was skipped.
    """
    random = np.random.default_rng(config.pixel_seed)
    pixels = []
    cameras: list[Camera | None] = []
    problem = ""
    for record in evenly_spread(source, Frame, config.max_frames, progress):
        try:
            prediction = interpreter.predict(record)
        except MessageError as error:
            problem = problem or f"; {record.name}: {error}"
            continue
        pixel_values = random_pixels(prediction, record.need_ground_truth(), config, random)
        if pixel_values.shape[1]:
            pixels.append(pixel_values)
            cameras.append(record.camera)
    sample = Sample(source.name, tuple(pixels), tuple(cameras))
    return check_sample(sample, problem)


def calibrate(
    samples: Sequence[Sample], has_unit: bool, config: CalibrationConfig
) -> MapCalibration:
    """Choose and fit a map, and score it on frames not used.

    Args:
        samples: of one or more sources; the sigma of their pixels is the uncertainty.
        has_unit: whether the uncertainty is a standard deviation in metres.
        config: how it is split; an empty distribution is a Gaussian.

    Raises:
        SourceError: no map can be fitted.
    """
    law = config.distribution or "gaussian"
    if len(samples) > 1:
        fitting_samples = list(samples)
        parts = fitting_samples
        trials = []
        for sample in samples:
            others = [other for other in samples if other is not sample]
            blocks = others if len(others) > 1 else others[0].blocks(config.blocks)
            trials.append(_trial(sample, others, choose(blocks, has_unit, law), has_unit, law))
    else:
        first, last = samples[0].split(config.report_fraction)
        fitting_samples = [first]
        parts = first.blocks(config.blocks)
        trials = [_trial(last, fitting_samples, choose(parts, has_unit, law), has_unit, law)]
    held_out = held_out_scores(parts, has_unit, law)
    selection = fit_maps(fitting_samples, has_unit, law)[best(held_out, has_unit)]
    return MapCalibration(
        selection,
        reference_of(has_unit),
        held_out,
        tuple(trials),
        fitted_data(fitting_samples),
        law,
    )


def check(calibration: MapCalibration) -> None:
    """Refuse a map that is worse than its reference on frames not used.

    Raises:
        CalibrationError: it is, by its score, its likelihood or its coverage.
    """
    before, after = calibration.scores()
    names = {"identity": "the confidence as it is", "constant": "a constant sigma"}
    changes = [
        f"{LABELS[name]} {before[name]:.4g} -> {after[name]:.4g}" for name in calibration.harmed()
    ]
    if changes:
        raise CalibrationError(
            f"the map '{calibration.confidence_map.name}' is worse than "
            f"{names[calibration.reference]} on frames not used: {', '.join(changes)}; nothing is "
            "written: calibrate on more data like those of the robot, or write it all the same "
            "with --force"
        )


def harms(before: Scores, after: Scores, reference: str) -> list[str]:
    """Return the names of the scores by which a map is worse than its reference.

    A constant sigma may cover 95 % by chance, whatever it says of any one pixel: beside one the
    proper scores and the AUCE alone decide.
    """
    names = harmed(before, after)
    return [name for name in names if name != "coverage_95" or reference == "identity"]


def reference_of(has_unit: bool) -> str:
    """Return the name of the candidate that a map must not be worse than."""
    return "identity" if has_unit else "constant"


def fit_maps(samples: Sequence[Sample], has_unit: bool, law: str) -> Maps:
    """Return every candidate by its name, fitted to all pixels of the samples together.

    `|error| / depth^power` is fitted to the uncertainty, for each power: the same maps and sizes
    as for a model's sigma. Coverage and likelihood of `error / sigma` do not see the division.
    """
    depth, uncertainty, truth = all_pixels(samples)
    positive = depth > 0
    depth = depth[positive]
    uncertainty = uncertainty[positive]
    error = np.abs(depth - truth[positive])
    offset = 0.0
    if not has_unit:
        offset = OFFSET * float(np.quantile(uncertainty, 0.99)) or 1.0
    maps: Maps = {}
    for power in POWERS:
        fitted = candidates(uncertainty + offset, error / depth**power, law)
        for sigma_map in fitted.values():
            if sigma_map.name != IDENTITY.name or (has_unit and power == 0):
                confidence_map = ConfidenceMap(sigma_map, power, offset)
                maps[confidence_map.name] = confidence_map
    if not has_unit:
        size = likelihood_scale(np.ones_like(error), error, law)
        maps["constant"] = ConfidenceMap(affine(size, FLAT * size, "constant"), 0, offset)
    return maps


def choose(parts: Sequence[Sample], has_unit: bool, law: str) -> str:
    """Return the name of the map that is best on parts left out in turn."""
    return best(held_out_scores(parts, has_unit, law), has_unit)


def held_out_scores(parts: Sequence[Sample], has_unit: bool, law: str) -> dict[str, Scores]:
    """Return the scores of each map on parts it was not fitted to, the mean over the parts."""
    folds = []
    for left_out in parts:
        maps = fit_maps([part for part in parts if part is not left_out], has_unit, law)
        folds.append(
            {
                map_name: map_scores(left_out, confidence_map, law)
                for map_name, confidence_map in maps.items()
            }
        )
    return mean_over_folds(folds)


def best(held_out: dict[str, Scores], has_unit: bool) -> str:
    """Return the map with the smallest CRPS of those that harm nothing, the reference included."""
    reference = held_out[reference_of(has_unit)]
    name = reference_of(has_unit)
    allowed = [
        map_name for map_name, scores in held_out.items() if not harms(reference, scores, name)
    ]
    return min(allowed, key=lambda map_name: held_out[map_name]["crps"])


def map_scores(sample: Sample, confidence_map: ConfidenceMap, law: str) -> Scores:
    """Return the scores of a map on all pixels of a sample together."""
    depth, uncertainty, truth = all_pixels([sample])
    return scores_of_sigma(np.abs(depth - truth), confidence_map(uncertainty, depth), law)


def _trial(
    sample: Sample, fitting_samples: Sequence[Sample], selection: str, has_unit: bool, law: str
) -> Trial:
    maps = fit_maps(fitting_samples, has_unit, law)
    return Trial(
        sample.name,
        maps[selection],
        len(sample.frames),
        sample.pixels,
        map_scores(sample, maps[reference_of(has_unit)], law),
        map_scores(sample, maps[selection], law),
    )
