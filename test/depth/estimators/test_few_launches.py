# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a GPU runs, on the CPU: the same maps in few operations, and graphs that replay them.

`Tape` stands in for a CUDA graph. It notes the operations of a function, and replays them on the
same memory, which is what a CUDA graph does.
"""

import contextlib
import copy
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.records import SampleRange
from uncertainty_depth.depth.estimators import Deterministic, Ensemble, McDropout, Mirrored
from uncertainty_depth.depth.estimators.estimator import Estimator
from uncertainty_depth.depth.networks.deployment import prepare
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = PredictorConfig(samples=5, seed=3)
CPU = torch.device("cpu")


class Operations(TorchDispatchMode):
    """Counts the operations that a GPU would be launched for: not those that give a view."""

    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function._schema.is_mutable or new_in(result, (args, kwargs)):
            self.names[function.overloadpacket.__name__] += 1
        return result


def new_in(result, given):
    """Return a result's tensors that have their own memory."""
    old = {tensor.untyped_storage().data_ptr() for tensor in tensors_of(given)}
    return [each for each in tensors_of(result) if each.untyped_storage().data_ptr() not in old]


class Tape:
    """Stands in for `torch.cuda.CUDAGraph`.

    Graphs of one pool share memory: a replay spoils what those recorded after it have computed.
    """

    made: ClassVar[list["Tape"]] = []

    def __init__(self):
        Tape.made.append(self)
        self.steps = []

    def pool(self):
        return 0

    def spoil(self):
        for *_, kept in self.steps:
            for tensor in tensors_of(kept):
                tensor.fill_(np.nan if tensor.is_floating_point() else 0)

    def replay(self):
        for later in Tape.made[Tape.made.index(self) + 1 :]:
            later.spoil()
        for function, args, kwargs, kept in self.steps:
            result = function(*args, **kwargs)
            for tensor, new in zip(tensors_of(kept), tensors_of(result), strict=True):
                if tensor.data_ptr() != new.data_ptr():
                    tensor.copy_(new)


class Recording(TorchDispatchMode):
    """Stands in for `torch.cuda.graph`: notes what is computed, and computes nothing of use."""

    def __init__(self, tape, pool, stream, capture_error_mode):
        super().__init__()
        assert capture_error_mode == "thread_local"
        self.tape = tape

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        made = new_in(result, (args, kwargs))
        if made or function._schema.is_mutable:
            self.tape.steps.append((function, args, kwargs, result))
        for tensor in made:
            tensor.zero_()
        return result


def tensors_of(values):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(values) if torch.is_tensor(leaf)]


