"""Learned Error (Moukari et al. 2019): a second network, trained to predict the absolute error of the first."""

from __future__ import annotations

import torch
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty.estimator import Place
from uncertainty_depth.uncertainty.moments import Estimate

ERROR = "error"
DEPTH = "depth"


class LearnedError:
    """Depth of the first network; sigma is the error that the second expects, as it is: the size is left to calibration."""

    def __init__(self, error: DepthNetwork, depth: DepthNetwork) -> None:
        self.networks = [error, depth]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> LearnedError:
        """Both of the model's members.

        Raises:
            ModelError: the model has no such members.
        """
        if not {ERROR, DEPTH} <= set(model.members):
            raise ModelError(
                f"learned_error needs members {ERROR!r} and {DEPTH!r}, {model.path} has {', '.join(model.members)}; expected another method"
            )
        error, depth = model.load_all([ERROR, DEPTH])
        return cls(place(error), place(depth))

    def passes(self, config: PredictorConfig) -> int:
        """One of each network."""
        return 1

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """The error is learned as a whole."""
        return ("total",)

    @torch.inference_mode()
    def estimate(self, image: Tensor, stamp_ns: int, config: PredictorConfig) -> Estimate:
        """See `Estimator`; nothing is random."""
        error, depth = self.networks
        features = depth.encode(image)
        shared = features if error.encoder is depth.encoder else error.encode(image)
        depth_m, error_m = (
            network.decode(maps, image.shape[-2:]).depth_m[0, 0]
            for network, maps in ((depth, features), (error, shared))
        )
        return Estimate(depth_m, torch.zeros_like(depth_m), error_m.square())
