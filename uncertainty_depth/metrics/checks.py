"""What every exact function asks of its arguments, in one sentence each."""

from __future__ import annotations

import math
import numbers
from typing import Any

from uncertainty_depth.metrics.arrays import Array, Arrays, arrays_of


def flat(**arguments: Any) -> tuple[Arrays, list[Array]]:
    """The array operations and the arguments as float64, checked to be flat, of one length and free of NaN and infinity.

    Raises:
        ValueError: naming the argument, what was found and what was expected.
    """
    xp = arrays_of(*arguments.values())
    values = [floats(xp, name, value) for name, value in arguments.items()]
    first = next(iter(arguments))
    for name, value in zip(arguments, values, strict=True):
        if value.ndim != 1:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; expected a flat array of valid pixels (see valid_pixels)"
            )
        if len(value) != len(values[0]):
            raise ValueError(
                f"{name} has {len(value)} elements; expected {len(values[0])}, as many as {first}"
            )
        if len(value) and not math.isfinite(float(value.sum())):
            _finite(name, value)
    return xp, values


def floats(xp: Arrays, name: str, values: Any) -> Array:
    """As float64.

    Raises:
        ValueError: naming the argument that holds something else.
    """
    try:
        return xp.floats(values)
    except (TypeError, ValueError) as error:
        found = repr(values)
        raise ValueError(
            f"{name} is {found[:60]}{'...' * (len(found) > 60)}; expected an array of numbers"
        ) from error


def _finite(name: str, value: Array) -> None:
    """Finite values can have an infinite sum: look at the extremes before refusing."""
    for extreme in (float(value.min()), float(value.max())):
        if not math.isfinite(extreme):
            raise ValueError(f"{name} contains {extreme}; expected finite values")


def at_least_zero(**arguments: Array) -> None:
    """Refuse negative values."""
    for name, value in arguments.items():
        if len(value) and float(value.min()) < 0:
            raise ValueError(f"{name} contains {float(value.min()):g}; expected no negative value")


def above_zero(**arguments: Array) -> None:
    """Refuse values that are not positive."""
    for name, value in arguments.items():
        if len(value) and float(value.min()) <= 0:
            raise ValueError(f"{name} contains {float(value.min()):g}; expected positive values")


def share(name: str, value: float) -> float:
    """A number in (0, 1]."""
    if not (isinstance(value, numbers.Real) and 0 < value <= 1):
        raise ValueError(f"{name} is {value!r}; expected a number in (0, 1]")
    return float(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few names."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")
    return value
