"""Every method trained in miniature, and what must be true of it."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tqdm import tqdm

from uncertainty_depth.config import METHODS, PredictorConfig, TrainingConfig
from uncertainty_depth.errors import ConfigError, ModelError
from uncertainty_depth.network import folder as model_folder
from uncertainty_depth.network.hourglass import Hourglass, NetworkOutput
from uncertainty_depth.predictor import Predictor
from uncertainty_depth.training import losses, train
from uncertainty_depth.training.epoch import train_epoch
from uncertainty_depth.training.frames import read_frames
from uncertainty_depth.training.member_run import MemberRun
from uncertainty_depth.training.objective import Objective
from uncertainty_depth.training.plan import ENSEMBLES
from uncertainty_depth.training.start import constant_error_guess, start_from_constant
from uncertainty_depth.training.targets import ErrorOf, depth_of, prediction_of
from uncertainty_depth.uncertainty.learned_error import LearnedError

IMAGE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small(source, network, training):
    """Few frames, small images, short epochs."""
    source.records = source.records[:8]
    quick = replace(training, epochs=2, snapshots=2, batch_size=3, members=3, backbones=("tiny", "resnet10"))
    return source, replace(network, input_size=(32, 32)), quick


def make(small, folder: Path, method: str, **options) -> Path:
    source, network, training = small
    if method == "distilled":
        options["distill"] = str(make(small, folder.with_name("teacher"), "multi_inits"))
    return train(source, folder, network, replace(training, method=method, **options))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_trained_is_served_by_it(method: str, small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    predictor = Predictor(folder, PredictorConfig(device="cpu"))
    assert predictor.method == predictor.describe()["method"] == method
    found = predictor.predict(IMAGE)
    assert found.depth_m.shape == found.sigma_m.shape == IMAGE.shape[:2]
    assert np.isfinite(found.depth_m).all()
    assert (found.sigma_m > 0).all() == (method != "deterministic")
    assert json.loads((folder / "model.json").read_text())["training"]["finished"]
    assert not (folder / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("method", ENSEMBLES)
def test_members_differ(method: str, small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", method)
    names = model_folder.read(folder).members
    assert len(names) == (2 if method == "multi_networks" else 3)
    for one, other in itertools.combinations(names, 2):
        weights = [load_file(folder / f"{name}.safetensors")["decoder.final.weight"] for name in (one, other)]
        assert not torch.equal(*weights)
    described = model_folder.read(folder).training["members"]
    assert sorted(described) == sorted(names)
    assert len({member["seed"] for member in described.values()}) == len(names)
    assert {f"curves_{name}.csv" for name in names} <= set(content(folder))


def test_members_of_different_encoders_live_in_one_folder(small, tmp_path: Path) -> None:
    model = model_folder.read(make(small, tmp_path / "model", "multi_networks"))
    sizes = {name: sum(weights.numel() for weights in model.load(name).encoder.parameters()) for name in model.members}
    assert sizes["member_01"] < sizes["member_02"]
    assert set(model.architectures) == {"member_02"}
    assert model.architectures["member_02"].network.backbone == "resnet10"


def test_an_ensemble_may_share_a_frozen_encoder(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "multi_inits", freeze_encoder=True)
    one, *others = model_folder.read(folder).load_all(model_folder.read(folder).members)
    assert all(other.encoder is one.encoder for other in others)
    assert all(name.startswith("decoder.") for name in load_file(folder / "member_02.safetensors"))


def test_an_adversarial_ensemble_learns_from_other_images(small, tmp_path: Path) -> None:
    """With a step of 0 it is a deep ensemble; with another it is not, and a frozen encoder is no obstacle."""
    plain = content(make(small, tmp_path / "plain", "multi_inits", members=1))
    still = content(make(small, tmp_path / "still", "adversarial_ensemble", members=1, adversarial_step=0.0))
    assert still["member_01.safetensors"] == plain["member_01.safetensors"]
    moved = content(make(small, tmp_path / "moved", "adversarial_ensemble", members=1, adversarial_step=0.05))
    assert moved["member_01.safetensors"] != plain["member_01.safetensors"]
    frozen = content(make(small, tmp_path / "frozen", "adversarial_ensemble", members=1, freeze_encoder=True, adversarial_step=0.05))
    calm = content(make(small, tmp_path / "calm", "multi_inits", members=1, freeze_encoder=True))
    assert frozen["member_01.safetensors"] != calm["member_01.safetensors"]


def test_a_learned_error_has_no_gradient_into_the_first_network(small) -> None:
    source, network, _ = small
    frames = read_frames(source, network.input_size)
    first, second = Hourglass(network), Hourglass(network)
    images, depth_m = frames.batch(range(4))
    objective = Objective(losses.l1, ErrorOf(first))
    targets = objective.targets(images, depth_m)
    known = ~depth_m.isnan()
    torch.testing.assert_close(targets[known], (first(images).depth_m - depth_m)[known].abs().clamp_min(1e-3))
    assert targets.isnan().equal(~known)
    objective(second, images, depth_m).backward()
    assert all(weights.grad is None for weights in first.parameters())
    assert all(weights.grad is not None for weights in second.parameters())


def test_the_second_network_leaves_the_first_as_it_is(small, tmp_path: Path) -> None:
    both = content(make(small, tmp_path / "both", "learned_error"))
    alone = content(make(small, tmp_path / "alone", "deterministic"))
    assert both["depth.safetensors"] == alone["best.safetensors"]
    assert both["error.safetensors"] != both["depth.safetensors"]


def test_sigma_is_the_learned_error_and_depth_the_first_network_s(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "learned_error", freeze_encoder=True)
    found = Predictor(folder, PredictorConfig(device="cpu")).predict(IMAGE[:32, :32])
    image = torch.from_numpy(IMAGE[:32, :32]).permute(2, 0, 1)[None] / 255
    with torch.no_grad():
        depth, error = (model_folder.read(folder).load(name)(image).depth_m[0, 0].numpy() for name in ("depth", "error"))
    np.testing.assert_allclose(found.depth_m, depth, rtol=1e-4)
    np.testing.assert_allclose(found.sigma_m, error, rtol=1e-4)
    for component in ("epistemic", "aleatoric"):
        with pytest.raises(ConfigError, match=f"component is '{component}', which learned_error .* does not have; expected 'total'$"):
            Predictor(folder, PredictorConfig(component=component, device="cpu"))


def test_a_folder_without_an_error_network_has_no_learned_error(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "deterministic")
    with pytest.raises(ModelError, match=r"learned_error needs members 'error' and 'depth', .* has best; expected another method"):
        LearnedError.load(model_folder.read(folder), lambda network: network)


def test_an_error_network_learns_where_the_first_is_wrong(small, tmp_path: Path) -> None:
    """A first network that is always 3 m: its error is a function of the brightness, as depth is."""
    source, network, training = small

    class Always(torch.nn.Module):
        def forward(self, images):
            return NetworkOutput(torch.full_like(images[:, :1], 3.0), None)

    frames = read_frames(source, network.input_size)
    torch.manual_seed(0)
    second = Hourglass(replace(network, head="none", dropout=0.0, decoder_width=64, depth_range=(1e-3, 9.5)))
    start_from_constant(second, *constant_error_guess(frames))
    optimizer = torch.optim.AdamW(second.parameters(), 3e-3)
    objective = Objective(losses.l1, ErrorOf(Always()))
    longer = replace(training, augment=False, batch_size=4)
    values = [train_epoch(second, optimizer, objective, frames, range(8), longer, epoch, tqdm(disable=True)) for epoch in range(20)]
    errors = torch.cat([objective.targets(*frames.batch([index])).flatten() for index in range(8)])
    errors = errors[~errors.isnan()]
    assert values[-1] < 0.7 * (errors - errors.median()).abs().mean()


def test_a_student_learns_its_teacher_s_depth_everywhere(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "self_teaching")
    model = model_folder.read(folder)
    assert model.members == ("teacher", "student")
    teach = depth_of("teacher", folder, torch.device("cpu"))
    images, depth_m = torch.rand(2, 3, 32, 32), torch.full((2, 1, 32, 32), torch.nan)
    with torch.no_grad():
        assert torch.equal(teach(images, depth_m), model.load("teacher")(images).depth_m)
    assert not teach(images, depth_m).requires_grad
    assert Predictor(folder, PredictorConfig(device="cpu")).describe()["head"] == "laplace"


def test_a_network_is_taught_an_ensemble_s_mean_and_total_sigma(small, tmp_path: Path) -> None:
    teacher = make((small[0], replace(small[1], head="laplace"), small[2]), tmp_path / "teacher", "multi_inits")
    source, network, training = small
    folder = train(source, tmp_path / "model", network, replace(training, distill=str(teacher)))
    assert model_folder.read(folder).method == "distilled"
    image = torch.rand(1, 3, 32, 32)
    targets = prediction_of(teacher, folder, torch.device("cpu"))(image.repeat(2, 1, 1, 1), torch.zeros(2, 1, 32, 32))
    with torch.no_grad():
        outputs = [member(image) for member in map(model_folder.read(teacher).load, model_folder.read(teacher).members)]
    depths = torch.cat([output.depth_m for output in outputs])
    variance = depths.var(0, correction=0) + torch.cat([2 * output.scale_m.square() for output in outputs]).mean(0)
    torch.testing.assert_close(targets[1, 0], depths.mean(0)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(targets[1, 1], variance.sqrt()[0], rtol=1e-3, atol=1e-5)
    with pytest.raises(ConfigError, match="which distilled with samples 1 and head 'gaussian' does not have; expected 'total'"):
        Predictor(folder, PredictorConfig(component="aleatoric", device="cpu"))


def test_what_cannot_be_distilled_is_said(small, tmp_path: Path) -> None:
    teacher = str(make(small, tmp_path / "teacher", "deterministic"))
    for changes, sentence in (({"input_size": (64, 32)}, "input_size is"), ({"head": "laplace"}, "head is 'laplace' and loss ''")):
        with pytest.raises(ConfigError, match=sentence):
            train(small[0], tmp_path / "model", replace(small[1], **changes), replace(small[2], distill=teacher))


@pytest.mark.parametrize(("method", "parameter"), [("concrete_dropout", "logit"), ("variational_dropout", "log_alpha")])
def test_learned_dropout_moves_its_rate_from_where_it_started(method: str, parameter: str, small, tmp_path: Path) -> None:
    """Six frames are few against the entropy of the masks: the noise grows, at every place by its own step."""
    source, network, training = small
    folder = train(source, tmp_path / "model", network, replace(training, method=method, learning_rate=0.01))
    model = model_folder.read(folder)
    assert model.network.head == "laplace"
    layers = model.load("best").decoder.dropouts
    start = Hourglass(model.network).decoder.dropouts
    moved = [getattr(one, parameter).item() - getattr(other, parameter).item() for one, other in zip(layers, start, strict=True)]
    assert min(moved) > 0.005
    assert len(set(moved)) == 3
    few, many = (
        Predictor(folder, PredictorConfig(samples=samples, component="epistemic", device="cpu")).predict(IMAGE).sigma_m for samples in (2, 9)
    )
    assert few.mean() > 0
    assert not np.array_equal(few, many)


class Killed(BaseException):
    pass


def test_killed_in_member_three_of_five_it_goes_on_there(small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, network, training = small
    training = replace(training, method="bagging", members=5, patience=5)
    whole = content(train(source, tmp_path / "whole", network, training))
    one_epoch, trained = MemberRun.one_epoch, []

    def dying(run: MemberRun, bar) -> None:
        if len(trained) == 5:
            raise Killed
        trained.append(run.member.name)
        one_epoch(run, bar)

    with monkeypatch.context() as patch:
        patch.setattr(MemberRun, "one_epoch", dying)
        with pytest.raises(Killed):
            train(source, tmp_path / "killed", network, training)
        assert trained == ["member_01", "member_01", "member_02", "member_02", "member_03"]
        members = set(model_folder.read(tmp_path / "killed").members)
        assert members == {"member_01", "member_02", "member_03"}  # of use already
    trained.clear()
    monkeypatch.setattr(MemberRun, "one_epoch", lambda run, bar: (trained.append(run.member.name), one_epoch(run, bar)))
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole
    assert trained == ["member_03", "member_04", "member_04", "member_05", "member_05"]


def killed_at_write(number: int, patch: pytest.MonkeyPatch) -> None:
    count, fsync = itertools.count(1), os.fsync

    def dying(descriptor: int) -> None:
        if next(count) == number:
            raise Killed
        fsync(descriptor)

    patch.setattr(os, "fsync", dying)


@pytest.mark.parametrize("write", range(1, 16))
def test_dying_while_any_file_of_two_members_is_written_loses_nothing(write: int, small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, network, training = small
    training = TrainingConfig(**{**vars(training), "method": "multi_networks", "backbones": ("tiny", "tiny"), "epochs": 1})
    with monkeypatch.context() as patch:
        killed_at_write(99, patch)
        whole = content(train(source, tmp_path / "whole", network, training))
    with monkeypatch.context() as patch:
        killed_at_write(write, patch)
        if write == 15:  # there are no more: that was every write
            train(source, tmp_path / "killed", network, training)
        else:
            with pytest.raises(Killed):
                train(source, tmp_path / "killed", network, training)
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole


@pytest.mark.parametrize("method", ["learned_error", "self_teaching"])
def test_killed_in_the_second_network_it_goes_on_there(method: str, small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, network, training = small
    training = replace(training, method=method)
    whole = content(train(source, tmp_path / "whole", network, training))
    one_epoch, epochs = MemberRun.one_epoch, itertools.count(1)

    def dying(run: MemberRun, bar) -> None:
        if next(epochs) == 4:
            raise Killed
        one_epoch(run, bar)

    with monkeypatch.context() as patch:
        patch.setattr(MemberRun, "one_epoch", dying)
        with pytest.raises(Killed):
            train(source, tmp_path / "killed", network, training)
    assert content(train(source, tmp_path / "killed", network, training, resume=True)) == whole


def test_a_training_of_before_an_option_was_invented_is_complete(small, tmp_path: Path) -> None:
    folder = make(small, tmp_path / "model", "multi_epochs")
    described = json.loads((folder / "model.json").read_text())
    for name in ("members", "backbones", "adversarial_step", "distill"):
        del described["training"]["options"][name]
    (folder / "model.json").write_text(json.dumps(described))
    source, network, training = small
    usual = replace(training, members=TrainingConfig().members, backbones=TrainingConfig().backbones)
    assert train(source, folder, network, usual, resume=True) == folder
