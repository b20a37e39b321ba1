"""From a camera image to depth and its standard deviation."""

import uncertainty_depth.network  # noqa: F401  says which library is missing
