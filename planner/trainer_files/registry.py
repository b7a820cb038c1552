"""The kinds of files that are read, and which of them a file is; others are known by data/other_trainers.csv."""

from __future__ import annotations

import importlib
from functools import cache
from typing import cast

from planner.bundled import bundled_rows
from planner.errors import InputError, shortened
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Format, Read, Reading, Recognise

_ROOM = "planner.trainer_files.formats"

FORMATS: dict[str, Format] = {
    "axolotl": Format("axolotl", f"{_ROOM}.axolotl", 1),
    "llama_factory": Format("LLaMA-Factory", f"{_ROOM}.llama_factory", 1),
    "llama_factory_v1": Format("LLaMA-Factory v1", f"{_ROOM}.llama_factory_v1", 1),
    "trl": Format("TRL / Hugging Face Trainer", f"{_ROOM}.trl", 1),
    "trainer_script": Format("Python around a trainer of Transformers or TRL", f"{_ROOM}.trainer_script", 1),
    "xtuner": Format("XTuner", f"{_ROOM}.xtuner", 1),
    "nemo_recipe": Format("NeMo 2 / Megatron Bridge recipe", f"{_ROOM}.nemo_recipe", 1),
    "torchtitan": Format("torchtitan", f"{_ROOM}.torchtitan", 1),
    "megatron": Format("Megatron-LM", f"{_ROOM}.megatron", 1),
    "nemo": Format("NeMo", f"{_ROOM}.nemo", 1),
    "verl": Format("verl", f"{_ROOM}.verl", 1),
    "areal": Format("AReaL", f"{_ROOM}.areal", 1),
    "prime_rl": Format("prime-rl", f"{_ROOM}.prime_rl", 1),
    "deepspeed_chat": Format("DeepSpeed-Chat", f"{_ROOM}.deepspeed_chat", 1),
    "openrlhf": Format("OpenRLHF", f"{_ROOM}.openrlhf", 1),
    "by_table": Format("EasyR1 / SkyRL / slime / RL2 / ROLL / alpaca-lora / mlx-lm", f"{_ROOM}.by_table", 1),
    "torchtune": Format("torchtune", f"{_ROOM}.torchtune", 1),
    "litgpt": Format("LitGPT", f"{_ROOM}.litgpt", 1),
    "ms_swift": Format("ms-swift", f"{_ROOM}.ms_swift", 1),
    "unsloth": Format("Unsloth", f"{_ROOM}.unsloth", 1),
    "open_instruct": Format("open-instruct", f"{_ROOM}.open_instruct", 1),
    "gpt_neox": Format("GPT-NeoX", f"{_ROOM}.gpt_neox", 1),
    "composer": Format("LLM Foundry / OLMo", f"{_ROOM}.composer", 1),
    "oumi": Format("Oumi", f"{_ROOM}.oumi", 1),
    "maxtext": Format("MaxText", f"{_ROOM}.maxtext", 1),
    "levanter": Format("Levanter", f"{_ROOM}.levanter", 1),
    "fairseq": Format("fairseq", f"{_ROOM}.fairseq", 1),
    "nanogpt": Format("nanoGPT", f"{_ROOM}.nanogpt", 1),
    "nanotron": Format("nanotron", f"{_ROOM}.nanotron", 1),
    "diffusion": Format("SimpleTuner / kohya sd-scripts / AI Toolkit", f"{_ROOM}.diffusion", 1),
    "vision": Format("OpenCLIP / timm / torchvision", f"{_ROOM}.vision", 1),
    "ultralytics": Format("Ultralytics YOLO", f"{_ROOM}.ultralytics", 1),
    "peft": Format("PEFT", f"{_ROOM}.peft", 2),
    "accelerate": Format("Accelerate", f"{_ROOM}.accelerate", 3),
    "deepspeed": Format("DeepSpeed", f"{_ROOM}.deepspeed", 4),
    "huggingface": Format("Hugging Face config.json", f"{_ROOM}.huggingface", 5),
}


_WORKLOAD_KEYS = frozenset({"version", "model", "training"})


def detect(document: Document) -> str:
    """Name the format of a file by its content.

    Raises:
        InputError: it is none that is known, or looks like several; names them.
    """
    matching = [name for name, kind in FORMATS.items() if _recogniser(kind)(document)]
    if len(matching) == 1:
        return matching[0]
    if not matching and set(document.data) >= _WORKLOAD_KEYS:
        raise InputError(
            f"{document.path}: is a workload of planner already: planner validate {document.path}, "
            f"then planner optimize {document.path}"
        )
    if not matching and (reason := _other_trainer(document)):
        raise InputError(f"{document.path}: {reason}")
    if not matching:
        formats = ", ".join(kind.title for kind in FORMATS.values())
        held = document.data["values"] if document.syntax == "python" else document.data
        keys = ", ".join([shortened(str(key)) for key in held if key != "__name__"][:8]) or "none"
        named = document.data.get("config")
        hint = "name the format with --format if it is one"
        if isinstance(named, str) and named.endswith((".yaml", ".yml", ".json", ".toml")):
            hint = f"it starts {named[:200]}: name that file with --from"
        elif document.syntax == "python":
            hint = "a training loop is code: planner init --model NAME drafts its model, other keys by --set"
        hint = "; ".join([*document.remarks[:1], hint])
        raise InputError(
            f"{document.path}: is none of the files that are read ({formats}); its keys: {keys}; {hint}"
        )
    titles = " and ".join(FORMATS[name].title for name in matching)
    raise InputError(f"{document.path}: looks like {titles}; say which with --format {' or '.join(matching)}")


def read(document: Document, name: str) -> Reading:
    """Read a file of a named format.

    Raises:
        InputError: a value cannot be; names file and key.
    """
    kind = FORMATS[name]
    reading = cast("Read", importlib.import_module(kind.module).read)(document)
    reading.warnings.extend(f"{document.path.name}: {remark}" for remark in document.remarks)
    for key, value in reading.unresolved.items() if isinstance(reading, Lookup) else ():
        reading.warn(
            f"{key}: {value[:80]} cannot be worked out here: it counts as not given (--set, or write it out)"
        )
    for key, number in reading.negative.items() if isinstance(reading, Lookup) else ():
        reading.warn(f"{key}: {number:g} is below 0: it counts as not given")
    return reading


def _recogniser(kind: Format) -> Recognise:
    return cast("Recognise", importlib.import_module(kind.module).recognises)


@cache
def _rows() -> tuple[tuple[str, tuple[tuple[str, ...], ...], str], ...]:
    return tuple(
        (row["tool"], tuple(tuple(sign.split("+")) for sign in row["signs"].split(";")), row["instead"])
        for row in bundled_rows("other_trainers.csv")
    )


def _other_trainer(document: Document) -> str:
    """Which trainer that is not read a file belongs to, and what to give instead; empty: none that is known."""
    keys = Lookup(document)
    called = {call.last for call in document.data["calls"]} if document.syntax == "python" else set()

    def holds(key: str) -> bool:
        return key.removeprefix("calls.") in called if key.startswith("calls.") else keys.get(key) is not None

    for tool, signs, instead in _rows():
        if any(all(holds(key) for key in sign) for sign in signs):
            return f"is a file of {tool}, which is not read: {instead}"
    return ""
