# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A frame's uploads and one download, and nothing waits in a training step: without a GPU.

Tensors of FakeTensorMode say that they are on a GPU and compute nothing; it raises if two
devices meet. What this build of torch cannot do with them is done here: indexing, pinned memory,
generators, and the step to NumPy.
"""

import contextlib
from collections import Counter

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.depth import familiarity
from uncertainty_depth.depth import predictor as predictor_module
from uncertainty_depth.depth.estimators import Ensemble, McDropout
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.predictor_settings import Loaded
from uncertainty_depth.depth.training.frames import TrainingFrames, augment
from uncertainty_depth.depth.training.objective import Objective, gaussian_nll, laplace_nll, log_l1

pytestmark = pytest.mark.usefixtures("one_thread")
CUDA = torch.device("cuda", 0)
NETWORK = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(64, 64), head="laplace")
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "unique")


class Traffic(TorchDispatchMode):
    """Counts copies between the devices and operations that a GPU would be waited for."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.overloadpacket.__name__
        if name in WAITING or (name.startswith("index") and _has_mask(args)):
            self.counts["waiting value"] += 1
        result = function(*args, **kwargs)
        if name in ("copy_", "_to_copy", "to"):
            source = args[1] if name == "copy_" else args[0]
            self._count_copy(source.device.type, result.device.type, kwargs)
        return result

    def _count_copy(self, source, target, options):
        if source == target:
            return
        kind = "upload" if target == "cuda" else "download"
        waits = kind == "upload" and not options.get("non_blocking")
        self.counts[f"waiting {kind}" if waits else kind] += 1


def _has_mask(args):
    indices = [index for each in args if isinstance(each, (list, tuple)) for index in each]
    return any(isinstance(index, torch.Tensor) and index.dtype == torch.bool for index in indices)


class WithoutCuda(TorchFunctionMode):
    """Does on fake tensors what needs a torch built for CUDA."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            return _indexed(*args)
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function is torch.Tensor.numpy:
            assert args[0].device.type == "cpu"
            return np.ones(args[0].shape, np.float32)
        if function is torch.nn.functional.grid_sample:
            values, grid = args
            assert values.device == grid.device
            return values * torch.ones_like(values)
        return function(*args, **(kwargs or {}))


def _indexed(tensor, index):
    """Return a tensor indexed by numbers, slices and None, in views alone."""
    axis = 0
    parts = index if isinstance(index, tuple) else (index,)
    if Ellipsis in parts:
        given = sum(part is not None and part is not Ellipsis for part in parts)
        place = parts.index(Ellipsis)
        missing = (slice(None),) * (tensor.ndim - given)
        parts = (*parts[:place], *missing, *parts[place + 1 :])
    for part in parts:
        if isinstance(part, int):
            tensor = torch.select(tensor, axis, part)
            continue
        if part is None:
            tensor = torch.unsqueeze(tensor, axis)
        else:
            start, stop, step = part.indices(tensor.shape[axis])
            tensor = torch.ops.aten.slice.Tensor(tensor, axis, start, stop, step)
        axis += 1
    return tensor


class Generator(torch.Generator):
    """A generator that says that it is of the device it was asked for on."""

    def __new__(cls, device="cpu"):
        generator = super().__new__(cls)
        generator.place = torch.device(device)
        return generator

    @property
    def device(self):
        return self.place


@pytest.fixture(scope="module")
def known():
    """Return the shipped model's folder and familiarity, read before tensors are fake."""
    return read_model(SHIPPED_MODEL), familiarity.read(SHIPPED_MODEL)


@pytest.fixture
def fake_cuda(known, monkeypatch):
    """Return a context that counts the traffic with a GPU, which seems to be there."""
    synchronized = Counter()

    class Stream:
        def synchronize(self):
            synchronized["synchronize"] += 1

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch, "Generator", Generator)

    @contextlib.contextmanager
    def counted():
        with WithoutCuda(), Traffic() as traffic:
            synchronized.clear()
            yield traffic
        traffic.counts.update(synchronized)

    with FakeTensorMode(allow_non_fake_inputs=True):
        yield counted


