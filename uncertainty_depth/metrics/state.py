"""The bounded state of `OnlineMetrics`: named tables of fixed size that add up, with a safe file format."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from uncertainty_depth import atomic
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics.arrays import NUMPY, Array, Arrays, Floats
from uncertainty_depth.metrics.bins import Bins, Window
from uncertainty_depth.metrics.calibration import LEVELS
from uncertainty_depth.metrics.frame import STATISTICS
from uncertainty_depth.metrics.intervals import interval_edges, interval_index
from uncertainty_depth.options import from_mapping, to_mapping

FORMAT = 2
NO_ROW = 1 << 40
"""Least bin where none was seen."""
LIMIT_BYTES = 8_000_000
ERROR = Bins(-24, 20, 10)
RATIO = Bins(-20, 20, 10)
DEPTH_RATIO = Bins(-20, 8, 10)
RELATIVE = Bins(-20, 12, 9)
FACTOR = Bins(0, 24, 9)
SIGMA = Bins(-24, 16, 9)
DEPTH = Bins(-10, 14, 9)
JOINT_ERROR = Bins(-14, 6, 4)
JOINT = {"sigma": Window(Bins(-19, 12, 9), 256), "depth": Window(Bins(-6, 9, 9), 256)}
"""Rows of the joint histograms with the error."""
INTERVAL_OCTAVES = {"error": (-12, 8), "ratio": (-10, 10)}
INTERVAL_CELLS = 137_000
"""Cells of each of the two tables of counts per depth interval."""

KEPT = ("relative", "squared", "inaccurate")
HISTOGRAMS: dict[str, tuple[Bins, tuple[str, ...]]] = {
    "error": (ERROR, ("squared",)),
    "relative": (RELATIVE, ("relative",)),
    "factor": (FACTOR, ()),
    "sigma": (SIGMA, KEPT),
    "depth": (DEPTH, KEPT),
    "ratio": (RATIO, ("sigma", "error", "max_error")),
    "depth_ratio": (DEPTH_RATIO, ("depth", "error", "max_error")),
}
"""What is binned by what: a count, and for each name a sum (a maximum for max_error) in each bin."""

SCALARS = ("mae", "abs_rel", "sq_rel", "squared", "log", "squared_log", "a1", "a2", "a3")
RANKED_SCALARS = ("sigma", "log_sigma", "squared_ratio", "finite_squared_ratio", "finite")
EXTREMES = ("error", "ratio", "depth_ratio")


@dataclass(frozen=True)
class Intervals:
    """The depth intervals of a config, and the bins that fit the memory in each.

    Attributes:
        width: metres.
        first: number of the interval that holds the least depth scored.
        number: how many.
        error: bins of the error.
        ratio: bins of error / sigma.
    """

    width: float
    first: int
    number: int
    error: Bins
    ratio: Bins

    @classmethod
    def of(cls, config: EvaluationConfig) -> Intervals:
        """As finely binned as the memory allows.

        Raises:
            ConfigError: a limit is not finite, the limits are reversed, or there are more intervals than fit.
        """
        _check_limits(config)
        first, last = (
            np.floor(depth / config.depth_interval)
            for depth in (config.min_depth, config.max_depth)
        )
        number = last - first + 1
        low, high = INTERVAL_OCTAVES["error"]
        most = INTERVAL_CELLS // (((high - low) << 1) + 2)
        if not number <= most:
            raise ConfigError(
                f"depth_interval is {config.depth_interval}; expected at least {_fitting(config, most)} for depths from min_depth, "
                f"{config.min_depth}, to max_depth, {config.max_depth}: the state holds {most} intervals"
            )
        first, number = int(first), int(number)
        bits = next(
            bits
            for bits in range(9, 0, -1)
            if (((high - low) << bits) + 2) * number <= INTERVAL_CELLS
        )
        return cls(
            config.depth_interval,
            first,
            number,
            *(Bins(*INTERVAL_OCTAVES[name], bits) for name in ("error", "ratio")),
        )

    @property
    def edges(self) -> Floats:
        """(number + 1,) metres."""
        return interval_edges(self.first, self.number, self.width)

    def index(self, xp: Arrays, ground_truth: Array) -> Array:
        """Number of the interval that each pixel lies in."""
        return xp.limit_(
            interval_index(xp, ground_truth, self.width) - self.first, self.number - 1
        )


def _check_limits(config: EvaluationConfig) -> None:
    for name in ("min_depth", "max_depth", "depth_interval"):
        value = getattr(config, name)
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"{name} is {value}; expected a finite number of metres, not negative"
            )
    if config.min_depth >= config.max_depth:
        raise ConfigError(
            f"min_depth is {config.min_depth}; expected less than max_depth, {config.max_depth}"
        )
    if not config.depth_interval:
        raise ConfigError(f"depth_interval is {config.depth_interval}; expected more than 0")


def _fitting(config: EvaluationConfig, most: int) -> float:
    """A depth interval with which these depths fit, two digits, rounded up; the first and the last interval may be cut."""
    least = (config.max_depth - config.min_depth) / (most - 2)
    unit = 10.0 ** (math.floor(math.log10(least)) - 1)
    return float(f"{math.ceil(least / unit) * unit:.2g}")


def layout(config: EvaluationConfig) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and kind of every table."""
    intervals = Intervals.of(config)
    tables: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, (bins, sums) in HISTOGRAMS.items():
        tables[f"{name}.count"] = ((bins.number,), "int64")
        tables.update({f"{name}.{item}": ((bins.number,), "float64") for item in sums})
    tables.update(
        {
            f"joint.{name}": ((window.rows * JOINT_ERROR.number,), "int64")
            for name, window in JOINT.items()
        }
    )
    tables.update(
        {f"interval.{item}": ((intervals.number,), "float64") for item in ("error", "sigma")}
    )
    tables["interval.error_bins"] = ((intervals.number * intervals.error.number,), "int64")
    tables["interval.ratio_bins"] = ((intervals.number * intervals.ratio.number,), "int64")
    return tables


