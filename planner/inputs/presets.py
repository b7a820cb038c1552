"""Known models: the rows of data/presets.csv, found by name or alias however they are spelt."""

from __future__ import annotations

import re
from functools import cache

from planner.bundled import bundled_rows
from planner.records import record

_INTEGERS = frozenset(
    (
        "params", "active_params", "layers", "hidden", "heads", "kv_heads", "head_dim", "kv_width", "ffn", "vocab",
        "experts", "experts_per_token", "shared_experts", "moe_ffn", "dense_layers", "image_size",
        "forward_flops_per_sample", "activations_per_sample", "attention_window", "windowed_layers",
    )
)  # fmt: skip
_RATIOS = frozenset(("attention_ratio",))
_BOOLEANS = frozenset(("gated_mlp", "tied_embeddings"))
_TEXTS = frozenset(("family", "architecture"))
# Endings of names that change no size: how a model was tuned, its weights' file, its release (year and month, month and
# day, a version below 1), its context.
SAME_SIZES = (
    r"instruct|chat|base|it|pt|ft|sft|dpo|orpo|kto|ppo|grpo|simpo|rlhf|think(ing)?|reasoning|abliterated|uncensored|hf|"
    r"(19|2[0-9])[0-9]{2}|0[0-9]{3}|1[0-2][0-9]{2}|v0\.[0-9]+|[48]k|16k|32k|64k|128k|262k|1m"
)
# Endings that name how weights are stored in fewer bits.
FEW_BITS = (
    r"awq|gptq|aqlm|gguf|mlx|exl2|fp8|nf4|nvfp4|mxfp4|bnb|prequantized|[248]bit|[12]x(8|15|16)|[48]-bit|int[48]|"
    r"w[48]a(8|16)|g128|dynamic|quantized|quantized\.w[48]a(8|16)|unsloth"
)
_SAME_SIZES = re.compile(rf"[-_.]({SAME_SIZES})$", re.IGNORECASE)
_STORED = re.compile(rf"[-_.]({SAME_SIZES}|{FEW_BITS})$", re.IGNORECASE)
_MOST_ENDINGS = 8  # that a name has: a long one is not shortened without end


@record(frozen=True)
class Preset:
    """A known model: `values` holds the known fields of `Model`, `sequence_length` its published context.

    `sample`: what one sample of a model that takes neither tokens nor images is; "" for others.
    """

    name: str
    aliases: tuple[str, ...]
    values: dict[str, int | float | bool | str]
    sequence_length: int | None
    params_basis: str
    source: str
    as_of: str
    note: str
    sample: str


def _normal(name: str) -> str:
    """Reduce a spelling to what tells models apart: not case, separators or an organisation in front.

    A point between digits does tell them apart (opt-1.3b is not opt-13b) and stays.
    """
    word = name.lower() if _is_patch(name) else name.lower().rsplit("/", 1)[-1]
    return re.sub(r"(?<![0-9])\.|\.(?![0-9])|[^a-z0-9.]", "", word)


def _is_patch(name: str) -> bool:
    """Tell `vit-b/16`, where the slash belongs to the name, from `meta-llama/Llama-3.1-8B`."""
    return name.rsplit("/", 1)[-1].isdigit()


@cache
def _rows() -> dict[str, dict[str, str]]:
    """Rows of presets.csv by name, in the order of the file."""
    return {row["preset"]: row for row in bundled_rows("presets.csv")}


@cache
def encoder_positions() -> dict[str, str]:
    """How encoders number their tokens where they have no learned table: `rotary` or `relative`, by preset."""
    return {row["preset"]: row["positions"] for row in bundled_rows("encoder_positions.csv")}


@cache
def _stepwise_gelu() -> frozenset[str]:
    """Presets whose usual code computes GELU operator by operator (stepwise_gelu.csv says where)."""
    return frozenset(row["preset"] for row in bundled_rows("stepwise_gelu.csv"))


@cache
def _samples() -> dict[str, str]:
    """What a sample of a model of sound is (preset_samples.csv says where it is stated)."""
    return {row["preset"]: row["sample"] for row in bundled_rows("preset_samples.csv")}


@cache
def load_presets() -> dict[str, Preset]:
    """Read all presets, by name, in the order of the file."""
    return {name: _preset(row) for name, row in _rows().items()}


