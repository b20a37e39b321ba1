"""The networks, the hourglass and pretrained depth models, and the folder a trained one lives in."""

import importlib.util

from uncertainty_depth.errors import UncertaintyDepthError

for _library in ("torch", "transformers", "safetensors"):
    if importlib.util.find_spec(_library) is None:
        raise UncertaintyDepthError(
            f"the network needs {_library}, which is not installed; "
            "run: python -m pip install torch transformers safetensors"
        )
