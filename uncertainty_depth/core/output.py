# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write outputs where nothing of others is lost: checked before the work, replaced if ours."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from uncertainty_depth.core import atomic, strict
from uncertainty_depth.core.atomic import UNFINISHED
from uncertainty_depth.core.errors import SourceError

MARK = "written by uncertainty_depth"
"""Stands in the first `MARKED_BYTES` of a file that we wrote."""
MARKED_BYTES = 1024
MARKER = ".uncertainty_depth.json"
"""File in each output folder with the folder's kind, and the names that were made in it."""
FORMAT = 1
MAX_MARKER_BYTES = 2**24
DAMAGED = (strict.FormatError, AttributeError, KeyError, TypeError, ValueError)
"""What reading a marker raises, of any content."""
SAFE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
"""Characters of names that stand in a marker as they are; others, of any encoding, as %C3."""
logger = logging.getLogger(__name__)


def check_apart(paths: Iterable[Path | None]) -> None:
    """Raise `SourceError` if two outputs of a command are the same path; None is none."""
    given = [path for path in paths if path is not None]
    for path in given:
        if [os.path.abspath(other) for other in given].count(os.path.abspath(path)) > 1:
            raise SourceError(f"two outputs are {path}; expected different paths")


@dataclass(frozen=True)
class Output(ABC):
    """A path that is written to: a new one, or one that earlier runs of ours wrote."""

    path: Path

    def check(self, inputs: Iterable[Path] = (), names: Sequence[str] = ()) -> None:
        """Refuse, before the work, a path that cannot be written to without loss.

        The output may be none of `inputs`; `names` are what will be made in a folder, if known.
        """
        read = {_identity(path) for path in inputs} - {None}
        try:
            if self.path.is_symlink():
                raise self._refusal("is a link; expected the path that it leads to, or a new one")
            here = Path.cwd()
            if _identity(self.path) in map(_identity, (here, *here.parents)):
                raise self._refusal(
                    f"is the current folder or holds it ({here}); expected another path"
                )
            if _identity(self.path) in read:
                raise self._refusal("is an input; expected another path")
            for name in names:
                if _identity(self.path / name) in read:
                    raise self._refusal(f"holds the input {name}; expected another path")
            if os.path.lexists(self.path) and not (self.path.is_file() or self.path.is_dir()):
                raise self._refusal("is a device, a pipe or a socket; expected another path")
            self._check_what_is_there(names)
            _probe(self.path.absolute())
        except OSError as error:
            raise SourceError(f"cannot write to {self.path}: {error.strerror or error}") from error

    @abstractmethod
    def _check_what_is_there(self, names: Sequence[str]) -> None:
        """Raise `SourceError` unless what is at the path may be replaced by `names`."""

    def _refusal(self, sentence: str) -> SourceError:
        also = ", which an empty path means too" if self.path == Path() else ""
        return SourceError(f"cannot write to {self.path}{also}: it {sentence}")


@dataclass(frozen=True)
class OutputFile(Output):
    """A file that is written to: new, empty, or with our mark, its kind's, near its beginning."""

    mark: str = MARK

    def _check_what_is_there(self, _: Sequence[str]) -> None:
        if self.path.is_dir():
            raise self._refusal("is a folder; expected the path of a file")
        if self._is_foreign():
            raise self._refusal("is a file that no run of ours wrote; expected another path")

    def _is_foreign(self) -> bool:
        if not os.path.lexists(self.path):
            return False
        with strict.open_file(self.path) as file:
            begin = file.read(MARKED_BYTES)
        return bool(begin) and self.mark.encode() not in begin

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """Yield a temporary path, whose file takes the place of ours on leaving.

        Raises:
            SourceError: the path has become another's; the new file is then kept beside it.
            OSError: the file cannot be written.
        """
        with atomic.replacing(self.path) as temporary:
            yield temporary
            if os.path.lexists(self.path):
                self._keep_clear(temporary)
                logger.info("replaced %s", self.path)

    def _keep_clear(self, temporary: Path) -> None:
        """Raise `SourceError` if others have taken the path; the new file then stays."""
        try:
            self._check_what_is_there(())
        except SourceError as error:
            kept = self.path.with_name(f"{UNFINISHED}{secrets.token_hex(4)}_{self.path.name}")
            shutil.copyfile(temporary, kept)
            raise SourceError(f"{error}; the new file is {kept}") from error

    def write(self, content: bytes) -> None:
        """Write a file that has the mark near its beginning, see `replacing`."""
        if self.mark.encode() not in content[:MARKED_BYTES]:
            raise ValueError(f"the first {MARKED_BYTES} bytes have no {self.mark!r}")
        with self.replacing() as temporary:
            temporary.write_bytes(content)


class NewFolder(Output):
    """A folder that must not exist yet."""

    def _check_what_is_there(self, _: Sequence[str]) -> None:
        if os.path.lexists(self.path):
            raise self._refusal("exists already; expected a new path")


@dataclass(frozen=True)
class EmptyFolder(NewFolder):
    """A folder that does not exist, or holds only hidden files.

    `instead` says what can be done if it is not empty.
    """

    instead: str = "a new path"

    def _check_what_is_there(self, names: Sequence[str]) -> None:
        if not self.path.is_dir():
            super()._check_what_is_there(names)
        elif _holds_files(self.path):
            raise self._refusal(f"is not empty; expected a new folder, or {self.instead}")


