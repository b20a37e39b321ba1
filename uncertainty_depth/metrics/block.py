# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sums of a block of frames, and the one exact pass over a frame's pixels that makes them.

A block is named float64 sums, int32 histograms and a few extremes. Blocks of any frames add up,
and every metric of `registry` is computed from the result, whether it is one frame or a million.
What a sum of infinities or of undefined values would spoil is left out of it and counted beside
it, so that any weighted sum of blocks is finite.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics import calibration
from uncertainty_depth.metrics.arrays import (
    Floats,
    Integers,
    average_ranks,
    inner,
    sorted_order,
    sorted_values,
)
from uncertainty_depth.metrics.bins import Bins
from uncertainty_depth.metrics.depth import PixelErrors, depth_sums
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS, DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.metrics.pixels import CELLS, GRID, ScoredPixels
from uncertainty_depth.metrics.proper_scores import NOMINAL_WIDTHS, score_sums
from uncertainty_depth.metrics.removal_curves import Ranking, sorted_oracle, statistic_values
from uncertainty_depth.metrics.sparsification import mean_of_running_means, poggi_areas
from uncertainty_depth.metrics.sparsification_variants import POGGI

CANDIDATES = ("method", "constant", "proportional_to_depth")
"""The predicted sigma, and the two trivial ones that it is compared with."""
LAWS = tuple(DISTRIBUTIONS)
ERROR = Bins(-18, 10, 6)
RATIO = Bins(-15, 15, 6)
DEPTH_RATIO = Bins(-18, 6, 6)
"""Of error / predicted depth: the ratio of the sigma that is proportional to depth."""
DEPTH_RATIO_SUMS = Bins(-18, 6, 3)
TRUTH = Bins(-4, 8, 5)
SIGMA = Bins(-10, 7, 3)
DISTANCE = Bins(-1, 7, 1)
"""Intervals of ground truth: 0.5, 0.75, 1, 1.5, 2, 3, 4, 6 ... 96, 128 m, open at both ends."""
DISTANCE_ERROR = Bins(-10, 6, 3)
DISTANCE_RATIO = Bins(-6, 8, 3)
BLOCK_GRID = (GRID[0] // 2, GRID[1] // 2)
"""Cells of the image, for a depth that is the same for every frame."""
BLOCK_CELLS = BLOCK_GRID[0] * BLOCK_GRID[1]
CELL_OF_BLOCK: Integers = (
    np.arange(CELLS) // GRID[1] // 2 * BLOCK_GRID[1] + np.arange(CELLS) % GRID[1] // 2
)
LARGEST_SUM = 1e200
"""In place of a frame's infinite sum, which no weight could take out again."""

_SCALARS = (
    "frames",  # with a scored pixel
    "known_pixels",  # pixels with ground truth within the limits of the evaluation
    "pixels",  # those that also have a prediction: the scored ones
    "truth",  # sums over the scored pixels: of the ground truth and its square, m and m^2
    "squared_truth",
    "depth",  # of the predicted depth where it is positive, as a sigma
    "log_depth",
    "no_depth",  # pixels where it is not: they have no logarithm and no inverse
    "signed_error",
    "error",
    "squared_error",
    "abs_rel",
    "sq_rel",
    "log",
    "squared_log",
    "log_within_frame",  # squared deviations from the mean of each frame
    "inverse",
    "squared_inverse",
    "a1",
    "a2",
    "a3",
    "within_10_percent",
    "sigma",
    "log_sigma",  # where sigma is positive
    "no_sigma",  # pixels where it is 0
    "certain_errors",  # those of them that are in error
    "ratio",  # error / sigma of the others
    "squared_ratio",
    "depth_ratio",
    "squared_depth_ratio",
    "scales",  # frames with a scale
    "log_scale",
    "squared_log_scale",
    "scale_jumps",
    "scale_jump",
    "familiarities",  # frames whose unfamiliarity is known
    "unfamiliarity",
    "unfamiliar",  # frames above 1
)
_LEVELS = (len(LAWS), len(CONFIDENCE_LEVELS))
_AREAS = (len(CANDIDATES), len(POGGI.errors))
_CURVE = (len(POGGI.errors), len(POGGI.fractions))
_CELL_SUMS = ("pixels", "truth", "squared_truth", "log_truth", "squared_log_truth")
_DISTANCE_SUMS = ("pixels", "signed_error", "error", "sigma", "covered", "covered_laplace")
SUMS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_SCALARS, ()),
    "crps": (len(LAWS),),
    "excess": (len(LAWS),),
    "ause": _AREAS,
    "aurg": _AREAS,
    "aurc": (len(CANDIDATES),),
    "spearman": (len(CANDIDATES),),
    "spearmans": (len(CANDIDATES),),  # frames in which it is defined
    **{f"distance.{name}": (DISTANCE.number,) for name in _DISTANCE_SUMS},
    "distance.still_pixels": (DISTANCE.number,),
    "distance.squared_change": (DISTANCE.number,),
    "by_sigma.squared_error": (SIGMA.number,),
    "by_sigma.squared_sigma": (SIGMA.number,),
    "by_depth_ratio.error": (DEPTH_RATIO_SUMS.number,),
    "by_depth_ratio.depth": (DEPTH_RATIO_SUMS.number,),
    "removal": (len(CANDIDATES), *_CURVE),  # from here on for plots and verdict alone
    "oracle": _CURVE,
    **{f"cell.{name}": (BLOCK_CELLS,) for name in _CELL_SUMS},
}
COUNTS: dict[str, tuple[int, ...]] = {
    "covered": _LEVELS,
    "errors": (ERROR.number,),
    "ratios": (RATIO.number,),
    "depth_ratios": (DEPTH_RATIO.number,),
    "truths": (TRUTH.number,),  # of all known pixels
    "by_sigma.pixels": (SIGMA.number,),
    "by_sigma.covered": (len(LAWS), SIGMA.number),
    "distance.errors": (DISTANCE.number, DISTANCE_ERROR.number),
    "distance.ratios": (DISTANCE.number, DISTANCE_RATIO.number),
}
EXTREMES: dict[str, tuple[int, ...]] = {
    "max_error": (),
    "-min_error": (),
    "max_ratio": (),
    "-min_ratio": (),
    "max_depth_ratio": (),
    "-min_depth_ratio": (),
    "max_unfamiliarity": (),
}
"""Maxima; a minimum is stored as the maximum of the negated values."""


