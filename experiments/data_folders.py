# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where the data sets of the experiments lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from uncertainty_depth.errors import SourceError

VARIABLE = "UNCERTAINTY_DEPTH_DATA"


@dataclass(frozen=True)
class DataSet:
    """A data set of the experiments.

    Attributes:
        title: its name.
        folder: its place in the folder of the data sets.
        contents: what its folder holds.
    """

    title: str
    folder: str
    contents: str

    def existing(self, data: Path | None) -> Path | None:
        """Return its folder in that of the data sets, None if there is none.

        Args:
            data: folder of the data sets; None takes the one that the environment names.
        """
        if data is None and VARIABLE in os.environ:
            data = Path(os.environ[VARIABLE])
        return data / self.folder if data and (data / self.folder).is_dir() else None

    def find(self, data: Path | None) -> Path:
        """Return its folder in that of the data sets, as `existing` does.

        Raises:
            SourceError: no folder is named, here or in the environment, or it is missing.
        """
        if (folder := self.existing(data)) is not None:
            return folder
        expected = f"expected --data DIR with {self.folder}/ in it, which has {self.contents}"
        named = data or os.environ.get(VARIABLE)
        if named is None:
            raise SourceError(
                f"no {self.title}: neither --data nor {VARIABLE} is given; {expected}"
            )
        raise SourceError(f"no {self.title}: {Path(named) / self.folder} is missing; {expected}")


NYU = DataSet("NYU Depth v2", "nyuv2", "rgb/, depth/, train.txt and test.txt")
KITTI = DataSet("KITTI", "kitti_raw", "2011_*/2011_*_sync/")
CAMVID = DataSet("CamVid", "camvid", "train/, trainannot/, test/ and testannot/")
RGBD = DataSet("RGB-D drives", "rgbd", "hololens/ and kitchen/, each with poses.txt")
