"""Passes that keep their dropout on.

- `mc_dropout` (Gal and Ghahramani 2016): Bernoulli dropout of a fixed rate.
- `concrete_dropout` (Gal et al. 2017): its rate was learned, by the concrete relaxation; here units are dropped for good at that rate.
- `variational_dropout` (Kingma et al. 2015): units are multiplied by N(1, alpha), alpha learned.
"""

from __future__ import annotations

import torch
from torch import Tensor

from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ModelError
from uncertainty_depth.model_folder.folder import ModelFolder
from uncertainty_depth.network.depth_network import DepthNetwork
from uncertainty_depth.uncertainty.estimator import Place, components_of
from uncertainty_depth.uncertainty.masks import seeded, stream
from uncertainty_depth.uncertainty.moments import Estimate, Moments


class McDropout:
    """M stochastic passes; all that comes before the first dropout is computed once.

    Raises:
        ModelError: the network has no dropout.
    """

    def __init__(self, network: DepthNetwork) -> None:
        if network.config.dropout == 0.0:
            raise ModelError(
                "mc_dropout needs a network with dropout, this one's rate is 0; expected another method"
            )
        self.networks = [network]
        self._dropouts = [seeded(layer) for layer in network.decoder.dropouts]

    @classmethod
    def load(cls, model: ModelFolder, place: Place) -> McDropout:
        """The model's last member."""
        return cls(place(model.load(model.members[-1])))

    def passes(self, config: PredictorConfig) -> int:
        """As many as asked for."""
        return config.samples

    def components(self, config: PredictorConfig) -> tuple[str, ...]:
        """See `Estimator`."""
        return components_of(self.networks, config.samples)

    @torch.inference_mode()
    def estimate(self, image: Tensor, stamp_ns: int, config: PredictorConfig) -> Estimate:
        """See `Estimator`. Sample m's masks come from (seed, stamp, m) alone, whatever the chunk, device, process or order of frames."""
        network = self.networks[0]
        moments = Moments()
        trunk = network.trunk(image)
        for start in range(0, config.samples, config.chunk):
            samples = range(start, min(start + config.chunk, config.samples))
            streams = [stream(config.seed, stamp_ns, sample) for sample in samples]
            output = network.branches(
                trunk, [dropout(streams) for dropout in self._dropouts], image.shape[-2:]
            )
            moments.add(output.depth_m, network.variance(output))
        return moments.estimate()
