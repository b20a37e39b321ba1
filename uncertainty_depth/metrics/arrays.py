"""The few array operations that the metrics need, for NumPy arrays and for torch tensors on any device.

Everything else is written with operators and methods that both have. Arrays stay where they are; only scalars and curves of at most a few hundred
points come back, as floats and NumPy arrays. All arithmetic is float64.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # NDArray | torch.Tensor
Floats = NDArray[np.float64]


class NumPyArrays:
    """Operations on NumPy arrays."""

    lib: Any = np

    def floats(self, values: Any) -> Array:
        """As float64, without a copy where it is float64 already."""
        return np.asarray(values, dtype=np.float64)

    def integers(self, values: Array) -> Array:
        """Cut off to int64."""
        return values.astype(np.int64)

    def local(self, values: Array) -> NDArray:
        """A small result as a NumPy array."""
        return np.asarray(values)

    def pick(self, values: Array, indices: NDArray[np.int64]) -> NDArray:
        """A few elements as a NumPy array."""
        return values[indices]

    def count(self, mask: Array) -> int:
        """How many are true."""
        return int(np.count_nonzero(mask))

    def sort(self, values: Array) -> Array:
        """Ascending."""
        return np.sort(values)

    def ordered(self, values: Array) -> tuple[Array, Array]:
        """Stable ascending order, and the values in it.

        NumPy's unstable sorts are vectorised and many times faster than its stable one, and its sort is faster than its argsort: where (value, index)
        pairs fit into 64 bits, sort those; elsewhere sort and repair the ties.
        """
        if values.size and (values.size <= PACKED or _is_float32(values)) and values.min() >= 0:
            order = _argsort_packed(values)
            ascending = values.take(order)
            if not (ascending[1:] < ascending[:-1]).any():
                return order, ascending
        order = np.argsort(values)
        return _repair_ties(order, values.take(order)), values.take(order)

    def argsort(self, values: Array) -> Array:
        """Stable ascending order."""
        return self.ordered(values)[0]

    def smallest(self, values: Array, number: int) -> float:
        """The order statistic: the `number`-th smallest, counted from 1."""
        return float(np.partition(values, number - 1)[number - 1])

    def positions(self, ascending: Array, values: Any, side: str) -> NDArray[np.int64]:
        """`searchsorted` of a few values in many."""
        return np.searchsorted(ascending, values, side=side)

    def prefix_sums(self, values: Array, counts: NDArray[np.int64]) -> Floats:
        """Sums of the first `counts` values, for a few counts."""
        order = np.argsort(counts, axis=None)
        ends = counts.reshape(-1)[order]
        starts = np.concatenate(([0], ends[:-1]))
        segments = np.zeros(ends.size)
        before_end = starts < ends[-1]
        if before_end.any():
            segments[before_end] = np.add.reduceat(values[: ends[-1]], starts[before_end])
            segments[starts == ends] = 0.0  # reduceat gives an element for an empty segment
        sums = np.empty(ends.size)
        sums[order] = np.cumsum(segments)
        return sums.reshape(counts.shape)

    def running_maximum(self, values: Array) -> Array:
        """Largest so far."""
        return np.maximum.accumulate(values)

    def bits(self, values: Array) -> Array:
        """The float64 as the integers of the same bits: for values >= 0 they order alike."""
        return values.view(np.int64)

    def zeros(self, shape: tuple[int, ...], kind: str) -> Array:
        """Zeros of kind "int64" or "float64"."""
        return np.zeros(shape, dtype=kind)

    def add_at(self, table: Array, index: Array, values: Array | int) -> None:
        """Add values, or a number, to the table's bins."""
        np.add.at(table, index, values)

    def sums_of(self, index: Array, values: Array, number: int) -> Array:
        """Sum of the values in each of a few bins."""
        return np.bincount(index, values, number)

    def maximum_at(self, table: Array, index: Array, values: Array) -> None:
        """Raise the table's bins to the values."""
        np.maximum.at(table, index, values)

    def limit_(self, index: Array, last: int) -> Array:
        """Limit integers to 0 ... last, in place."""
        np.maximum(index, 0, out=index)
        return np.minimum(index, last, out=index)

    def average_ranks(self, ascending: Array) -> Array:
        """Ranks 0 ... N - 1 of sorted values, less their mean; ties share the mean of theirs."""
        middle = (ascending.size - 1) / 2
        ranks = np.arange(-middle, middle + 0.5)
        members, first, last = _tie_groups(ascending)
        if members.size:
            ranks[members] = np.repeat((first + last) / 2 - middle, last - first + 1)
        return ranks