SMALL = {
    "counts": ((2,), "int64"),
    "covered": ((len(LEVELS),), "int64"),
    "sums": ((len(SCALARS),), "float64"),
    "sigma_sums": ((len(RANKED_SCALARS),), "float64"),
    "depth_sums": ((len(RANKED_SCALARS),), "float64"),
    "areas": ((3, 2, len(STATISTICS)), "float64"),
    "least": ((len(EXTREMES),), "float64"),
    "greatest": ((len(EXTREMES),), "float64"),
    "least_row": ((len(JOINT),), "int64"),
    "greatest_row": ((len(JOINT),), "int64"),
}
"""Figures of all pixels, always NumPy's: [pixels, frames], coverage, sums, per-image AUSE and AURG (method, baselines), extremes.
Those of the rows are bins of `JOINT`."""
JOINED = {
    "least": np.minimum,
    "greatest": np.maximum,
    "least_row": np.minimum,
    "greatest_row": np.maximum,
}
"""How those that do not add up are merged."""


class State:
    """Tables that live where the data do, and a few numbers that live here.

    Attributes:
        xp: operations on the tables: NumPy's or those of a torch device.
        tables: flat arrays by name, see `layout`.
        small: NumPy arrays by name, see `SMALL`.
    """

    def __init__(self, config: EvaluationConfig, xp: Arrays = NUMPY) -> None:
        self.xp = xp
        self.tables: dict[str, Array] = {
            name: xp.zeros(shape, kind) for name, (shape, kind) in layout(config).items()
        }
        self.small: dict[str, Any] = {
            name: np.zeros(shape, kind) for name, (shape, kind) in SMALL.items()
        }
        self.small["least"] += np.inf
        self.small["greatest"] -= np.inf
        self.small["least_row"] += NO_ROW
        self.small["greatest_row"] -= 1

    def __getstate__(self) -> dict[str, Any]:
        """For a copy or a pickle: everything as NumPy arrays, wherever the tables live."""
        return {"tables": self.local(), "small": self.small}

    def __setstate__(self, content: dict[str, Any]) -> None:
        """A copy's tables live here."""
        self.xp = NUMPY
        self.tables = content["tables"]
        self.small = content["small"]

    @property
    def nbytes(self) -> int:
        """Memory of all tables."""
        return sum(value.nbytes for value in (*self.tables.values(), *self.small.values()))

    def move(self, xp: Arrays) -> None:
        """Bring the tables to where the data are."""
        if getattr(xp, "device", None) == getattr(self.xp, "device", None):
            return
        local = self.local()
        self.tables = (
            local
            if xp is NUMPY
            else {name: xp.lib.as_tensor(value, device=xp.device) for name, value in local.items()}
        )
        self.xp = xp

    def local(self) -> dict[str, np.ndarray]:
        """The tables as NumPy arrays."""
        return {
            name: np.array(self.xp.local(value)) if self.xp is not NUMPY else value
            for name, value in self.tables.items()
        }

    def merge(self, other: State) -> None:
        """Add what another state has seen."""
        brought = other.local()
        for name in JOINT:
            if other.span(name)[0] != NO_ROW:
                self.widen(name, other.span(name))
                brought[f"joint.{name}"] = _widened(
                    name, brought[f"joint.{name}"], other.span(name), self.span(name)
                )
        for name, table in self.tables.items():
            addition = self._here(brought[name])
            if name.endswith("max_error"):
                self.tables[name] = self.xp.lib.maximum(table, addition)
            else:
                table += addition
        for name, values in self.small.items():
            self.small[name] = JOINED.get(name, np.add)(values, other.small[name])

    def span(self, name: str) -> np.ndarray:
        """Least and greatest bin seen of a key of the joint histograms."""
        place = list(JOINT).index(name)
        return np.array([self.small[f"{side}_row"][place] for side in ("least", "greatest")])

    def widen(self, name: str, span: np.ndarray) -> None:
        """Make room for these bins in a joint histogram, in coarser rows where that takes it."""
        old, place = self.span(name), list(JOINT).index(name)
        wider = np.array([min(old[0], span[0]), max(old[1], span[1])])
        if old[0] != NO_ROW and JOINT[name].shift(old) != JOINT[name].shift(wider):
            table = np.asarray(self.xp.local(self.tables[f"joint.{name}"]))
            self.tables[f"joint.{name}"] = self._here(_widened(name, table, old, wider))
        self.small["least_row"][place], self.small["greatest_row"][place] = wider

    def _here(self, table: np.ndarray) -> Array:
        return table if self.xp is NUMPY else self.xp.lib.as_tensor(table, device=self.xp.device)


