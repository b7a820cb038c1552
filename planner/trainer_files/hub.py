"""From the name of a model in a public collection to a preset: by name alone, nothing is looked up elsewhere."""

from __future__ import annotations

import re

from planner.inputs.presets import FEW_BITS, SAME_SIZES, Preset, find_preset, why_not_modelled

# Endings that name a variant of the same sizes: those of presets, and how it was tuned, stored or released besides.
_ENDINGS = re.compile(
    rf"[-_.]({SAME_SIZES}|{FEW_BITS}|q?lora|distilled|merged|mixture|checkpoints|"
    r"fp16|fp32|bf16|linearized|dequantized|unquantized|fixed|mirror|original|v[0-9]+(\.[0-9]+)?|preview)$",
    re.IGNORECASE,
)
# Parts of a name that tell in how many bits the weights are stored; fewer than four count as four.
_STORED = {
    8: re.compile(r"[-_.](8[-_]?bit|int8|w8a(8|16))(?![0-9a-z])", re.IGNORECASE),
    4: re.compile(
        r"[-_.](gptq|awq|aqlm|nf4|nvfp4|mxfp4|[24][-_]?bit|int4|w4a(8|16))(?![0-9a-z])", re.IGNORECASE
    ),
}
_BEGINNINGS = re.compile(r"^(meta[-_]|unsloth[-_])", re.IGNORECASE)
# where Hugging Face's tools keep what they downloaded: `models--Qwen--Qwen3-8B/snapshots/0a1b2c`
_CACHED = re.compile(r"(?:.*/)?models--([^/]+?)--([^/]+)(?:/snapshots(?:/[^/]*)?)?/?")
# what ModelScope writes for a dot in a folder: `Qwen1___5-0___5B`
_DOT = "___"
_MOST_ENDINGS = 8
_LONGEST = 200
# Words of what is more, or less, than the model that the rest of the name tells.
_OTHERS = re.compile(
    r"vl|vision|visual|vila|blip|vace|multilingual|llava|intern|omni|audio|speech|voice|asr|tts|draft|eagle|medusa|mamba|"
    r"moe|merge|aligner|[0-9]x|[tfis]l?f?2v\b|\bfun\b|\bcontrol|\bcamera\b|\banimate\b",
    re.IGNORECASE,
)
# The same behind a model's name, and networks that are only called after it: those that guess its next words, and what
# is cut, grown, looped, tiny, or sized anew.
_OTHER_SIZES = re.compile(
    rf"{_OTHERS.pattern}|specul|dflash|dspark|hydra|accelerator|\bassistant$|\bv$|\b\w\w-to-\w\w\b|\bloop|prune|reap|shear|depth|width|half|"
    r"layer|expand|upscal|franken|mini|tiny|micro|random|dummy|debug|scratch|init|reduc|slim|small|embed|clip|encoder|adapter-only|[0-9][bmlhdx](?![a-z0-9])",
    re.IGNORECASE,
)
_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?[bm]", re.IGNORECASE)


def name_of_folder(name: str) -> str:
    """The model that a folder of Hugging Face's or ModelScope's cache holds; any other name as it is."""
    cached = _CACHED.fullmatch(name) if len(name) < _LONGEST * 2 else None
    return f"{cached[1]}/{cached[2]}" if cached is not None else name.replace(_DOT, ".")


def preset_of_hub_name(name: str) -> Preset | None:
    """The preset that a model's name stands for, None where none does.

    Case, the organisation and endings that change no size (`-Instruct`, `-AWQ`, `-2507`) do not matter, nor does what
    the one who tuned it put before the name, unless that is known to be another network (`detr-resnet-50`).
    """
    word = name.strip().rstrip("/").rsplit("/", 1)[-1]
    if len(word) > _LONGEST:
        return None
    for _ in range(_MOST_ENDINGS):
        for spelling in (word, _BEGINNINGS.sub("", word)):
            preset = find_preset(spelling)
            if preset is not None:
                return preset
        shorter = _ENDINGS.sub("", word)
        if shorter in (word, ""):
            break
        word = shorter
    return None if why_not_modelled(word) else _tuned_from(word) or _tuned_between(word) or _tuned_after(word)


def _tuned_from(word: str) -> Preset | None:
    """The preset at the end of a tuned model's name: `Hermes-3-Llama-3.1-8B`."""
    parts = word.split("-")
    for at in range(1, len(parts) - 1):
        tail = "-".join(parts[at:])
        if any(letter.isdigit() for letter in tail) and not _OTHERS.search("-".join(parts[:at])):
            preset = find_preset(tail)
            if preset is not None:
                return preset
    return None


def _tuned_between(word: str) -> Preset | None:
    """The preset around what the one who tuned it put before the size: `Llama-3.1-Tulu-3-8B`."""
    *head, size = word.split("-")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?[bB]", size):
        return None
    for end in range(len(head) - 1, 0, -1):
        family, between = "-".join(head[:end]), "-".join(head[end:])
        if any(letter.isdigit() for letter in family) and not _OTHERS.search(between):
            preset = find_preset(f"{family}-{size}")
            if preset is not None:
                return preset
    return None


def _tuned_after(word: str) -> Preset | None:
    """The preset before what the one who tuned it put behind the size: `Mistral-7B-OpenOrca`."""
    parts = re.split(r"[-_]", word)
    for end in range(len(parts) - 1, 0, -1):
        base, behind = "-".join(parts[:end]), "-".join(parts[end:])
        if _OTHER_SIZES.search(behind):
            return None
        if any(_SIZE.fullmatch(part) for part in parts[:end]):
            preset = find_preset(base) or _tuned_from(base) or _tuned_between(base)
            if preset is not None:
                return preset
    return None


def preset_before(name: str) -> Preset | None:
    """The preset that a name only begins with (`roberta-base-squad2`), which may or may not be the same network."""
    parts = name.strip().rstrip("/").rsplit("/", 1)[-1][:_LONGEST].split("-")
    found = (find_preset("-".join(parts[:end])) for end in range(len(parts) - 1, 1, -1))
    return next((preset for preset in found if preset is not None), None)


def bits_of_hub_name(name: str) -> int | None:
    """Bits of stored weights that a model's name tells (`-AWQ`, `-GPTQ-Int8`), None where it tells none."""
    return next((bits for bits, pattern in _STORED.items() if pattern.search(name)), None)
