"""Where frames come from: one notation for bags, NYU folders, KITTI drives and the synthetic world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from uncertainty_depth.config import SourceConfig, SynthesisConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.options import element_type, from_mapping
from uncertainty_depth.records import Frame, Skipped


class Source(Protocol):
    """Frames in order. Iterating starts from the first frame each time, decodes lazily and holds few frames at once.

    Attributes:
        name: what a person calls this source.
        notes: sentences about what was lost or assumed, complete once the source has been iterated.
    """

    name: str
    notes: list[str]

    def __len__(self) -> int:
        """Camera frames expected: exact where the source knows it, else an estimate."""

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Each camera image exactly once, as a frame or as the reason why it is none."""


def open_source(notation: str, config: SourceConfig) -> Source:
    """Open what `notation` names: a bag's path, `nyu:DIR[:train|:test]`, `kitti:DRIVE_DIR` or `synthetic:[option=value,...]`.

    Raises:
        SourceError: where it does not exist, cannot be read, or lacks what frames are made of.
        ConfigError: for an option of `synthetic:` that is unknown or out of range.
    """
    kind, colon, rest = notation.partition(":")
    if colon and kind in _OPENERS:
        return _OPENERS[kind](rest, config)
    return _bag(notation, config)


def _bag(path: str, config: SourceConfig) -> Source:
    from uncertainty_depth.data.bag import BagSource

    if not Path(path).exists():
        raise SourceError(f"no such bag: {path}; expected a bag's path, nyu:DIR, kitti:DRIVE_DIR or synthetic:")
    return BagSource(Path(path), config)


def _nyu(rest: str, config: SourceConfig) -> Source:
    from uncertainty_depth.data.nyu import SPLITS, NyuSource

    folder, _, split = rest.rpartition(":")
    return NyuSource(Path(folder), split) if split in SPLITS else NyuSource(Path(rest), "")


def _kitti(rest: str, config: SourceConfig) -> Source:
    from uncertainty_depth.data.kitti import KittiSource

    return KittiSource(Path(rest), config)


def _synthetic(rest: str, config: SourceConfig) -> Source:
    from uncertainty_depth.data.synthetic import SyntheticSource

    return SyntheticSource(from_mapping(SynthesisConfig, _options(rest)), config)


def _options(text: str) -> dict[str, object]:
    """`worlds=4,noise=0.5` as typed values of `SynthesisConfig`."""
    values: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise SourceError(f"synthetic: has {part!r}; expected option=value, separated by commas")
        values[key] = _parsed(key, value)
    return values


def _parsed(key: str, value: str) -> object:
    if key not in SynthesisConfig.__dataclass_fields__:
        return value  # from_mapping says what is known
    kind = element_type(SynthesisConfig, key)
    try:
        return {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        raise SourceError(f"synthetic: has {key}={value}; expected {kind.__name__}") from None


_OPENERS = {"nyu": _nyu, "kitti": _kitti, "synthetic": _synthetic}
