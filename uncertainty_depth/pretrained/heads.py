"""The heads of each kind of pretrained depth model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from uncertainty_depth.config import NetworkConfig
from uncertainty_depth.pretrained.head import Features, HeadTrunk, PretrainedHead, doubled, resized
from uncertainty_depth.pretrained.output_scaling import units_of


class FusionHead(PretrainedHead):
    """The neck of DPT (Ranftl et al. 2021, section 3): states reassembled to maps of four scales, fused from the coarsest to the finest."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.fusion_hidden_size,
            len(model.neck.fusion_stage.layers),
            units_of(model.config),
            config,
        )
        self.neck = model.neck

    @property
    def layers(self) -> nn.ModuleList:
        """The stages of the fusion."""
        return self.neck.fusion_stage.layers

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`; what the residual layers make of the finer maps is the same for all samples too."""
        deepest, *finer = self._maps(features)
        skips = []
        size = deepest.shape[-2:]
        for layer, each in zip(self.layers[1:], finer, strict=True):
            size = self.size_joined(size, each)
            skips.append(layer.residual_layer1(resized(each, size)))
        return HeadTrunk(
            self._fused(0, deepest, skips[0].shape[-2:]), tuple(skips), deepest, features.grid
        )

    def size_joined(self, before: Sequence[int], finer: Tensor) -> Sequence[int]:
        """Height and width at which a finer map is joined, from those of the stage before."""
        return doubled(before)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        return self._fused(number, x + skip, size)

    def entered(self) -> Sequence[nn.Module]:
        """See `PretrainedHead`."""
        return [layer.residual_layer2.convolution1 for layer in self.layers[1:]]

    def _maps(self, features: Features) -> list[Tensor]:
        """One map of equally many channels of each scale, the coarsest first."""
        states = list(features.states)
        if self.neck.reassemble_stage is not None:
            states = self.neck.reassemble_stage(states, *features.grid)
        return [conv(state) for conv, state in zip(self.neck.convs, states, strict=True)][::-1]

    def _fused(self, number: int, x: Tensor, size: Sequence[int]) -> Tensor:
        layer = self.layers[number]
        return layer.projection(resized(layer.residual_layer2(x), size, align_corners=True))


class DptHead(FusionHead):
    """DPT's own: three convolutions."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        self.head = model.head

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states)


class DepthAnythingHead(DptHead):
    """Yang et al. 2024: as DPT's, but a map is joined at its own size, and the head knows the size of the image."""

    def size_joined(self, before: Sequence[int], finer: Tensor) -> Sequence[int]:
        """See `FusionHead`."""
        return finer.shape[-2:]

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states, *trunk.grid)


class TipsHead(FusionHead):
    """Cao et al. 2026 (TIPSv2): a weight for each of many depths, of which it takes the mean."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        self.decoder = model.decoder
        self.bin_regressor = model.bin_regressor

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.bin_regressor(self.decoder(states[-1]).float())


class ZoeHead(FusionHead):
    """Bhat et al. 2023: relative depth, and bins of metric depth whose probabilities all stages decide."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(model, config)
        self.relative_head = model.relative_head
        self.metric_head = model.metric_head

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`. Logarithms of probabilities near 0 and 1 are not for bfloat16: autocast ends here."""
        relative, features = self.relative_head(states)
        dtype = next(self.metric_head.parameters()).dtype
        with torch.autocast(features.device.type, enabled=False):
            bottleneck = trunk.deepest.to(dtype).expand(len(features), -1, -1, -1)
            blocks = [state.to(dtype).expand(len(features), -1, -1, -1) for state in states]
            return self.metric_head(features.to(dtype), bottleneck, blocks, relative.to(dtype))[
                0
            ].squeeze(1)


class GlpnHead(PretrainedHead):
    """Kim et al. 2022: maps of four scales, joined by selective feature fusion."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.decoder_hidden_size,
            len(model.decoder.stages),
            units_of(model.config),
            config,
        )
        self.decoder = model.decoder
        self.head = model.head

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`."""
        deepest, *finer = features.states[::-1]
        skips = [
            stage.convolution(each)
            for stage, each in zip(self.decoder.stages[1:], finer, strict=True)
        ]
        first = resized(self.decoder.stages[0].convolution(deepest), skips[0].shape[-2:])
        return HeadTrunk(first, tuple(skips), deepest, features.grid)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        return resized(
            self.decoder.stages[number].fusion(skip.expand(len(x), -1, -1, -1), x), size
        )

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head([resized(states[-1], doubled(states[-1].shape[-2:]))])

    def entered(self) -> Sequence[nn.Module]:
        """See `PretrainedHead`."""
        return [stage.fusion.convolutional_layer1[0] for stage in self.decoder.stages[1:]]


class DepthProHead(PretrainedHead):
    """Bochkovskii et al. 2024: fused as in DPT, each stage enlarging what it gives; then inverse depth, times the width by the focal length."""

    def __init__(self, model: PreTrainedModel, config: NetworkConfig) -> None:
        super().__init__(
            model.config.fusion_hidden_size,
            model.fusion_stage.num_layers,
            units_of(model.config),
            config,
        )
        self.fusion_stage = model.fusion_stage
        self.head = model.head

    @property
    def layers(self) -> list[nn.Module]:
        """The stages of the fusion."""
        return [*self.fusion_stage.intermediate, self.fusion_stage.final]

    def trunk(self, features: Features) -> HeadTrunk:
        """See `PretrainedHead`."""
        *maps, factor = features.states
        deepest, *finer = maps[::-1]
        skips = [
            layer.residual_layer1(each) for layer, each in zip(self.layers[1:], finer, strict=True)
        ]
        return HeadTrunk(self.layers[0](deepest), tuple(skips), deepest, features.grid, factor)

    def stage(self, number: int, x: Tensor, skip: Tensor, size: Sequence[int]) -> Tensor:
        """See `PretrainedHead`."""
        return self.layers[number](x + skip)

    def depth(self, states: list[Tensor], trunk: HeadTrunk) -> Tensor:
        """See `PretrainedHead`."""
        return self.head(states[-1]) * trunk.factor

    def entered(self) -> Sequence[nn.Module]:
        """See `PretrainedHead`."""
        return [layer.residual_layer2.convolution1 for layer in self.layers[1:]]


HEADS: dict[str, type[PretrainedHead]] = {
    "depth_anything": DepthAnythingHead,
    "depth_pro": DepthProHead,
    "dpt": DptHead,
    "glpn": GlpnHead,
    "tipsv2_dpt": TipsHead,
    "zoedepth": ZoeHead,
}
