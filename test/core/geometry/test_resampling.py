# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncertainty_depth.core.geometry.resampling import resample_depth

SIZES = st.integers(1, 23)


def naive(depth: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return for each cell the depth of the known pixel nearest to its centre.

    Only pixels that hold the centre or are centred in the cell count; ties go to the upper left.
    """
    rows, columns = depth.shape
    result = np.full((height, width), np.nan, np.float32)
    for y in range(height):
        for x in range(width):
            centre = ((y + 0.5) * rows / height, (x + 0.5) * columns / width)
            held = (int(centre[0]), int(centre[1]))
            found = [] if np.isnan(depth[held]) else [(-1.0, *held)]
            for v, u in np.argwhere(~np.isnan(depth)):
                if int((v + 0.5) * height / rows) == y and int((u + 0.5) * width / columns) == x:
                    found.append(((v + 0.5 - centre[0]) ** 2 + (u + 0.5 - centre[1]) ** 2, v, u))
            if found:
                result[y, x] = depth[min(found)[1:]]
    return result


@settings(max_examples=40, deadline=None)
@given(
    rows=SIZES,
    columns=SIZES,
    width=SIZES,
    height=SIZES,
    known=st.sampled_from([0.03, 0.3, 1.0]),
    seed=st.integers(0, 9),
)
def test_each_cell_takes_the_known_pixel_nearest_to_its_centre(
    rows, columns, width, height, known, seed
):
    rng = np.random.default_rng(seed)
    depth = np.where(
        rng.random((rows, columns)) < known,
        rng.permutation(rows * columns).reshape(rows, columns) + 1.0,
        np.nan,
    )
    np.testing.assert_array_equal(
        resample_depth(depth, width, height), naive(depth, width, height)
    )


@pytest.mark.parametrize("unknown", [np.nan, np.inf, -np.inf, 0.0, -1.0])
def test_what_is_no_depth_is_unknown(unknown):
    assert np.isnan(resample_depth(np.full((8, 8), unknown), 4, 4)).all()