def _preset(row: dict[str, str]) -> Preset:
    values: dict[str, int | float | bool | str] = {}
    for key, text in row.items():
        if not text:
            continue
        if key in _INTEGERS:
            values[key] = int(text)
        elif key in _RATIOS:
            values[key] = float(text)
        elif key in _BOOLEANS:
            values[key] = text == "true"
        elif key in _TEXTS:
            values[key] = text
    if row["preset"] in _stepwise_gelu():
        values["stepwise_gelu"] = True
    return Preset(
        name=row["preset"],
        aliases=_aliases(row),
        values=values,
        sequence_length=int(row["sequence_length"]) if row["sequence_length"] else None,
        params_basis=row["params_basis"],
        source=row["source"],
        as_of=row["as_of"],
        note=row["note"],
        sample=_samples().get(row["preset"], ""),
    )


def _aliases(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(alias for alias in row["aliases"].split(";") if alias)


@cache
def _index() -> dict[str, str]:
    """Map every normal spelling to the preset's name."""
    table: dict[str, str] = {}
    for preset, row in _rows().items():
        for name in (preset, *_aliases(row)):
            table.setdefault(_normal(name), preset)
    return table


def find_preset(name: str) -> Preset | None:
    """Return the preset called `name`, or None: it alone is taken from its row.

    What a collection's name has at its end and changes no size (`Qwen/Qwen2.5-7B-Instruct`) does not matter.
    """
    return _preset(_rows()[name]) if name in _rows() else _shortened(name, _SAME_SIZES)


def preset_in_few_bits(name: str) -> Preset | None:
    """Return the preset whose weights, stored in fewer bits, a name stands for (`unsloth/llama-3-8b-bnb-4bit`)."""
    return _shortened(name, _STORED)


def _shortened(word: str, endings: re.Pattern[str]) -> Preset | None:
    """The preset of a name, without as few of its endings as need be."""
    for _ in range(_MOST_ENDINGS + 1):
        preset = _index().get(_normal(word))
        if preset is not None:
            return _preset(_rows()[preset])
        word = endings.sub("", word)
    return None


@cache
def load_released() -> dict[str, tuple[str, str]]:
    """Read released_precision.csv: the precision of weights that were released in fewer bits, and who says so."""
    return {
        row["preset"]: (row["precision"], row["source"]) for row in bundled_rows("released_precision.csv")
    }


@cache
def _not_modelled() -> tuple[dict[str, str], ...]:
    return tuple(bundled_rows("not_modelled.csv"))


def why_not_modelled(name: str) -> str:
    """Why a model of that name is not a preset and what to give instead; empty where nothing is known of it."""
    word = name.strip().lower().rsplit("/", 1)[-1]
    for row in _not_modelled():
        if re.fullmatch(row["pattern"], word):
            instead = _published_detector(word) or row["instead"]
            return f"{row['name']}: {row['reason']}; instead: {instead}"
    return ""


def published_detector(word: str, image_size: int | None = None) -> dict[str, int | float | str]:
    """The section `model` of a detector whose FLOPs are published, at its own or another size of images.

    Activations are in proportion to those of ResNet-50. Empty where nothing is published.
    """
    found = {row["name"]: row for row in bundled_rows("detectors.csv")}.get(
        re.sub(r"\.pt$|[^a-z0-9]", "", word)
    )
    if found is None:
        return {}
    size = image_size or int(found["image_size"])
    usual = load_presets()["resnet-50"].values
    flops = float(found["forward_flops"]) * (size / int(found["image_size"])) ** 2
    kept = flops * float(usual["activations_per_sample"]) / float(usual["forward_flops_per_sample"])
    return {
        "family": "cnn", "params": int(found["params"]), "forward_flops_per_sample": float(f"{flops:.6g}"),
        "activations_per_sample": float(f"{kept:.3g}"), "image_size": size, "flops_within": 1.5,
    }  # fmt: skip


def _published_detector(word: str) -> str:
    values = published_detector(word)
    if not values:
        return ""
    params, flops, kept = (float(values[key]) for key in (
        "params", "forward_flops_per_sample", "activations_per_sample"))  # fmt: skip
    return (
        f"model: {{family: cnn, params: {params / 1e6:g}e6, forward_flops_per_sample: {flops / 1e9:g}e9, "
        f"activations_per_sample: {kept / 1e6:.0f}e6, image_size: {values['image_size']}, flops_within: 1.5}} "
        "(parameters and FLOPs as published, activations in proportion to those of resnet-50), and planner calibrate "
        "with a measured run"
    )


def preset_names() -> tuple[str, ...]:
    """Return all names and aliases, for suggestions."""
    return tuple(name for p in load_presets().values() for name in (p.name, *p.aliases))