class TorchArrays:
    """The same operations on torch tensors of one device."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.lib = torch
        self.device = device

    def floats(self, values: Any) -> Array:
        """As float64 on this device."""
        return self.lib.as_tensor(values, device=self.device).detach().to(self.lib.float64)

    def integers(self, values: Array) -> Array:
        """Cut off to int64."""
        return values.to(self.lib.int64)

    def local(self, values: Array) -> NDArray:
        """A small result as a NumPy array."""
        return values.cpu().numpy() if isinstance(values, self.lib.Tensor) else np.asarray(values)

    def pick(self, values: Array, indices: NDArray[np.int64]) -> NDArray:
        """A few elements as a NumPy array."""
        return self.local(values[self.lib.as_tensor(indices, device=self.device)])

    def count(self, mask: Array) -> int:
        """How many are true."""
        return int(mask.sum())

    def sort(self, values: Array) -> Array:
        """Ascending."""
        return self.lib.sort(values).values

    def ordered(self, values: Array) -> tuple[Array, Array]:
        """Stable ascending order, and the values in it."""
        ascending, order = self.lib.sort(values, stable=True)
        return order, ascending

    def argsort(self, values: Array) -> Array:
        """Stable ascending order."""
        return self.ordered(values)[0]

    def smallest(self, values: Array, number: int) -> float:
        """The order statistic; sorted, as `torch.quantile` refuses more than 2^24 values."""
        return float(self.sort(values)[number - 1])

    def positions(self, ascending: Array, values: Any, side: str) -> NDArray[np.int64]:
        """`searchsorted` of a few values in many."""
        return self.local(self.lib.searchsorted(ascending, self.floats(values), side=side))

    def prefix_sums(self, values: Array, counts: NDArray[np.int64]) -> Floats:
        """Sums of the first `counts` values, for a few counts."""
        sums = self.lib.cumsum(self.floats(values), dim=0)
        return np.where(counts > 0, self.pick(sums, np.maximum(counts - 1, 0)), 0.0)

    def running_maximum(self, values: Array) -> Array:
        """Largest so far."""
        return self.lib.cummax(values, dim=0).values

    def bits(self, values: Array) -> Array:
        """The float64 as the integers of the same bits: for values >= 0 they order alike."""
        return values.view(self.lib.int64)

    def zeros(self, shape: tuple[int, ...], kind: str) -> Array:
        """Zeros of kind "int64" or "float64"."""
        return self.lib.zeros(shape, dtype=getattr(self.lib, kind), device=self.device)

    def add_at(self, table: Array, index: Array, values: Array | int) -> None:
        """Add values, or a number, to the table's bins."""
        values = self.lib.full_like(index, values) if isinstance(values, int) else values
        table.index_add_(0, index, values)

    def sums_of(self, index: Array, values: Array, number: int) -> Array:
        """Sum of the values in each of a few bins."""
        return self.lib.bincount(index, values, number)

    def maximum_at(self, table: Array, index: Array, values: Array) -> None:
        """Raise the table's bins to the values."""
        table.scatter_reduce_(0, index, values, "amax")

    def limit_(self, index: Array, last: int) -> Array:
        """Limit integers to 0 ... last, in place."""
        return index.clamp_(0, last)

    def average_ranks(self, ascending: Array) -> Array:
        """Ranks 0 ... N - 1 of sorted values, less their mean; ties share the mean of theirs."""
        _, counts = self.lib.unique_consecutive(ascending, return_counts=True)
        means = self.lib.cumsum(counts, dim=0) - (counts + len(ascending)).to(self.lib.float64) / 2
        return self.lib.repeat_interleave(means, counts)


Arrays = NumPyArrays | TorchArrays
NUMPY = NumPyArrays()
PACKED = 1 << 17
"""Up to so many float64 hardly two differ only in the bits that sorting them with their index cuts off."""


def arrays_of(*values: Any) -> Arrays:
    """The operations for these arguments: torch's when one of them is a tensor (on its device), NumPy's otherwise."""
    torch = sys.modules.get("torch")
    for value in values:
        if torch is not None and isinstance(value, torch.Tensor):
            return TorchArrays(torch, value.device)
    return NUMPY


def _is_float32(values: Floats) -> bool:
    """Whether the values are no finer than float32."""
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32).astype(np.float64) == values).all())


def _argsort_packed(values: Floats) -> NDArray[np.int64]:
    """Stable order of non-negative float64, but for values that agree in all leading bits that the index leaves room for.

    The bits of a float order like integers. Up to 2^17 values 35 bits of the mantissa are left, up to 2^29 the 23 of a float32.
    """
    low = np.uint64((1 << (values.size - 1).bit_length()) - 1)
    packed = values.view(np.uint64) << np.uint64(1)  # without the sign, which is that of 0 at most
    packed &= ~low
    packed |= np.arange(values.size, dtype=np.uint64)
    packed.sort()
    packed &= low
    return packed.view(np.int64)


def _tie_groups(
    ascending: Floats,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Positions that are in a group of equals, and the first and last position of each group."""
    equal = np.flatnonzero(ascending[1:] == ascending[:-1])
    if not equal.size:
        return equal, equal, equal
    ends = np.flatnonzero(np.diff(equal) > 1)
    first = equal[np.concatenate(([0], ends + 1))]
    last = equal[np.concatenate((ends, [equal.size - 1]))] + 1
    lengths = last - first + 1
    members = np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    return members, first, last


def _repair_ties(order: NDArray[np.int64], ascending: Floats) -> NDArray[np.int64]:
    """Put equal values in the order of their index."""
    members, _, _ = _tie_groups(ascending)
    if members.size:
        order[members] = order[members][np.lexsort((order[members], ascending[members]))]
    return order