@pytest.fixture
def tapes(monkeypatch):
    """Return how many graphs were recorded, on tapes."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Tape)
    monkeypatch.setattr(torch.cuda, "graph", Recording)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    Tape.made.clear()
    return lambda: len(Tape.made)


def network(seed=0, encoder=None, **options):
    torch.manual_seed(seed)
    config = {"backbone": "tiny", "decoder_width": 16, "head": "laplace", **options}
    made = Hourglass(NetworkConfig(input_size=(64, 48), **config))
    if encoder is not None:
        made.encoder = encoder
    return prepare(made, CPU, "fp32")


def snapshots(number=5, **options):
    first = network(**options)
    return [first, *(network(seed, first.encoder, **options) for seed in range(1, number))]


def in_few_launches(estimator):
    estimator = copy.deepcopy(estimator)
    estimator.few_launches = True
    return estimator


def image(seed=0):
    return torch.rand(1, 3, 48, 64, generator=torch.Generator().manual_seed(seed))


ESTIMATORS = {
    "mc_dropout": lambda: McDropout(network()),
    "mc_dropout without a head": lambda: McDropout(network(head="none")),
    "mirrored": lambda: Mirrored(network()),
    "deterministic": lambda: Deterministic(network()),
    "snapshots": lambda: Ensemble(snapshots()),
    "snapshots without a head": lambda: Ensemble(snapshots(head="none")),
    "members with encoders of their own": lambda: Ensemble([network(n) for n in range(3)]),
}


def assert_alike(found, expected):
    torch.testing.assert_close(found.depth_m, expected.depth_m, rtol=1e-5, atol=0)
    torch.testing.assert_close(found.aleatoric, expected.aleatoric, rtol=1e-4, atol=0)
    torch.testing.assert_close(found.epistemic, expected.epistemic, rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("samples", [None, SampleRange(1, 2), SampleRange(3, 4)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_few_launches_give_the_maps_of_many(name, samples):
    plain = ESTIMATORS[name]()
    config = replace(CONFIG, samples=12)  # more than are computed at once
    expected = plain.estimate(image(), 7, config, samples)
    found = in_few_launches(plain).estimate(image(), 7, config, samples)
    assert_alike(found, expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_graphs_give_the_maps_of_each_frame_and_of_its_samples(name, tapes):
    estimator = in_few_launches(ESTIMATORS[name]())
    kept = []
    for number in range(6):
        samples = SampleRange(number % 3, 4) if number > 3 else None
        arguments = image(number), number, CONFIG, samples
        kept.append((estimator.estimate(*arguments), arguments))
    assert tapes() > 0
    for found, arguments in kept:  # no frame is overwritten by a later one's
        fresh = in_few_launches(ESTIMATORS[name]())
        assert_alike(found, fresh.estimate(*arguments))


def test_a_graph_is_for_any_samples_of_a_number(tapes):
    estimator = in_few_launches(McDropout(network()))
    for number in range(8):
        estimator.estimate(image(), number, CONFIG, SampleRange(number % 5, 3))
    assert tapes() == 2  # the trunk's, and three samples'


def test_memory_that_runs_out_halves_the_members_decoded_together(tapes, caplog):
    ensemble = in_few_launches(Ensemble(snapshots(6)))
    expected = [ensemble.estimate(image(n), n, PredictorConfig()) for n in range(4)]
    assert tapes() == 2
    decoded = []

    def refuse(members):
        decoded.append(len(members))
        if len(members) > 3:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")

    stacked = ensemble._stacked
    together = stacked.decode
    stacked.decode = lambda members, *rest: (refuse(members), together(members, *rest))[1]
    ensemble._graphs.forget()
    found = [ensemble.estimate(image(n), n, PredictorConfig()) for n in range(4)]
    assert decoded[:3] == [6, 3, 3]
    assert max(decoded[1:]) == 3
    for one, other in zip(found, expected, strict=True):
        assert_alike(one, other)
    assert "memory ran out for 6 samples at once" in caplog.text


def test_a_frame_that_fits_alone_but_not_as_a_graph_is_computed_without(
    tapes, monkeypatch, caplog
):
    def refuse(*arguments, **options):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")

    estimator = in_few_launches(Deterministic(network()))
    expected = estimator.estimate(image(), 0, CONFIG)
    monkeypatch.setattr(torch.cuda, "graph", refuse)
    found = [estimator.estimate(image(), 0, CONFIG) for _ in range(5)]
    assert all(torch.equal(one.depth_m, expected.depth_m) for one in found)
    assert [record.getMessage() for record in caplog.records] == [
        "memory ran out for 1 samples at once; from now on the network runs without CUDA graphs, "
        "which takes longer"
    ]
    estimator.networks[0].encode = refuse
    with pytest.raises(RuntimeError, match="out of memory"):
        estimator.estimate(image(), 0, CONFIG)


def test_a_thread_records_what_it_has_called_itself(tapes):
    """cuDNN's choice of kernels, which no recording can make, is a thread's own."""
    estimator = in_few_launches(Deterministic(network()))
    with ThreadPoolExecutor(1) as other:
        for _ in range(2):
            other.submit(estimator.estimate, image(), 0, CONFIG).result()
    recorded = []
    for number in range(4):
        estimator.estimate(image(), number, CONFIG)
        recorded.append(tapes())
    assert recorded == [0, 0, 2, 2]


def test_features_are_the_main_members_whichever_is_first(tapes):
    """A budget takes members in turn, the last one also first."""
    estimator = in_few_launches(Ensemble([network(n) for n in range(3)]))
    for number in range(5):
        samples = SampleRange(2, 2) if number == 4 else None
        last = estimator.estimate(image(number), number, CONFIG, samples)
    expected = estimator.networks[-1].encode(image(4))
    for found, own in zip(last.features, expected, strict=True):
        torch.testing.assert_close(found, own)


def test_a_network_that_cannot_be_recorded_runs_as_it_is_and_says_so_once(monkeypatch, caplog):
    def refuse(*arguments, **options):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "device", refuse)
    estimator = in_few_launches(McDropout(network()))
    found = [estimator.estimate(image(), 7, CONFIG) for _ in range(5)]
    assert all(map(torch.equal, found[0][:3], found[4][:3]))
    assert [record.getMessage() for record in caplog.records] == [
        "the network cannot be recorded as a CUDA graph, so every frame takes longer, with the "
        "same result: operation not permitted when stream is capturing"
    ]


def operations(call):
    with torch.inference_mode(), Operations() as counted:
        call()
    return counted.names.total()


@pytest.fixture(scope="module")
def resnets():
    return snapshots(8, backbone="resnet18")


@pytest.mark.parametrize(
    ("method", "limit"),
    [(McDropout, 1.3), (Mirrored, 1.2), (Ensemble, 1.3), (Deterministic, 1.1)],
)
def test_eight_samples_take_few_more_operations_than_a_pass(resnets, method, limit):
    one = image()
    pass_alone = operations(lambda: resnets[0](one).depth_m)
    estimator = method(resnets if method is Ensemble else resnets[0])
    estimator = in_few_launches(estimator)
    config = PredictorConfig(samples=8)
    estimator.estimate(one, 0, config)  # finds the shapes, and stacks
    found = operations(lambda: estimator.estimate(one, 1, config).maps())
    assert found / pass_alone <= limit


def test_frames_of_a_graph_are_scored_by_their_own_features(monkeypatch, tapes):
    frames = [np.full((48, 64, 3), level, np.uint8) for level in (0, 60, 120, 180, 240)]
    plain = Predictor("demo", PredictorConfig(samples=2, device="cpu"))
    expected = [plain.predict(frame, 5) for frame in frames]
    monkeypatch.setattr(Estimator, "few_launches", True)
    predictor = Predictor("demo", PredictorConfig(samples=2, device="cpu"))
    found = [predictor.predict(frame, 5) for frame in frames]
    assert tapes() == 2
    for one, other in zip(found, expected, strict=True):
        assert one.unfamiliarity == pytest.approx(other.unfamiliarity, rel=1e-5)
        np.testing.assert_allclose(one.depth_m, other.depth_m, rtol=1e-5)
        np.testing.assert_allclose(one.sigma_m, other.sigma_m, rtol=1e-4)