def _offsets(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    sizes = [math.prod(shape) for shape in shapes.values()]
    ends = np.cumsum(sizes).tolist()
    pairs = zip(shapes, sizes, ends, strict=True)
    return {name: slice(end - size, end) for name, size, end in pairs}


@dataclass(frozen=True)
class Kind:
    """One of the three vectors of a block: what it holds, and where.

    Attributes:
        shapes: of each part.
        dtype: of the vector.
        empty: value of a part without pixels.
    """

    shapes: Mapping[str, tuple[int, ...]]
    dtype: type
    empty: float
    slices: Mapping[str, slice]

    @property
    def size(self) -> int:
        """Number of elements of the vector."""
        return sum(map(math.prod, self.shapes.values()))


KINDS = {
    "sums": Kind(SUMS, np.float64, 0.0, _offsets(SUMS)),
    "counts": Kind(COUNTS, np.int32, 0, _offsets(COUNTS)),
    "extremes": Kind(EXTREMES, np.float64, -math.inf, _offsets(EXTREMES)),
}
KIND_OF = {name: kind for kind, table in KINDS.items() for name in table.shapes}
assert len(KIND_OF) == len(SUMS) + len(COUNTS) + len(EXTREMES), "a name occurs twice"


class Block:
    """The sums of some frames.

    Attributes:
        vectors: the three vectors by kind, see `KINDS`.
    """

    __slots__ = ("vectors",)

    def __init__(self, vectors: dict[str, NDArray] | None = None) -> None:
        """Start without frames, or from vectors of the right sizes, which are not copied."""
        self.vectors = vectors or {
            name: np.full(kind.size, kind.empty, kind.dtype) for name, kind in KINDS.items()
        }

    def __getitem__(self, name: str) -> NDArray:
        """Return a part, to be read or written in place."""
        kind = KINDS[KIND_OF[name]]
        return self.vectors[KIND_OF[name]][kind.slices[name]].reshape(kind.shapes[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self[name][...] = value

    def add(self, other: Block) -> None:
        """Add the frames of another block, which does not change."""
        self.vectors["sums"] += other.vectors["sums"]
        self.vectors["counts"] += other.vectors["counts"]
        extremes = self.vectors["extremes"]
        np.maximum(extremes, other.vectors["extremes"], out=extremes)

    def add_scale(self, scale: float, last_log: float) -> None:
        """Set the scale of this frame: what its depth lacks as a factor.

        Args:
            scale: ignored if it is not positive and finite.
            last_log: logarithm of the scale of the frame before; NaN if there is none.
        """
        if not (math.isfinite(scale) and scale > 0):
            return
        log = math.log(scale)
        self["scales"] = 1
        self["log_scale"] = log
        self["squared_log_scale"] = log * log
        if not math.isnan(last_log):
            self["scale_jumps"] = 1
            self["scale_jump"] = abs(log - last_log)

    def add_unfamiliarity(self, score: float | None) -> None:
        """Set the unfamiliarity of this frame; None if it is not known."""
        if score is None:
            return
        self["familiarities"] = 1
        self["unfamiliarity"] = score
        self["unfamiliar"] = score > 1
        self["max_unfamiliarity"] = score

    def copy(self) -> Block:
        """Return a copy."""
        return Block({name: vector.copy() for name, vector in self.vectors.items()})


METRIC_SUMS = KINDS["sums"].slices["removal"].start
"""The first sums: all that metrics are computed from."""
PACKED_BYTES = 8 * (METRIC_SUMS + KINDS["extremes"].size) + 4 * KINDS["counts"].size


def packed(block: Block) -> bytes:
    """Return what the metrics of a frame are computed from, compressed: about 4 kB."""
    vectors = block.vectors
    counts = vectors["counts"].view(np.uint8).reshape(-1, 4).T  # the high bytes, all 0, together
    parts = (vectors["sums"][:METRIC_SUMS], vectors["extremes"], counts)
    return zlib.compress(b"".join(part.tobytes() for part in parts), 1)


def unpacked(data: bytes) -> Block:
    """Return the block that `packed` gave, without the sums of plots and verdict.

    Raises:
        ValueError: the data are not such a block.
        zlib.error: they are damaged.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(data, PACKED_BYTES + 1)
    if len(content) != PACKED_BYTES or not stream.eof:
        raise ValueError(f"a frame has {len(content)} bytes of sums; expected {PACKED_BYTES}")
    block = Block()
    numbers = np.frombuffer(content, np.float64, METRIC_SUMS + KINDS["extremes"].size)
    block.vectors["sums"][:METRIC_SUMS] = numbers[:METRIC_SUMS]
    block.vectors["extremes"][:] = numbers[METRIC_SUMS:]
    counts = np.frombuffer(content, np.uint8, offset=8 * len(numbers)).reshape(4, -1)
    block.vectors["counts"][:] = np.ascontiguousarray(counts.T).view(np.int32)[:, 0]
    return block


def frame_block(pixels: ScoredPixels) -> Block:
    """Return the block of one frame.

    Rankings are exact per image. Pixels are sorted once by error, once by each sigma, and the rest
    is arithmetic; a pass over the pixels takes longer than any arithmetic in it.
    """
    block = Block()
    if not len(pixels.truth):
        return block
    block["known_pixels"] = len(pixels.truth)
    block["truths"] = np.bincount(TRUTH.index(pixels.truth), minlength=TRUTH.number)
    if not len(pixels):
        return block
    order, error = sorted_order(pixels.error)
    sigma = pixels.sigma.take(order)
    truth = pixels.ground_truth.take(order)
    signed_error = pixels.depth.take(order) - truth
    errors = PixelErrors.of(pixels.depth.take(order), truth)
    block["frames"] = 1
    block["pixels"] = len(error)
    _add_depth(block, errors, truth, signed_error)
    ratio = _add_sigma(block, error, sigma)
    depth_ratio = _add_depth_as_sigma(block, errors)
    _add_rankings(block, errors, sigma)
    indices = {
        "errors": _add_histogram(block, "error", ERROR, error),
        "ratios": _add_histogram(block, "ratio", RATIO, ratio),
    }
    index = _add_histogram(block, "depth_ratio", DEPTH_RATIO, depth_ratio)
    coarse = DEPTH_RATIO.coarse(index, DEPTH_RATIO_SUMS)
    for name, values in (("error", error), ("depth", errors.positive_depth)):
        block[f"by_depth_ratio.{name}"] = np.bincount(coarse, values, DEPTH_RATIO_SUMS.number)
    is_covered = np.stack([ratio <= NOMINAL_WIDTHS[law] for law in LAWS])
    _add_by_sigma(block, error, sigma, is_covered)
    _add_by_distance(block, truth, signed_error, error, sigma, is_covered, indices)
    if pixels.cells is not None:
        _add_cells(block, CELL_OF_BLOCK.take(pixels.cells), pixels.ground_truth)
    np.minimum(block.vectors["sums"], LARGEST_SUM, out=block.vectors["sums"])
    return block


def _add_depth(block: Block, errors: PixelErrors, truth: Floats, signed: Floats) -> None:
    positive = errors.positive_depth > 0
    block["no_depth"] = len(truth) - np.count_nonzero(positive)
    depth = errors.positive_depth if positive.all() else errors.positive_depth[positive]
    block["depth"] = depth.sum()
    block["log_depth"] = calibration.log_sum(depth)
    sums = depth_sums(errors)
    block["truth"] = truth.sum()
    block["squared_truth"] = inner(truth, truth)
    block["signed_error"] = signed.sum()
    block["error"] = sums["mae"]
    block["squared_error"] = sums["squared"]
    for name in ("abs_rel", "sq_rel", "a1", "a2", "a3"):
        block[name] = sums[name]
    block["within_10_percent"] = np.count_nonzero(errors.relative <= 0.1)
    log = errors.log if positive.all() else errors.log[positive]
    inverse = errors.inverse if positive.all() else errors.inverse[positive]
    block["log"] = log.sum()
    block["squared_log"] = inner(log, log)
    if len(log):
        centred = log - log.mean()
        block["log_within_frame"] = inner(centred, centred)
    block["inverse"] = inverse.sum()
    block["squared_inverse"] = inner(inverse, inverse)


def _add_sigma(block: Block, error: Floats, sigma: Floats) -> Floats:
    """Add what the size of the predicted sigma is judged by; return error / sigma."""
    ratio = error_ratio(error, sigma)
    ascending = sorted_values(ratio)
    for row, law in enumerate(LAWS):
        widths = HALF_WIDTHS[law]
        block["covered"][row] = calibration.covered_pixels(ascending, widths)
        scores = score_sums(error, sigma, ratio, DISTRIBUTIONS[law])
        block["crps"][row] = scores.crps
        block["excess"][row] = scores.excess
    finite = ratio if math.isfinite(ascending[-1]) else ratio[np.isfinite(ratio)]
    positive = sigma if sigma.min() > 0 else sigma[sigma > 0]
    block["sigma"] = sigma.sum()
    block["log_sigma"] = calibration.log_sum(positive)
    block["no_sigma"] = len(sigma) - len(positive)
    block["certain_errors"] = len(sigma) - len(finite)
    block["ratio"] = finite.sum()
    block["squared_ratio"] = calibration.power_sum(finite, DISTRIBUTIONS["gaussian"])
    return ratio


def _add_depth_as_sigma(block: Block, errors: PixelErrors) -> Floats:
    """Add the same of the predicted depth as a sigma; return error / depth."""
    ratio = error_ratio(errors.absolute, errors.positive_depth)
    finite = ratio if not block["no_depth"] else ratio[np.isfinite(ratio)]
    block["depth_ratio"] = finite.sum()
    block["squared_depth_ratio"] = calibration.power_sum(finite, DISTRIBUTIONS["gaussian"])
    return ratio


def _add_rankings(block: Block, errors: PixelErrors, sigma: Floats) -> None:
    error = errors.absolute
    values = [statistic_values(errors, name)[0] for name in POGGI.errors]
    ascending = {
        "abs_rel": sorted_values(errors.relative),
        "rmse": errors.squared,  # the pixels are in the order of their errors
        "a1": sorted_values(errors.factor),
    }
    oracle = np.stack([sorted_oracle(POGGI, name, ascending[name]) for name in POGGI.errors])
    error_ranks = average_ranks(error)
    block["oracle"] = oracle
    for row, candidate in enumerate(CANDIDATES):
        if candidate == "constant":  # all pixels tie: none goes before all do
            removal = np.repeat(oracle[:, :1], len(POGGI.fractions), axis=1)
            block["aurc"][row] = error.mean()
        else:
            ranking = Ranking(sigma if candidate == "method" else errors.positive_depth)
            removal = ranking.curves(POGGI, POGGI.errors, values)
            block["aurc"][row] = mean_of_running_means(
                ranking.ascending, error.take(ranking.order)
            )
            ranks = average_ranks(ranking.ascending)
            spearman = calibration.correlation(ranks, error_ranks.take(ranking.order))
            if math.isfinite(spearman):
                block["spearman"][row] = spearman
                block["spearmans"][row] = 1
        block["removal"][row] = removal
        block["ause"][row], block["aurg"][row] = poggi_areas(removal, oracle)


def _add_histogram(block: Block, name: str, bins: Bins, values: Floats) -> Integers:
    index = bins.index(values)
    block[f"{name}s"] = np.bincount(index, minlength=bins.number)
    block[f"max_{name}"] = values.max()
    block[f"-min_{name}"] = -values.min()
    return index


def _add_by_sigma(block: Block, error: Floats, sigma: Floats, is_covered: NDArray) -> None:
    index = SIGMA.index(sigma)
    block["by_sigma.pixels"] = np.bincount(index, minlength=SIGMA.number)
    for row, covered in enumerate(is_covered):
        block["by_sigma.covered"][row] = np.bincount(index[covered], minlength=SIGMA.number)
    block["by_sigma.squared_error"] = np.bincount(index, error * error, SIGMA.number)
    block["by_sigma.squared_sigma"] = np.bincount(index, sigma * sigma, SIGMA.number)


def _add_by_distance(
    block: Block,
    truth: Floats,
    signed_error: Floats,
    error: Floats,
    sigma: Floats,
    is_covered: NDArray,
    indices: Mapping[str, Integers],
) -> None:
    place = DISTANCE.index(truth)
    values = (None, signed_error, error, sigma, *is_covered)
    for name, weights in zip(_DISTANCE_SUMS, values, strict=True):
        block[f"distance.{name}"] = np.bincount(place, weights, DISTANCE.number)
    fine = {"errors": (ERROR, DISTANCE_ERROR), "ratios": (RATIO, DISTANCE_RATIO)}
    for name, (bins, coarser) in fine.items():
        cell = place * coarser.number
        cell += bins.coarse(indices[name], coarser)
        table = block[f"distance.{name}"]
        table[...] = np.bincount(cell, minlength=table.size).reshape(table.shape)


def _add_cells(block: Block, cells: Integers, truth: Floats) -> None:
    log = np.log(truth)
    values = (None, truth, truth * truth, log, log * log)
    for name, weights in zip(_CELL_SUMS, values, strict=True):
        block[f"cell.{name}"] = np.bincount(cells, weights, BLOCK_CELLS)