def _widened(name: str, table: np.ndarray, span: np.ndarray, wider: np.ndarray) -> np.ndarray:
    window = JOINT[name]
    return window.widened(table.reshape(window.rows, -1), span, wider).reshape(-1)


def save_state(state: State, config: EvaluationConfig, path: str | os.PathLike) -> None:
    """Write a state to an `.npz` of plain numbers and its config as JSON, complete or not at all."""
    header = json.dumps({"format": FORMAT, "config": to_mapping(config)})
    with atomic.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, header=np.array(header), **state.local(), **state.small)


def load_state(path: str | os.PathLike) -> tuple[State, EvaluationConfig]:
    """Read what `save_state` wrote; nothing in the file is executed.

    Raises:
        SourceError: there is no such file, it is damaged, of a newer format, or not such a state.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] > FORMAT:
                raise SourceError(
                    f"{path} has format {header['format']}; expected {FORMAT}: it was written by a newer version"
                )
            if header["format"] < FORMAT:
                raise SourceError(
                    f"{path} has format {header['format']}; expected {FORMAT}: an older version wrote it, evaluate again"
                )
            config = from_mapping(EvaluationConfig, header["config"])
            state = State(config)
            for store in (state.tables, state.small):
                store.update({name: _same(name, file[name], like) for name, like in store.items()})
    except FileNotFoundError as error:
        raise SourceError(f"{path} does not exist; expected a saved metrics state") from error
    except SourceError:
        raise
    except Exception as error:  # whatever the parsers of zip, deflate, npy and JSON raise at damaged bytes: zlib.error, TokenError, and more
        raise SourceError(
            f"{path} is no complete metrics state ({error}); expected a file written by OnlineMetrics.save"
        ) from error
    return state, config


def _same(name: str, value: np.ndarray, like: np.ndarray) -> np.ndarray:
    if value.shape != like.shape or value.dtype != like.dtype:
        raise ValueError(
            f"{name} is {value.dtype} of shape {value.shape}; expected {like.dtype} of shape {like.shape}"
        )
    return value