@dataclass(frozen=True)
class OutputFolder(Output):
    """A folder that is written to: new, empty, or one that its marker file calls ours.

    Files are replaced in it one by one, so the folder itself stays, and so does every name that
    the marker does not list. `kind` is what it holds, e.g. "report"; another kind is refused.
    """

    kind: str

    def _check_what_is_there(self, names: Sequence[str]) -> None:
        if self.path.is_file():
            raise self._refusal("is a file; expected a folder, or a new path")
        if not self.path.exists():
            return
        if _holds_files(self.path) and not os.path.lexists(self.path / MARKER):
            raise self._refusal(
                f"holds files, and no {MARKER} to say which of them a run wrote (earlier versions "
                "wrote none); expected an empty folder, or a new path"
            )
        self._refuse_foreign(names, self.made())

    def made(self) -> tuple[str, ...]:
        """Return the names in the folder that we made.

        Raise `SourceError` for another's marker.
        """
        try:
            number, kind, names = _read_marker(self.path)
        except FileNotFoundError:
            return ()
        except (OSError, *DAMAGED) as error:
            raise self._refusal(
                f"has a {MARKER} that cannot be read ({error}); expected another folder"
            ) from error
        if (number, kind) != (FORMAT, self.kind):
            raise self._refusal(
                f"is a folder of kind {kind!r}, format {number!r}; expected kind {self.kind!r}, "
                f"format {FORMAT}, or another folder"
            )
        return names

    def claim(self, names: Iterable[str]) -> None:
        """List names in the marker, from now on ours; raise `SourceError` for another's file."""
        claimed = tuple(names)
        with self._locked():
            made = self.made()
            self._refuse_foreign(claimed, made)
            self._mark((*made, *claimed))

    @contextmanager
    def adding(self, names: Sequence[str]) -> Iterator[None]:
        """Claim names that are written one by one until the context is left; others stay."""
        replaced = [name for name in names if os.path.lexists(self.path / name)]
        self.claim(names)
        if replaced:
            logger.info("%d files in %s will be replaced", len(replaced), self.path)
        try:
            yield
        finally:
            with self._locked():
                written = [name for name in self.made() if os.path.lexists(self.path / name)]
                self._mark(written)
            if not written:
                remove(self.path)

    @contextmanager
    def replacing(self, last: str, keep: Sequence[str] = ()) -> Iterator[Path]:
        """Yield a new folder whose files replace all of ours in this one on leaving.

        Left with an exception, what was there is unchanged. While files are being replaced, the
        folder has no `last`: whoever reads that file first never meets two runs' files mixed.

        `last` is the file that makes the others a whole, `keep` are names of ours that stay.
        Raises `SourceError` for another's file, beside which the new ones stay, or `OSError`.
        """
        is_new = not self.path.exists()
        with self._locked():
            before = self.made()
            staging = self.path / f"{UNFINISHED}{secrets.token_hex(4)}"
            self._mark((*before, staging.name))  # a killed run's is known to the next
            staging.mkdir()
            try:
                yield staging
                for path in staging.rglob("*"):
                    atomic.sync(path)
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                with suppress(OSError):  # of a full disk, say: the first error is the one to tell
                    self._mark(before)
                    if is_new:
                        remove(self.path)
                raise
            self._take(staging, before, last, keep)

    def _take(self, staging: Path, before: Sequence[str], last: str, keep: Sequence[str]) -> None:
        names = sorted((path.name for path in staging.iterdir()), key=lambda name: name == last)
        try:
            self._refuse_foreign(names, before)
        except SourceError as error:
            raise SourceError(f"{error}; the new files are in {staging}") from error
        self._mark((*before, staging.name, *names))
        replaced = [name for name in before if name not in keep]
        (self.path / last).unlink(missing_ok=True)
        for name in replaced:
            if name not in names:
                remove(self.path / name)
        for name in names:
            (staging / name).replace(self.path / name)
        staging.rmdir()
        self._mark((*(name for name in before if name in keep), *names))
        if replaced:
            logger.info("replaced the %s in %s", self.kind, self.path)

    def _refuse_foreign(self, names: Iterable[str], made: Sequence[str]) -> None:
        for name in names:
            if name not in made and os.path.lexists(self.path / name):
                raise self._refusal(
                    f"holds a {name} that no run of ours wrote; expected another folder"
                )

    def _mark(self, names: Iterable[str]) -> None:
        made = sorted({quote(name, SAFE, errors="surrogateescape") for name in names})
        content = {"format": FORMAT, "kind": self.kind, "made": made}
        strict.write_json(self.path / MARKER, content)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Create the folder if missing, and wait until no other run writes to it."""
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # a network's file system may have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove what we made: a file, or what a folder's marker lists, and the folder if empty."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if path.name.startswith(UNFINISHED):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        _, _, names = _read_marker(path)
    except (OSError, *DAMAGED):
        return  # without a marker nothing in it is ours
    for name in names:
        remove(path / name)
    (path / MARKER).unlink()
    with suppress(OSError):  # others have files in it
        path.rmdir()


def _read_marker(folder: Path) -> tuple[object, object, tuple[str, ...]]:
    """Return format, kind and names of the marker in a folder; raises `OSError` and `DAMAGED`."""
    content = strict.read_json_file(folder / MARKER, MAX_MARKER_BYTES)
    names = tuple(unquote(name, errors="surrogateescape") for name in content["made"])
    for name in names:
        if name in ("", ".", "..", MARKER) or "/" in name or "\0" in name:
            raise ValueError(f"it lists {name!r}, which is no name of a file")
    return content["format"], content["kind"], names


def _holds_files(folder: Path) -> bool:
    """Whether there is anything in a folder but hidden files, which stay."""
    return any(not path.name.startswith(".") for path in folder.iterdir())


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what is the same for all paths to a file; None if there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _probe(path: Path) -> None:
    """Raise `OSError` unless something can be made at the path, or in the folder that is there."""
    existing = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if path.is_file():
        existing = path.parent
    probe = existing / f"{UNFINISHED}{secrets.token_hex(4)}"
    probe.mkdir()
    probe.rmdir()
