"""The presets: complete, sourced, findable however they are spelt, true to the published sizes."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.estimation.answer import estimate_workload
from planner.inputs.load import parse_workload
from planner.inputs.model_config.diffusion import read_diffusion
from planner.inputs.model_config.model import Keys
from planner.inputs.models import count_params, fill_dimensions
from planner.inputs.presets import _normal, _stepwise_gelu, find_preset, load_presets, why_not_modelled
from planner.inputs.resolve import resolve_model
from planner.inputs.training_schema import Model
from planner.performance.kernels import score_ratio
from planner.performance.parts import model_of
from planner.performance.work import layer_params
from tests.planner.inputs.unet_count import count_unet

SHARED = Path(__file__).parents[4] / "shared" / "tariffs" / "model_presets.csv"
# Attention of these models is not described by heads and head_dim: their sizes are given, not counted.
LATENT_ATTENTION = {
    "deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "kimi-k2", "moonlight-16b-a3b", "glm-4.7-flash",
    "minicpm3-4b", "deepseek-v3.2", "glm-5", "kimi-vl-a3b", "mistral-small-4-119b",
}  # fmt: skip
# Their layers differ, or parts stand before the language model: counted in test_model_config.py, by the size of the
# encoder (`ENCODERS`), or compared with the published size alone.
COUNTED_BY_LAYER = {
    *(f"mamba2-{size}" for size in ("130m", "370m", "780m", "1.3b", "2.7b")), "nemotron-h-8b",
    "nemotron-3-nano-30b-a3b", "jamba-1.5-mini", "jamba-1.5-large", "qwen3-next-80b-a3b", "qwen3-vl-4b",
    "qwen2.5-vl-7b", "qwen3-vl-2b", "qwen3-vl-30b-a3b", "qwen2.5-vl-3b", "qwen3-vl-8b", "qwen3-vl-32b",
    "qwen2.5-vl-32b", "qwen2.5-vl-72b", "qwen2-vl-2b",
    "qwen3-vl-235b-a22b", "llama-3.2-vision-11b", "llama-3.2-vision-90b", "lfm2-8b-a1b", "lfm2-24b-a2b",
    "glm-4.1v-9b", "glm-4.5v", "ministral-3-3b", "ministral-3-8b", "ministral-3-14b", "nemotron-nano-9b-v2",
    "nemotron-nano-12b-v2", "qwen3.5-9b", "qwen3.5-35b-a3b", "voxtral-mini-3b", "granite-4.0-h-micro",
    "granite-4.0-h-tiny", "granite-4.0-h-small", "granite-4.0-h-1b", "qwen3.5-4b", "qwen3.5-27b", "lfm2-1.2b",
    "lfm2-2.6b", "lfm2.5-vl-1.6b", "falcon-h1-3b", "falcon-h1-7b", "kimi-linear-48b-a3b", "gemma-3n-e2b",
    "gemma-3n-e4b", "qwen3.5-0.8b", "qwen3.5-122b-a10b", "qwen3.5-397b-a17b", "nemotron-3-super-120b-a12b",
    "nemotron-3-ultra-550b-a55b", "nemotron-h-56b", "nemotron-3-nano-4b",
    "gemma-4-e2b", "gemma-4-e4b", "gemma-4-26b-a4b", "gemma-4-31b", "internvl2.5-4b", "internvl2.5-8b",
    *(f"internvl3-{size}" for size in ("1b", "2b", "8b", "14b", "38b", "78b")),
    *(f"internvl3.5-{size}" for size in ("1b", "2b", "4b", "8b", "14b", "38b", "30b-a3b")), "llava-1.5-7b",
    "llava-1.5-13b", "llava-v1.6-mistral-7b", "llava-onevision-qwen2-7b", "paligemma-3b", "pixtral-12b",
    "phi-3.5-vision",
    "qwen2-audio-7b", "smolvlm2-500m",
}  # fmt: skip
PRESETS = load_presets()


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("llama-3-8b", "llama-3-8b"),
        ("llama3-8b", "llama-3-8b"),
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("LLAMA_2_7B", "llama-2-7b"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("gpt3-175b", "gpt-3-175b"),
        ("GPT-3", "gpt-3-175b"),
        ("bert-base-uncased", "bert-base"),
        ("google-bert/bert-large-uncased", "bert-large"),
        ("resnet50", "resnet-50"),
        ("ResNet-152", "resnet-152"),
        ("efficientnet_b7", "efficientnet-b7"),
        ("vit-b/16", "vit-base"),
        ("google/vit-large-patch16-224", "vit-large"),
        ("sdxl", "stable-diffusion-xl"),
        ("stable-diffusion-v1-5/stable-diffusion-v1-5", "stable-diffusion-1.5"),
        ("t5-11b", "t5-11b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("zai-org/glm-4-9b-chat-1m", "glm-4-9b-1m"),  # twice the keys and values of glm-4-9b
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    preset = find_preset(spelling)
    assert preset is not None
    assert preset.name == name


def test_required_models_are_there() -> None:
    required = [
        *(f"llama-2-{size}" for size in ("7b", "13b", "70b")),
        *("llama-3-8b", "llama-3-70b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"),
        *(f"gpt-3-{s}" for s in ("125m", "350m", "760m", "1.3b", "2.7b", "6.7b", "13b", "175b")),
        *("mixtral-8x7b", "mixtral-8x22b", "bert-base", "bert-large"),
        *(f"t5-{size}" for size in ("small", "base", "large", "3b", "11b")),
        *("vit-small", "vit-base", "vit-large", "vit-huge", "resnet-50", "resnet-101", "resnet-152"),
        *(f"efficientnet-b{n}" for n in range(8)),
        *("stable-diffusion-1.5", "stable-diffusion-2", "stable-diffusion-xl"),
    ]
    assert [name for name in required if name not in PRESETS] == []


def test_no_two_presets_share_a_spelling() -> None:
    seen: dict[str, str] = {}
    for preset in PRESETS.values():
        for spelling in (preset.name, *preset.aliases):
            assert seen.setdefault(_normal(spelling), preset.name) == preset.name


@pytest.mark.parametrize(
    "name",
    [
        "dlrm", "facebook/dlrm-v2", "RWKV-7", "yolov5x", "3d-unet", "XGBoost", "lightgbm", "prophet",
        "facebook/sam2.1-hiera-large", "nvidia/parakeet-tdt-0.6b-v3", "google/timesfm-2.5-200m-pytorch",
        "Prior-Labs/TabPFN-v2-clf", "arcinstitute/evo2_7b", "EvolutionaryScale/esm3-sm-open-v1", "openvla/openvla-7b",
        "Lightricks/LTX-Video", "MCG-NJU/videomae-base", "Qwen/Qwen3-Omni-30B-A3B-Instruct", "albert/albert-base-v2",
        "allenai/longformer-base-4096", "thuml/sundial-base-128m", "facebook/vit-mae-base", "facebook/ijepa_vith14_1k",
        "Wan-AI/Wan2.2-T2V-A14B",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    ],
)  # fmt: skip
def test_what_cannot_be_modelled_says_what_to_do_instead(name: str) -> None:
    assert "instead:" in why_not_modelled(name)
    assert find_preset(name) is None


@pytest.mark.parametrize("name", ["yolov5x", "YOLOv8m", "yolo11n.pt", "ultralytics/yolov8m"])
def test_a_detector_whose_flops_are_published_can_be_copied_from_the_message(name: str) -> None:
    section = re.search(r"instead: (model: \{.*?\})", why_not_modelled(name))
    assert section is not None
    text = (
        f"version: 1\nname: x\n{section[1]}\ntraining: {{samples: 1e6, global_batch: 64, precision: fp16}}\n"
    )
    (estimate,) = estimate_workload(
        parse_workload(text, Path("w.yaml")), ["p4d.24xlarge"], [1], calibrated=False
    ).estimates
    assert estimate.reason in (None, "") and estimate.throughput_per_s is not None
    if name == "yolov5x":
        assert (
            "params: 86.7e6, forward_flops_per_sample: 205.7e9, activations_per_sample: 278e6" in section[1]
        )
    assert "family cnn with params" in why_not_modelled("yolov9z")


def test_no_preset_is_called_something_that_cannot_be_modelled() -> None:
    for preset in PRESETS.values():
        assert [name for name in (preset.name, *preset.aliases) if why_not_modelled(name)] == []


def test_a_part_that_cannot_be_modelled_is_named_by_its_place() -> None:
    text = (
        "version: 1\nname: ads\nmodel: {parts: [{preset: dlrm}, {preset: bert-large}]}\n"
        "training: {samples: 1e6, global_batch: 4096}\n"
    )
    with pytest.raises(InputError, match=r"model\.parts\[0\]\.preset: 'dlrm'.*embedding_tables"):
        parse_workload(text, Path("ads.yaml"))


def test_unknown_names_are_not_guessed() -> None:
    assert find_preset("llama-3-9b") is None
    assert find_preset("") is None
    assert find_preset("///") is None
    assert find_preset("llama-3-9b-instruct") is None
    assert find_preset("whisper-large-v4") is None
    assert find_preset("gemma-2-9b" + "-it" * 100_000) is None  # at once


def test_a_name_of_weights_in_few_bits_says_which_model_and_how_it_is_trained() -> None:
    text = (
        "version: 1\nname: x\nmodel: {preset: unsloth/llama-3-8b-bnb-4bit}\n"
        "training: {tokens: 1e6, global_batch: 64}\n"
    )
    with pytest.raises(InputError, match=r"stored in few bits.*qlora.*did you mean 'llama-3-8b'"):
        parse_workload(text, Path("x.yaml"))


def test_every_row_has_a_source_and_a_date() -> None:
    for name, preset in PRESETS.items():
        assert preset.source, name
        assert preset.as_of[:4].isdigit(), name
        assert preset.params_basis, name
        assert preset.values["family"] in ("transformer", "cnn", "vit", "diffusion"), name


def test_every_preset_resolves() -> None:
    for name in PRESETS:
        resolved = resolve_model(Model(preset=name))
        assert resolved.params > 0, name
        if resolved.family == "transformer":
            assert resolved.layers and resolved.hidden and resolved.context_length, name
            assert resolved.active_params is None or resolved.active_params < resolved.params, name
        else:
            assert resolved.forward_flops_per_sample and resolved.activations_per_sample, name


def test_dimensions_reproduce_the_published_size() -> None:
    counted = [
        name
        for name, preset in PRESETS.items()
        if preset.values["family"] == "transformer"
        and "vocab" in preset.values  # else the source counts blocks only
        and name not in LATENT_ATTENTION | COUNTED_BY_LAYER
    ]
    assert len(counted) >= 100
    for name in counted:
        published = PRESETS[name].values
        values = dict(published)
        fill_dimensions(values)
        total, active = count_params(values)
        # Learned positions, which the formula leaves out, are above one per cent of the smallest models.
        positions = (PRESETS[name].sequence_length or 0) * int(values["hidden"])
        possible = (pytest.approx(total, rel=0.01), pytest.approx(total + positions, rel=0.01))
        assert published["params"] in possible, name
        if "active_params" in published:
            assert active == pytest.approx(published["active_params"], rel=0.01), name


# Billions of the encoder (InternViT-300M and -6B, CLIP ViT-L/14 at 336 pixels), and what its projector takes.
ENCODERS = {
    (0.304, 4096): (
        "internvl2.5-4b", "internvl2.5-8b", *(f"internvl3-{size}" for size in ("1b", "2b", "8b", "14b")),
        *(f"internvl3.5-{size}" for size in ("1b", "2b", "4b", "8b", "14b", "30b-a3b")), "phi-3.5-vision",
    ),
    (5.54, 12800): ("internvl3-38b", "internvl3-78b", "internvl3.5-38b"),
    (0.304, 1024): ("llava-1.5-7b", "llava-1.5-13b", "llava-v1.6-mistral-7b"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, names in ENCODERS.items() for name in names]
)
def test_what_stands_before_a_language_model_is_its_encoder(part: tuple[float, int], name: str) -> None:
    values = dict(PRESETS[name].values)
    fill_dimensions(values)
    hidden, (billions, width) = int(values["hidden"]), part
    before = int(PRESETS[name].values["params"]) - count_params(values)[0]
    assert before - (width + hidden) * hidden == pytest.approx(billions * 1e9, rel=0.02)


@pytest.mark.parametrize("name", [n for n, p in PRESETS.items() if p.values["family"] == "transformer"])
def test_memory_and_work_are_those_of_the_published_size(name: str) -> None:
    """State spaces and hybrids too: their layers are not what their widths alone would give."""
    model = model_of(resolve_model(Model(preset=name)))
    layer, active, embed = layer_params(model)
    assert model.layers is not None
    assert layer * model.layers + embed == pytest.approx(model.params, rel=0.01)
    used = model.active_params or model.params
    assert active * model.layers == pytest.approx(used - min(embed, used), rel=0.01)


def test_presets_attend_as_far_as_their_layers_do() -> None:
    def share(name: str, sequence: int) -> float:
        return score_ratio(model_of(resolve_model(Model(preset=name))), sequence)

    assert share("llama-3.1-8b", 131_072) == 1.0
    assert share("gemma-3-4b", 512) == 1.0
    assert share("gemma-3-4b", 131_072) == pytest.approx(5 / 34 + 29 / 34 * 2 / 128, rel=0.01)
    assert share("gpt-oss-20b", 131_072) == pytest.approx(0.5, rel=0.01)
    assert share("jamba-1.5-mini", 131_072) == 0.125
    assert share("mamba2-2.7b", 131_072) < 0.01
    assert share("modernbert-base", 8192) == pytest.approx(8 / 22 + 14 / 22 * 128 / 8192)


def test_models_whose_code_computes_gelu_in_steps() -> None:
    known = load_presets()
    for name in _stepwise_gelu():
        values = known[name].values
        assert values["stepwise_gelu"] is True and not values["gated_mlp"]
    own = {
        name: model_of(resolve_model(Model(preset=name))).stepwise_gelu
        for name in ("gpt2", "phi-2", "opt-1.3b", "distilgpt2", "gpt-neo-125m")
    }
    assert own == {"gpt2": True, "phi-2": True, "opt-1.3b": False, "distilgpt2": True, "gpt-neo-125m": True}
    assert not model_of(resolve_model(Model(preset="gpt2", stepwise_gelu=False))).stepwise_gelu


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-2-7b", 6.74),
        ("llama-3-8b", 8.03),
        ("llama-3.1-405b", 405.9),
        ("mixtral-8x7b", 46.7),
        ("gpt-3-175b", 174.6),
        ("bert-large", 0.335),
        ("t5-11b", 11.3),
        ("resnet-50", 0.02556),
        ("vit-base", 0.0866),
        ("llama-3.2-1b", 1.236),
        ("llama-3.3-70b", 70.55),
        ("llama-4-scout", 107.8),
        ("qwen3-4b", 4.02),
        ("qwen2-7b", 7.62),
        ("qwen3-vl-4b", 4.44),
        ("qwen3-next-80b-a3b", 79.7),
        ("deepseek-v2", 235.7),
        ("deepseek-v3", 671.0),
        ("gemma-2-9b", 9.24),
        ("gemma-3-27b", 27.0),
        ("mistral-small-24b", 23.57),
        ("phi-3.5-mini", 3.82),
        ("phi-4", 14.66),
        ("gpt-oss-120b", 116.8),
        ("smollm3-3b", 3.075),
        ("modernbert-base", 0.149),
        ("mamba-2-2.7b", 2.703),
        ("nemotron-h-8b", 8.1),
        ("jamba-1.5-large", 398.6),
        ("dinov2-large", 0.304),
        ("clip-vit-l-14", 0.4276),
        ("siglip-so400m", 0.878),
        ("whisper-large-v3", 1.5435),
        ("wav2vec2-large", 0.3154),
        ("sd3-medium", 2.03),
        ("flux.1-dev", 11.9),
        ("qwen1.5-moe-a2.7b", 14.3),
        ("lfm2-8b-a1b", 8.3),
        ("lfm2-24b-a2b", 24),
        ("minitron-4b", 4.19),
        ("llama-3.2-vision-11b", 10.6),
        ("llama-3.2-vision-90b", 88.8),
        ("qwen1.5-1.8b", 1.84),
        ("qwen-7b", 7.72),
        ("qwen-14b", 14.17),
        ("open_llama_3b", 3.43),
        ("seed-oss-36b", 36.15),
        ("dbrx-instruct", 131.6),
        ("bloomz-560m", 0.559),
        ("distilgpt2", 0.082),
        ("bert-base-multilingual-cased", 0.178),
        ("qwen2-vl-2b", 2.21),
        ("qwen2.5-vl-3b", 3.75),
        ("orpheus-3b", 3.3),
        ("qwen3-vl-8b", 8.77),
        ("cosmos-reason2-8b", 8.77),
        ("moonlight-16b-a3b", 16),
        ("gemma-3-270m", 0.27),
        ("minimax-m2", 230),
        ("glm-4.1v-9b", 10.3),
        ("glm-4.7-flash", 30),
        ("nemotron-nano-9b-v2", 8.89),
        ("nemotron-nano-12b-v2", 12.31),
        ("exaone-4.0-32b", 32),
        ("granite-4.0-h-small", 32.2),
        ("qwen3.5-35b-a3b", 35),
        ("dinov3-vitl16", 0.303),
        ("dinov3-vit7b16", 6.716),
        ("gte-multilingual-base", 0.305),
        ("clip-vit-h-14", 0.986),
        ("wan2.2-ti2v-5b", 5.0),
        ("wan2.1-t2v-14b", 14.29),
        ("wan2.1-i2v-14b-480p", 16.4),
        ("OpenGVLab/InternVL3-1B", 0.938),
        ("OpenGVLab/InternVL3-8B", 7.94),
        ("internvl3-38b", 38.4),
        ("internvl3-78b", 78.4),
        ("internvl3_5-1b", 1.06),
        ("internvl3.5-4b", 4.7),
        ("internvl3.5-8b", 8.5),
        ("internvl3.5-14b", 15.1),
        ("internvl3.5-38b", 38.4),
        ("internvl3.5-30b-a3b", 30.8),
        ("internlm3-8b", 8.8),
        ("falcon-h1-7b", 7.586),
        ("lfm2-1.2b", 1.17),
        ("lfm2-2.6b", 2.57),
        ("ling-mini-2.0", 16.26),
        ("gemma-4-31b", 30.7),
        ("gemma-4-26b-a4b", 25.2),
        ("kimi-linear-48b-a3b", 49.1),
        ("kimi-vl-a3b", 16.4),
        ("deepseek-v3.2", 671),
        ("glm-5", 744),
        ("llava-1.5-7b", 7.06),
        ("llava-v1.6-mistral-7b", 7.57),
        ("llava-onevision-qwen2-7b", 8.03),
        ("qwen2-audio-7b", 8.4),
        ("paligemma-3b", 2.92),
        ("mt5-base", 0.582),
        ("multilingual-e5-small", 0.118),
        ("distil-whisper/distil-large-v3", 0.756),
        ("nllb-200-distilled-600m", 0.615),
        ("qwen3-coder-480b-a35b", 480),
        ("qwen3.5-122b-a10b", 122),
        ("qwen3.5-397b-a17b", 397),
        ("nemotron-3-super-120b-a12b", 120),
        ("nemotron-3-ultra-550b-a55b", 550),
        ("nvidia/NVIDIA-Nemotron-3-Nano-4B", 4),
        ("nemotron-h-56b", 56),
        ("mistral-small-4-119b", 119),
        ("iquest-coder-v1-40b", 40),
        ("qwen1.5-72b", 72.3),
        ("qwen2-57b-a14b", 57.4),
        ("mistral-nemo-minitron-8b", 8.41),
        ("hunyuan-a13b", 80),
        ("deepseek-coder-1.3b", 1.35),
        ("pythia-14m", 0.0141),
        ("eurobert-210m", 0.21),
        ("bert-base-chinese", 0.102),
        ("bart-base", 0.139),
        ("mbart-large-50", 0.611),
        ("xglm-564m", 0.564),
        ("qwen/qwen3.6-27b", 27.4),
    ],
)
def test_well_known_sizes(name: str, billions: float) -> None:
    assert resolve_model(Model(preset=name)).params / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-vl-3b", 3.7546),
        ("qwen2.5-vl-7b", 8.2922),
        ("qwen2.5-vl-32b", 33.4527),
        ("qwen2.5-vl-72b", 73.4108),
    ],
)
def test_gates_of_the_image_encoder_are_counted(name: str, billions: float) -> None:
    assert resolve_model(Model(preset=name)).params / 1e9 == pytest.approx(billions, rel=0.001)


@pytest.mark.parametrize(
    ("name", "widths", "depths", "context", "side", "extra"),
    [
        ("stable-diffusion-1.5", (320, 640, 1280, 1280), (1, 1, 1, 0), 768, 64, 0),
        ("stable-diffusion-2", (320, 640, 1280, 1280), (1, 1, 1, 0), 1024, 64, 0),
        ("stable-diffusion-xl", (320, 640, 1280), (0, 2, 10), 2048, 128, 2816),
    ],
)
def test_unets_are_counted_layer_by_layer(
    name: str, widths: tuple[int, ...], depths: tuple[int, ...], context: int, side: int, extra: int
) -> None:
    count = count_unet(widths, depths, context, side, extra)
    values = PRESETS[name].values
    assert values["params"] == count.params
    assert values["forward_flops_per_sample"] == 2 * count.macs
    assert values["activations_per_sample"] == count.activations


def test_flux_dev_is_what_its_configuration_counts() -> None:
    """At 1,024 pixels, as it is used; the rows of MLPerf Training are of flux.1-schnell at 256."""
    keys = {
        "_class_name": "FluxTransformer2DModel",
        "num_layers": 19,
        "num_single_layers": 38,
        "guidance_embeds": True,
    }
    counted = read_diffusion(Keys(keys, "config.json")).values
    values = PRESETS["flux.1-dev"].values
    names = (
        "image_size",
        "params",
        "layers",
        "hidden",
        "heads",
        "forward_flops_per_sample",
        "activations_per_sample",
    )
    assert {name: values[name] for name in names} == {name: counted[name] for name in names}
    assert PRESETS["flux.1-schnell"].values["image_size"] == 256


def test_vit_flops_follow_from_its_dimensions() -> None:
    """Forward FLOPs (2 x multiply-adds) of ViT-B/16: 197 tokens, 12 blocks, attention products included."""
    tokens, width, blocks = 197, 768, 12
    macs = blocks * (12 * width * width * tokens + 2 * tokens * tokens * width) + 196 * 768 * width
    assert PRESETS["vit-base"].values["forward_flops_per_sample"] == pytest.approx(2 * macs, rel=0.01)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_file(), reason="needs the shared data beside the project")
def test_figures_equal_the_shared_table() -> None:
    with SHARED.open(encoding="utf-8") as file:
        shared = {row["name"]: row for row in csv.DictReader(file)}
    changed = {"gpt3-1.3b", "gpt3-13b", "sd-1.5-unet", "sd-2.x-unet", "sdxl-unet", "dit-xl-2-256"}
    changed |= {"gemma-2-9b", "gemma-2-27b"}  # the shared table pads their vocabulary
    compared = 0
    for name, row in shared.items():
        preset = find_preset(name.replace("_", "-"))
        if preset is None or name in changed:
            continue
        compared += 1
        for ours, theirs in (
            ("params", "params"),
            ("hidden", "hidden"),
            ("forward_flops_per_sample", "flops_per_sample"),
        ):
            if row[theirs]:
                assert float(preset.values[ours]) == float(row[theirs]), (name, ours)
    assert compared > 95