def on_cuda(network):
    """Return the network with parameters and buffers that are made on the GPU, not moved."""
    for module in network.modules():
        for name, values in list(module.named_parameters(recurse=False)):
            made = torch.empty(values.shape, dtype=values.dtype, device=CUDA)
            setattr(module, name, torch.nn.Parameter(made))
        for name, values in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.empty(values.shape, dtype=values.dtype, device=CUDA))
    return network


def network_on_cuda(config=NETWORK):
    return on_cuda(Hourglass(config).eval())


@pytest.fixture(params=["mc_dropout", "multi_epochs"])
def predictor(request, monkeypatch, known, fake_cuda):
    """Return the shipped model's predictor as if on a GPU, with the score of unfamiliarity."""
    model, familiar = known
    main = network_on_cuda(model.network)
    if request.param == "mc_dropout":
        estimator = McDropout(main)
    else:
        estimator = Ensemble([network_on_cuda(model.network), main])
    loaded = Loaded(estimator, "torch", "fp32", CUDA)
    monkeypatch.setattr(predictor_module, "load", lambda *arguments: loaded)
    monkeypatch.setattr(predictor_module, "read_model", lambda *arguments: model)
    monkeypatch.setattr(familiarity, "read", lambda folder: familiar)
    with WithoutCuda():
        return Predictor(SHIPPED_MODEL, PredictorConfig(samples=4, engine="torch"))


def uploads(predictor):
    """The image, and with dropout its noise and the samples' numbers."""
    return 3 if isinstance(predictor._estimator, McDropout) else 1


def test_a_frame_is_uploaded_with_its_noise_and_downloaded_once(predictor, fake_cuda):
    with fake_cuda() as traffic:
        prediction = predictor.predict(np.zeros((480, 640, 3), np.uint8))
    assert prediction.depth_m.shape == (480, 640)
    assert prediction.unfamiliarity is not None
    assert traffic.counts == {"upload": uploads(predictor), "download": 1, "synchronize": 1}


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_batch_of_training_is_waited_for_nowhere(fake_cuda):
    # This build has no gradients there, nor the statistics of a batch: the next test has them.
    network = network_on_cuda()
    frames = TrainingFrames(
        [np.zeros((64, 64, 3), np.uint8)] * 2, [np.ones((64, 64), np.float16)] * 2
    )
    generator = torch.Generator()
    with fake_cuda() as traffic, torch.no_grad():
        images, depth_m = augment(*frames.batch([0, 1], CUDA), generator)
        value = Objective(laplace_nll)(network, images, depth_m)
    assert value.device == CUDA
    assert set(traffic.counts) == {"upload"}


@pytest.mark.parametrize("loss", [log_l1, laplace_nll, gaussian_nll])
def test_a_whole_training_step_would_wait_for_nothing(loss):
    """On the CPU: no result's size or value has to be known."""
    torch.manual_seed(0)
    network = Hourglass(NETWORK).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    depth_m = torch.rand(2, 1, 64, 64) + 1
    depth_m[depth_m > 1.5] = torch.nan
    images = torch.rand(2, 3, 64, 64)
    with Traffic() as traffic:
        value = Objective(loss)(network, images, depth_m)
        value.backward()
        optimizer.step()
    assert traffic.counts == {}
    assert torch.isfinite(value)
    with Traffic() as traffic:
        depth_m[depth_m > 0.5]
    assert traffic.counts == {"waiting value": 1}


def test_mixing_devices_raises_an_error(fake_cuda):
    with fake_cuda() as traffic:
        values = torch.empty(3).to(CUDA)
        values.cpu()
        with pytest.raises(RuntimeError, match="two devices"):
            values + torch.empty(3)
        with pytest.raises(RuntimeError):
            values.sum().item()
    assert traffic.counts == {"waiting upload": 1, "download": 1, "waiting value": 1}
