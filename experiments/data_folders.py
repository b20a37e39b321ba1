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
        folder: where it lies in the folder that the environment names.
        contents: what its folder holds.
    """

    title: str
    folder: str
    contents: str

    def default_folder(self) -> Path | None:
        """Return its folder in the one that the environment names; None where it names none."""
        data = os.environ.get(VARIABLE)
        return Path(data) / self.folder if data else None

    def find(self, folder: Path | None) -> Path:
        """Return the folder, or if None the default one.

        Raises:
            SourceError: no folder is named, here or in the environment, or it is missing.
        """
        folder = self.default_folder() if folder is None else folder
        expected = f"expected --data DIR with {self.contents}"
        if folder is None:
            raise SourceError(
                f"no {self.title}: neither --data nor {VARIABLE} is given; {expected}"
            )
        if not folder.is_dir():
            raise SourceError(f"no such folder of {self.title}: {folder}; {expected}")
        return folder


NYU = DataSet("NYU Depth v2", "nyuv2", "rgb/, depth/, train.txt and test.txt")
CAMVID = DataSet("CamVid", "camvid", "train/, trainannot/, test/ and testannot/")
NYU_AND_KITTI = DataSet("data", "", f"{NYU.folder}/ and, for the part on KITTI, kitti_raw/")
