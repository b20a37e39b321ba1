"""The ways to get a sigma: one file each behind one small protocol."""

from uncertainty_depth.uncertainty.deterministic import Deterministic
from uncertainty_depth.uncertainty.mc_dropout import McDropout
from uncertainty_depth.uncertainty.multi_epochs import MultiEpochs

ESTIMATORS = {"deterministic": Deterministic, "mc_dropout": McDropout, "multi_epochs": MultiEpochs}
