"""How a network is trained, and how its snapshots are taken."""

from uncertainty_depth.training.run import train

__all__ = ["train"]
