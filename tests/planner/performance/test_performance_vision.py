"""Operator counts of vision models, and what the model does with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.vision_profiles import operator
from planner.performance.constants import load_constants
from planner.performance.operators import COLUMN, FIELDS, HEAD, Operators, find_published, operators_of
from planner.performance.spec import ModelFamily, ModelSpec, StackClass, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_performance import A100, RESNET, T4, best

MOBILE = replace(RESNET, name="a network of one's own", forward_flops_per_sample=0.6e9)
VIT = ModelSpec(
    "vit-base", ModelFamily.VIT, 86.6e6, image_size=224, forward_flops_per_sample=35.16e9,
    activations_per_sample=23.9e6,
)  # fmt: skip
REGNET = ModelSpec(
    "regnety_160", ModelFamily.CNN, 83.6e6, image_size=224, forward_flops_per_sample=31.8e9,
    activations_per_sample=23.04e6,
)  # fmt: skip


def _seconds(model: ModelSpec, stack: StackClass = "eager", precision: str = "fp16") -> float:
    training = TrainingSpec(256, 1, precision, stack=stack)  # type: ignore[arg-type]
    return float(best(model, training, A100, 1)["step_time_s"])


@pytest.mark.parametrize(
    ("spelling", "published"),
    [
        ("ResNet-50 v1.5", "resnet50"),
        ("timm/resnet50.a1_in1k", "resnet50"),
        ("EfficientNet-B0", "efficientnet_b0"),
        ("EfficientNetV2-B0", "tf_efficientnetv2_b0"),
        ("StableDiffusion v2", "stable_diffusion_2"),
    ],
)
def test_a_model_is_found_however_it_is_spelt(spelling: str, published: str) -> None:
    found = find_published(spelling)
    assert found is not None
    assert found == find_published(published)


def test_counts_of_resnet50_are_those_of_its_tables() -> None:
    found = find_published("resnet50")
    assert found is not None
    # timm's table: 4.11 G multiply-accumulates, 11.11 M activations, 25.56 M parameters.
    assert found.flops / 2 == pytest.approx(4.11e9, rel=0.02)
    assert found.activations == pytest.approx(11.11e6, rel=0.01)
    assert found.params == pytest.approx(25.56e6, rel=0.001)
    assert found.at(448).flops == pytest.approx(4 * found.flops)
    assert found.at(448).values[COLUMN["kernels"]] == found.values[COLUMN["kernels"]]


def test_layers_that_detectors_freeze_count_a_third() -> None:
    found = find_published("retinanet_resnext50")
    assert found is not None
    # ResNeXt-50 at 800 pixels: the norms of the stem, of three blocks and of their shortcut have no backward pass.
    frozen = 64 * 400**2 + (3 * (128 + 128 + 256) + 256) * 200**2
    # Of the other stages, the first convolution is at twice the resolution: they halve it in the second.
    trained = sum(
        (blocks * 4 * width + 2 * width) * size**2 + width * 3 * size**2
        for blocks, width, size in ((4, 256, 100), (6, 512, 50), (3, 1024, 25))
    )
    assert found.values[COLUMN["batch_norm_elements"]] == pytest.approx(trained + frozen / 3, rel=1e-4)
    assert found.flops == pytest.approx(402.4e9, rel=0.001)


def test_the_beginning_of_a_name_will_do_where_the_flops_agree() -> None:
    whole = find_published("vit_base_patch16_224")
    assert whole is not None
    assert operators_of("vit-base", "vit", 224, 35.16e9, 23.9e6).values == whole.values


def test_a_known_name_with_other_flops_is_not_taken_for_the_known_model() -> None:
    own = operators_of("resnet50", "cnn", 224, 80e9, 100e6)
    assert not own.published
    assert len(own.values) == len(FIELDS)


def test_the_interval_is_wider_where_the_operators_are_inferred() -> None:
    rows = [
        best(model, TrainingSpec(256, 1, "fp16"), A100, 1)
        for model in (RESNET, replace(RESNET, name="a network of one's own"))
    ]
    known, own = (row["step_time_high_s"] / row["step_time_s"] for row in rows)
    assert own > known * 1.1


def test_a_depthwise_network_is_slower_per_flop_than_a_dense_one() -> None:
    per_flop = [_seconds(m) / (m.forward_flops_per_sample or 1.0) for m in (RESNET, MOBILE)]
    assert per_flop[1] > 3 * per_flop[0]


@pytest.mark.parametrize(
    ("weight", "groups", "steps", "counted"),
    [
        ((64, 64, 3, 3), 1, (1, 1, 1, 1), True),
        ((64, 64, 3, 3), 1, (2, 2, 1, 1), False),  # stride
        ((64, 64, 3, 3), 1, (1, 1, 2, 2), False),  # dilation
        ((64, 64, 1, 1), 1, (1, 1, 1, 1), False),
        ((64, 8, 3, 3), 8, (1, 1, 1, 1), False),
        ((64, 64, 3, 3, 3), 1, (1, 1, 1, 1, 1, 1), False),
    ],
)
def test_small_filters_are_dense_taps_of_3_by_3_at_stride_1(
    weight: tuple[int, ...], groups: int, steps: tuple[int, ...], counted: bool
) -> None:
    counts = dict.fromkeys(HEAD[2:], 0.0)
    pixels = (56,) * (len(weight) - 2)
    operator(counts, "convolution", [(2, 64, *pixels), weight], [(2, 64, *pixels)], groups, steps)
    assert counts["small_filter_flops"] == (counts["convolution_flops"] if counted else 0.0)
    assert counts["forward_flops"] > 0


def test_resnet50_has_a_third_of_its_flops_in_small_filters() -> None:
    """By its table of layers: sixteen 3 x 3 convolutions, 231 MFLOP each, three of them at stride 2."""
    found = find_published("resnet50")
    assert found is not None
    assert found.values[COLUMN["small_filter_flops"]] == pytest.approx(13 * 2 * 56**2 * 64**2 * 9, rel=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_minimal_filtering_spares_multiplications_in_plain_32_bit_alone(precision: str) -> None:
    training = TrainingSpec(256, 1, precision)  # type: ignore[arg-type]
    constants = load_constants()
    none, some, most = (
        best(RESNET, training, A100, 1, constants=constants.replace({"vision.minimal_filtering": ratio}))[
            "step_time_s"
        ]
        for ratio in (1.0, 2.25, 4.0)
    )
    assert most < some < none if precision == "fp32" else most == some == none


@pytest.mark.parametrize("tf32", [10.0, 12.0, 65.0])
def test_plain_32_bit_is_never_faster_than_tf32(tf32: float) -> None:
    card = {**T4, "tf32_tflops": tf32}
    plain, matrix = (
        best(RESNET, TrainingSpec(256, 1, name, stack="tuned"), card, 1)["step_time_s"]
        for name in ("fp32", "tf32")
    )
    assert plain >= matrix


def test_plain_vits_write_their_residual_stream_in_32_bit_and_resnets_nothing() -> None:
    vit, resnet, xcit = (
        find_published(name) for name in ("vit_base_patch16_224", "resnet50", "xcit_small_12_p16_224")
    )
    assert vit is not None and resnet is not None and xcit is not None
    # 25 sums of 197 tokens of width 768 (position and two per block), and the class token in front.
    assert vit.values[COLUMN["promoted_elements"]] == pytest.approx(26 * 197 * 768, rel=1e-3)
    assert resnet.values[COLUMN["promoted_elements"]] == 0.0
    # Scaling its layers by parameters in 32 bit doubles what each block adds.
    share = [row.values[COLUMN["promoted_elements"]] / row.activations for row in (vit, xcit)]
    assert share[1] > 3 * share[0]


@pytest.mark.parametrize(
    ("stack", "precision", "costs"),
    [("eager", "fp16", True), ("eager", "fp32", False), ("compiled", "fp16", False)],
)
def test_what_is_written_in_32_bit_costs_time_in_eager_16_bit_alone(
    stack: StackClass, precision: str, costs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _seconds(VIT, stack, precision)
    whole = find_published("vit_base_patch16_224")
    assert whole is not None
    without = tuple(
        0.0 if name == "promoted_elements" else v for name, v in zip(FIELDS, whole.values, strict=True)
    )
    monkeypatch.setattr(
        "planner.performance.operators.operators_of", lambda *_: Operators(without, published=True)
    )
    assert (written > _seconds(VIT, stack, precision)) == costs


def test_a_norm_in_place_is_slow_with_channels_innermost_alone() -> None:
    network = ModelSpec(
        "tresnet_m", ModelFamily.CNN, 31.4e6, image_size=224, forward_flops_per_sample=11.473e9,
        activations_per_sample=7.307e6,
    )  # fmt: skip
    first, last = (
        best(network, TrainingSpec(256, 1, "fp16", stack="eager", channels_last=layout), A100, 1)[
            "step_time_s"
        ]
        for layout in (False, True)
    )
    assert first < 0.5 * last


def test_consumer_cards_clock_above_their_rated_speed() -> None:
    training, constants = TrainingSpec(64, 1, "fp16", stack="eager"), load_constants()
    rated = constants.replace({"vision.clock_ratio": 1.0})
    for name, gains in (("rtx3090-24gb-pcie", True), ("rtx6000-24gb-pcie", False), ("a10-24gb-pcie", False)):
        card = {**T4, "accelerator": name}
        with_clock, without = (
            best(RESNET, training, card, 1, constants=made)["step_time_s"] for made in (constants, rated)
        )
        assert (with_clock < without) == gains, name


def test_narrow_linear_layers_reach_less_of_the_peak() -> None:
    """At equal FLOPs, twice as many inputs and outputs mean half the width of the matrices."""
    wide = find_published("vit_huge_patch14_224")
    assert wide is not None

    def seconds(times: float, monkeypatch: pytest.MonkeyPatch) -> float:
        values = tuple(
            v * (times if n == "linear_elements" else 1.0) for n, v in zip(FIELDS, wide.values, strict=True)
        )
        monkeypatch.setattr(
            "planner.performance.operators.operators_of", lambda *_: Operators(values, published=True)
        )
        model = ModelSpec(
            "vit_huge_patch14_224", ModelFamily.VIT, wide.params, image_size=224,
            forward_flops_per_sample=wide.flops, activations_per_sample=wide.activations,
        )  # fmt: skip
        training = TrainingSpec(64, 1, "bf16", stack="tuned")
        free = load_constants().replace({"vision.passes.convolution": 0.0})  # no traffic of the layers' own
        return float(best(model, training, A100, 1, constants=free)["step_time_s"])

    with pytest.MonkeyPatch.context() as patch:
        assert seconds(2.0, patch) > 1.1 * seconds(1.0, patch)


@draws(20)
@given(
    model=st.sampled_from([RESNET, MOBILE, VIT, REGNET]), precision=st.sampled_from(["fp32", "fp16", "bf16"])
)
def test_a_leaner_stack_is_never_slower(model: ModelSpec, precision: str) -> None:
    eager, compiled, tuned = (_seconds(model, stack, precision) for stack in ("eager", "compiled", "tuned"))
    assert tuned <= compiled * (1 + 1e-9) <= eager * (1 + 2e-9)


def test_the_contiguous_layout_costs_time_in_16_bit() -> None:
    last = TrainingSpec(256, 1, "fp16", stack="eager", channels_last=True)
    first = replace(last, channels_last=None)  # what an eager stack has by default
    assert best(RESNET, first, A100, 1)["step_time_s"] > best(RESNET, last, A100, 1)["step_time_s"]


def test_compilers_keep_the_contiguous_layout_of_grouped_convolutions() -> None:
    chosen = TrainingSpec(256, 1, "fp16", stack="compiled")
    times = {
        layout: best(REGNET, replace(chosen, channels_last=layout), A100, 1)["step_time_s"]
        for layout in (None, True, False)
    }
    assert times[None] == times[False] < 0.5 * times[True]
