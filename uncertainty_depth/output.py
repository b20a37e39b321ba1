# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write outputs where nothing of others is lost: checked before the work, replaced by name."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from uncertainty_depth import atomic, strict
from uncertainty_depth.errors import SourceError

MARKER = ".uncertainty_depth.json"
"""In each output folder: the kind of the folder, and the names that were made in it."""
FORMAT = 1
MAX_MARKER_BYTES = 2**24
STAGING = ".unfinished_"
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OutputFolder:
    """A folder that is written to: new, empty, or one that its marker file calls ours.

    Files are replaced in it one by one, so the folder itself stays, and so does every name that
    the marker does not list.

    Attributes:
        path: of the folder; it need not exist.
        kind: what the folder holds, e.g. "report"; a folder of another kind is refused.
    """

    path: Path
    kind: str

    def check(self, inputs: Iterable[Path] = (), names: Sequence[str] = ()) -> None:
        """Refuse, before the work, a folder that cannot be written to without loss.

        Args:
            inputs: files and folders that are read, none of which may be the output.
            names: what will be made in the folder, as far as it is known.

        Raises:
            SourceError: the path is an input, the current folder or a parent of it, a link or no
                folder; the folder holds files and no marker of this kind; a name in `names` is
                another's file; or the folder is not writable.
        """
        path = self.path.absolute()
        try:
            if path.is_symlink():
                raise self._refusal("is a link; expected the path of a folder, or a new path")
            if path.exists() and not path.is_dir():
                kind = "a file" if path.is_file() else "a device, a pipe or a socket"
                raise self._refusal(f"is {kind}; expected a folder, or a new path")
            if path.exists():
                here = Path.cwd()
                if any(path.samefile(each) for each in (here, *here.parents)):
                    raise self._refusal(
                        f"is the current folder or holds it ({here}), as an empty path does; "
                        "expected another folder"
                    )
                if any(given.exists() and given.samefile(path) for given in inputs):
                    raise self._refusal("is an input; expected another folder")
            self._refuse_foreign(names, self._checked_names())
            _probe(path)
        except OSError as error:
            raise SourceError(f"cannot write to {path}: {error.strerror or error}") from error

    def made(self) -> tuple[str, ...]:
        """Return the names in the folder that we made; empty without a marker.

        Raises:
            SourceError: the marker is damaged, or of another kind of folder.
        """
        try:
            content = strict.read_json_file(self.path / MARKER, MAX_MARKER_BYTES)
            number, kind, made = (content[key] for key in ("format", "kind", "made"))
        except FileNotFoundError:
            return ()
        except (OSError, strict.FormatError, TypeError, KeyError, IndexError) as error:
            raise self._refusal(
                f"has a {MARKER} that cannot be read ({error}); expected another folder"
            ) from error
        if (number, kind) != (FORMAT, self.kind):
            raise self._refusal(
                f"is a folder of kind {kind!r}, format {number!r}; expected kind {self.kind!r}, "
                f"format {FORMAT}, or another folder"
            )
        if not isinstance(made, list) or not all(map(_is_plain, made)):
            raise self._refusal(f"has a {MARKER} that lists no names; expected another folder")
        return tuple(made)

    def add(self, name: str) -> Path:
        """Return the path of a name in the folder, from now on ours to write and to replace.

        The folder is created if missing.

        Raises:
            SourceError: the name is another's file.
        """
        made = self.made()
        self._refuse_foreign([name], made)
        if name not in made:
            self._mark((*made, name))
        return self.path / name

    @contextmanager
    def replacing(self, last: str, keep: Sequence[str] = ()) -> Iterator[Path]:
        """Yield a new folder whose files replace all of ours in this one on leaving.

        Left with an exception, what was there is unchanged. While files are being replaced, the
        folder has no `last`: whoever reads that file first never meets two runs' files mixed.

        Args:
            last: name of the file that makes the others a whole.
            keep: names of ours that stay.

        Raises:
            SourceError: a name is another's file; the new files are then kept beside it.
            OSError: the files cannot be written.
        """
        is_new = not self.path.exists()
        before = self.made()
        staging = self.path / f"{STAGING}{secrets.token_hex(4)}"
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

    def _checked_names(self) -> tuple[str, ...]:
        """Return `made`; raise `SourceError` if the folder holds files and no marker."""
        holds_files = self.path.is_dir() and any(self.path.iterdir())
        if holds_files and not os.path.lexists(self.path / MARKER):
            raise self._refusal(
                f"holds files, and no {MARKER} to say which of them a run wrote (earlier versions "
                "wrote none); expected an empty folder, or a new path"
            )
        return self.made()

    def _refuse_foreign(self, names: Iterable[str], made: Sequence[str]) -> None:
        for name in names:
            if name not in made and os.path.lexists(self.path / name):
                raise self._refusal(
                    f"holds a {name} that no run of ours wrote; expected another folder"
                )

    def _mark(self, names: Iterable[str]) -> None:
        content = {"format": FORMAT, "kind": self.kind, "made": sorted({*names})}
        strict.write_json(self.path / MARKER, content)

    def _refusal(self, sentence: str) -> SourceError:
        return SourceError(f"cannot write to {self.path}: it {sentence}")


def remove(path: Path) -> None:
    """Remove what we made: a file, or of a folder what its marker lists, and the folder if empty.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if path.name.startswith(STAGING):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        made = strict.read_json_file(path / MARKER, MAX_MARKER_BYTES)["made"]
    except (OSError, strict.FormatError, TypeError, KeyError):
        return  # without a marker nothing in it is ours
    for name in filter(_is_plain, made):
        remove(path / name)
    (path / MARKER).unlink()
    with suppress(OSError):  # others have files in it
        path.rmdir()


def _is_plain(name: object) -> bool:
    """Whether a name leads to a place in the folder and nowhere else."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..", MARKER)
        and "/" not in name
        and "\0" not in name
    )


def _probe(path: Path) -> None:
    """Raise `OSError` unless a folder can be made in the nearest existing folder."""
    existing = next(each for each in (path, *path.parents) if os.path.lexists(each))
    probe = existing / f".{secrets.token_hex(4)}"
    probe.mkdir()
    probe.rmdir()
