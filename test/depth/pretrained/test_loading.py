# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Depth models are read with normalisation and options; other models are refused."""

import json

import numpy as np
import pytest
from transformers import CHMv2Config, DPTConfig, DPTImageProcessorPil, GLPNImageProcessorPil

from uncertainty_depth.cli.main import main
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.depth.networks.backbone import make_backbone, own_options
from uncertainty_depth.depth.networks.families import input_size, normalisation, read_preprocessing


@pytest.mark.parametrize(
    "processor",
    [
        DPTImageProcessorPil(
            do_resize=False,
            do_rescale=False,
            image_mean=[123.675, 116.28, 103.53],
            image_std=[58.395, 57.12, 57.375],
        ),
        DPTImageProcessorPil(
            do_resize=False, rescale_factor=1 / 100, image_mean=0.5, image_std=0.25
        ),
        DPTImageProcessorPil(do_resize=False, do_normalize=False),
        DPTImageProcessorPil(do_resize=False, do_rescale=False, do_normalize=False),
        GLPNImageProcessorPil(),
    ],
    ids=["DINOv2's, of 0 to 255", "another factor", "only rescaled", "as it is", "GLPN's"],
)
def test_images_are_normalised_as_the_models_own_processor_does_it(processor, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (3, 32, 64), dtype=np.uint8)
    processor.save_pretrained(tmp_path)
    mean, std = (
        np.reshape(values, (3, 1, 1))
        for values in normalisation(read_preprocessing(str(tmp_path)))
    )
    expected = processor(
        image.transpose(1, 2, 0), input_data_format="channels_last", return_tensors="np"
    ).pixel_values[0]
    np.testing.assert_allclose((image / 255 - mean) / std, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "image_size", "patch", "expected"),
    [
        ({"size": {"height": 518, "width": 518}, "keep_aspect_ratio": True}, 518, 14, (686, 518)),
        ({"size": {"height": 384, "width": 512}, "keep_aspect_ratio": True}, 384, 16, (512, 384)),
        ({"size": {"height": 384, "width": 384}}, 384, 16, (384, 384)),
        ({"size": 384}, 400, 16, (400, 400)),
        ({"do_resize": True, "size_divisor": 32}, 224, 32, (640, 480)),  # GLPN's
        (
            {"do_resize": False, "size": {"height": 384, "width": 384}, "size_divisor": 14},
            518,
            14,
            (644, 476),
        ),  # DPT's of DINOv2
        (
            {"do_resize": True, "size": {"height": 384, "width": 384}, "size_divisor": None},
            384,
            16,
            (384, 384),
        ),
        ({}, 518, 14, (518, 518)),
    ],
)
def test_the_input_size_is_the_models_own_in_whole_patches(settings, image_size, patch, expected):
    assert input_size(settings, image_size, patch) == expected


SQUARE = {"size": {"height": 128, "width": 128}}


@pytest.mark.parametrize(
    ("family", "settings", "own"),
    [
        (
            "depth_anything_metric",
            {"keep_aspect_ratio": True},
            {"input_size": (70, 56), "depth_range": (1e-3, 20.0)},
        ),
        ("dpt", {}, {"input_size": (64, 64)}),
        (
            "zoedepth_of_two_domains",
            {},
            {"input_size": (64, 64), "depth_range": (1e-3, 80.0)},
        ),
        ("dpt_of_swinv2", {}, {"input_size": (64, 64)}),  # 56, in pixels of its deepest map
        (
            "depth_pro",  # what is zoomed into has another field of view
            SQUARE,
            {"input_size": (128, 128), "depth_range": (1e-3, 1e4), "augment": False},
        ),
        ("depth_pro_without_fov", SQUARE, {"input_size": (128, 128)}),
    ],
)
def test_own_options_are_what_the_model_was_made_for(family, settings, own, saved):
    expected = {"freeze_encoder": True, "learning_rate": 1e-4, **own}
    assert own_options(str(saved(family, **settings))) == expected
    assert own_options("resnet18") == {}


@pytest.mark.parametrize("family", ["dpt", "zoedepth"])
def test_a_config_may_give_height_and_width_apart(family, saved):
    folder = saved(family, size=None)
    expected = own_options(str(folder))
    file = folder / "config.json"
    config = json.loads(file.read_text())
    encoder = config.get("backbone_config") or config
    encoder["image_size"] = [encoder["image_size"]] * 2
    file.write_text(json.dumps(config))
    assert own_options(str(folder)) == expected


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            CHMv2Config(),
            r"^a 'chmv2' model cannot be .* or a depth model of .*, zoedepth$",
        ),
        (DPTConfig(is_hybrid=True), r"^a 'dpt' hybrid model cannot be the encoder"),
    ],
)
def test_another_depth_model_is_refused(config, sentence, tmp_path):
    config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=sentence):
        make_backbone(str(tmp_path))


@pytest.mark.parametrize(
    "command", [["train", "synthetic:worlds=1,frames=2", "--backbone"], ["wrap"]]
)
def test_a_hub_that_cannot_be_reached_is_one_sentence(command, tmp_path, monkeypatch, capsys):
    import huggingface_hub

    def unreachable(self, name, timeout):
        raise OSError("Name or service not known")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    output = ["--output", str(tmp_path / "model")]
    assert main([*command, "nobody/no-such-depth-model", *output]) == 1
    assert capsys.readouterr().err == (
        "uncertainty-depth: backbone 'nobody/no-such-depth-model' is neither a folder nor in the "
        "local cache, and the hub did not give it: OSError, Name or service not known\n"
    )
    assert not (tmp_path / "model").exists()
