"""One pass over the training frames, and the error on the validation frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from uncertainty_depth.config import TrainingConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.training.augmentation import augment
from uncertainty_depth.training.frames import TrainingFrames
from uncertainty_depth.training.losses import Loss


def train_epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    frames: TrainingFrames,
    indices: Sequence[int],
    training: TrainingConfig,
    epoch: int,
    progress: tqdm,
) -> float:
    """Show every frame of `indices` once, in random order; returns the mean loss.

    All randomness of the epoch comes from `training.seed` and `epoch`, so a resumed training draws the same numbers.

    Raises:
        ConfigError: the loss is no longer finite.
    """
    seed = int(np.random.SeedSequence([training.seed, epoch]).generate_state(1)[0])
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    order = [indices[position] for position in torch.randperm(len(indices), generator=generator).tolist()]
    device, total = _device(network), 0.0
    for batch in _batches(order, training.batch_size):
        images, depth_m = frames.batch(batch, device)
        if training.augment:
            images, depth_m = augment(images, depth_m, generator)
        total += _step(network, optimizer, loss, images, depth_m, training) * len(batch)
        progress.update()
    return total / len(indices)


def batches_per_epoch(count: int, batch_size: int) -> int:
    """Steps that `train_epoch` takes for `count` frames."""
    return math.ceil(count / batch_size)


def _batches(order: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Batches of equal size up to one frame: a last batch of one frame would break batch normalisation."""
    yield from (part.tolist() for part in np.array_split(np.asarray(order), batches_per_epoch(len(order), batch_size)))


def _step(network: nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, images: Tensor, depth_m: Tensor, training: TrainingConfig) -> float:
    with autocast(images.device):
        output = network(images)
    value = loss(output.depth_m, output.scale_m, depth_m)
    if not torch.isfinite(value):
        raise ConfigError(f"the training loss became {value.item()}; expected a learning_rate below {training.learning_rate} to keep it finite")
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    optimizer.step()
    return value.item()


def _device(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 for the network's passes where the hardware multiplies it; it needs no loss scaling. Losses are in float32 everywhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device))


def has_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 here: on a GPU, and on a CPU with AVX-512 BF16 (twice as fast in a measured training step)."""
    return device.type == "cuda" or getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()


@torch.inference_mode()
def validate(network: nn.Module, loss: Loss, frames: TrainingFrames, indices: Sequence[int], batch_size: int) -> dict[str, float]:
    """Figures over all known pixels of the frames of `indices`, in float32: validation_loss, abs_rel, rmse, rmse_log (Eigen et al. 2014)."""
    device, network = _device(network), network.eval()
    sums, count = torch.zeros(4, dtype=torch.float64), 0
    for batch in _batches(indices, batch_size):
        images, truth = frames.batch(batch, device)
        output = network(images)
        known = torch.isfinite(truth)
        depth, truth_known = output.depth_m[known].double(), truth[known].double()
        error, log_error = depth - truth_known, depth.log() - truth_known.log()
        mean_loss = loss(output.depth_m, output.scale_m, truth).double()
        sums += torch.stack([mean_loss * error.numel(), (error.abs() / truth_known).sum(), error.square().sum(), log_error.square().sum()]).cpu()
        count += error.numel()
    mean_loss, abs_rel, mean_square, mean_square_log = (sums / count).tolist()
    return {"validation_loss": mean_loss, "abs_rel": abs_rel, "rmse": math.sqrt(mean_square), "rmse_log": math.sqrt(mean_square_log)}
