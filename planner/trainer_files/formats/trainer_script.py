"""A Python script or notebook around a trainer of Transformers, TRL, Unsloth or Sentence Transformers.

The arguments of its configuration, of its adapters and of the loading of its model are those that TRL's own files have
(planner.trainer_files.formats.trl), so they are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.trainer_files.formats import trl
from planner.trainer_files.formats.common import MICRO_BATCH
from planner.trainer_files.formats.configured import add_configured
from planner.trainer_files.model import Document, Reading
from planner.trainer_files.python_values import UNKNOWN, Call, Imported

_TRAINER = re.compile(r"(?:.*\.)?(\w*Trainer)")
_SETTINGS = re.compile(r"\w*(TrainingArguments|Config)")
_OF_TRL = re.compile(r"(SFT|DPO|GRPO|RLOO|KTO|Reward|PPO|ORPO|CPO|GKD|Distillation|OnlineDPO|PRM)Config")
_NO_SETTINGS = re.compile(
    r"(Auto|Lora|Peft|BitsAndBytes|Generation|Quantization|Quanto|Vera|IA3|AdaLora)\w*Config|\w*ModelConfig"
)
# models that a script loads beside the one that it trains
_NO_MODEL = re.compile(
    r"Token|Process|Extractor|Config|Scheduler|Pipeline|Streamer|dataset|VAE|Autoencoder|Peft", re.IGNORECASE
)
_EMBEDDERS = ("SentenceTransformer", "CrossEncoder", "SparseEncoder", "ColBERT", "MultiVectorEncoder")
_OBJECTIVES = {
    "SFTTrainer": "sft", "DPOTrainer": "dpo", "ORPOTrainer": "orpo", "CPOTrainer": "orpo", "KTOTrainer": "kto",
    "RewardTrainer": "reward", "PPOTrainer": "ppo", "GRPOTrainer": "grpo", "RLOOTrainer": "grpo",
    "GKDTrainer": "distill",
    "SentenceTransformerTrainer": "contrastive", "SparseEncoderTrainer": "contrastive", "CrossEncoderTrainer": "sft",
    "OnlineDPOTrainer": "online_dpo", "PRMTrainer": "sft", "XPOTrainer": "xpo", "NashMDTrainer": "nash_md",
    "MultiVectorEncoderTrainer": "contrastive", "DistillationTrainer": "distill",
}  # fmt: skip
# arguments that Lightning's Trainer has, and no other
_LIGHTNING = frozenset({"devices", "accelerator", "max_epochs", "strategy", "num_nodes", "plugins"})
# argument of `get_peft_model` and `LoraConfig` -> that of TRL's command line
_ADAPTERS = {"r": "lora_r", "lora_alpha": "lora_alpha", "target_modules": "lora_target_modules",
             "use_gradient_checkpointing": "use_gradient_checkpointing"}  # fmt: skip
_OF_TRAINER = ("max_seq_length", "packing", "max_length", "max_prompt_length")
# arguments without which speed, memory or length are other ones
_MATTERS = (
    "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "max_steps", "bf16", "fp16",
    "optim",
    "max_length", "max_seq_length", "max_completion_length", "num_generations", "gradient_checkpointing", "deepspeed",
    "fsdp", "packing", "args", "peft_config", "quantization_config", "load_in_4bit", "load_in_8bit", "r",
    "generation_batch_size", "steps_per_generation",
)  # fmt: skip
# What Unsloth takes where a script is silent (unsloth/models/loader.py and llama.py, read on 2026-11-30).
_LONGEST_OF_UNSLOTH = 2048
_PLACES = ("model_name", "max_seq_length", "dtype", "load_in_4bit", "load_in_8bit")
_UNSLOTH = re.compile(r"(.*\.)?Fast(Language|Vision)?Model\.from_pretrained")
_CHOSEN = (
    "load_in_4bit", "load_in_8bit", "load_in_16bit", "load_in_fp8", "full_finetuning", "quantization_config",
)  # fmt: skip
_RANK = 8  # of peft/tuners/lora/config.py
_BITS = ("load_in_4bit", "load_in_8bit")
_LENGTH = "max_seq_length"
_OF_MODEL = (*_BITS, _LENGTH, "attn_implementation", "use_gradient_checkpointing")


def recognises(document: Document) -> bool:
    """Whether the script starts a trainer, or holds the arguments of one."""
    if document.syntax != "python":
        return False
    calls: list[Call] = document.data["calls"]
    return any(_is_trainer(call) or _is_settings(call) for call in calls)


def read(document: Document) -> Reading:
    """Read a script; of several trainings the last."""
    calls: list[Call] = document.data["calls"]
    trainers = [call for call in calls if _is_trainer(call)]
    trainer = trainers[-1] if trainers else Call("", (), {})
    settings = _settings(trainer, calls)
    loaded = _by_name(_loaded(trainer, calls))
    adapters = [call for call in _adapters(trainer, calls) if call.named.get("r") or _is_lora(call)]
    data = _arguments(trainer, settings.named, loaded, adapters)
    teacher = data.pop("teacher_model", None)
    if any(_recomputes(call) for call in calls):
        data.setdefault("gradient_checkpointing", True)
    if any(call.name == "torch.compile" for call in calls):
        data["torch_compile"] = True
    unsloth = any(call.name.startswith("Fast") for call in calls)
    own = _OF_TRL.fullmatch(settings.last) is not None or (trainer.last in _OBJECTIVES and not settings.name)
    programs = (
        trainer.last,
        *(("unsloth",) if unsloth else ()),
        *((trl.TRL,) if own and not unsloth else ()),
    )
    reading = trl.read(replace(document, data=data, programs=programs))
    if not reading.hub_name:
        add_configured(reading, trainer.named.get("model", next(iter(trainer.positional), None)))
    if unsloth:
        _fill_groups(reading)
    if loaded is not None and _UNSLOTH.fullmatch(loaded.name):
        _fill_of_unsloth(reading, loaded, data)
    if "lora_r" not in data and any(_is_lora(call) for call in adapters):
        reading.add("training.lora_rank", _RANK, "the default of PEFT", assumed=True)
    _settle(reading, document, trainer, data)
    _settle_distillation(reading, trainer, data, teacher)
    sources = [settings, trainer, *adapters, *([loaded] if loaded is not None else [])]
    names = dict.fromkeys(name for source in sources for name in _not_read(source))
    unread = [name for name in names if name in _MATTERS or name.startswith("**")]
    if unread:
        reading.warn(f"{', '.join(unread)}: the script works out the value, so it is not read")
    if len({call.name for call in trainers}) > 1:
        reading.warn(f"{len(trainers)} trainers: what the last one, {trainer.last}, does is read")
    return reading


def _settle(reading: Reading, document: Document, trainer: Call, data: Mapping[str, Any]) -> None:
    """What the class of the trainer says, and what was read from the defaults of the script's own command line."""
    reading.facts.pop("training.objective", None)
    if trainer.last in _OBJECTIVES:
        reading.add("training.objective", _OBJECTIVES[trainer.last], trainer.last)
        if "Encoder" not in trainer.last and "Sentence" not in trainer.last:
            trl.add_lengths_of_trl(reading, rloo=trainer.last == "RLOOTrainer")
    if _OBJECTIVES.get(trainer.last) == "contrastive":
        reading.add("training.packing", False, trainer.last)
    if data.get("auto_find_batch_size") is True:
        reading.warn(f"auto_find_batch_size: {reading.facts[MICRO_BATCH].value} is where it begins")
    defaults: list[str] = document.data["defaults"]
    if defaults:
        shown = ", ".join(defaults[:8]) + (" ..." if len(defaults) > 8 else "")
        reading.warn(f"arguments of its command line are read as their defaults: {shown}")


def _settle_distillation(reading: Reading, trainer: Call, data: Mapping[str, Any], teacher: object) -> None:
    """The teacher, and that the student's own answers are not counted: half of the batches by GKD's default."""
    if teacher:
        reading.add("training.teacher", teacher, "teacher_model")
    share = data.get("lmbda")
    if trainer.last == "GKDTrainer" and share != 0:
        reading.warn("lmbda: the time in which the student writes its own answers is not counted")


def _not_read(call: Call) -> Iterator[str]:
    """Arguments whose value is not known, or is what a function of the script or of a package returns."""
    yield from call.unread
    yield from (
        name
        for name, value in call.named.items()
        if isinstance(value, Call) and not _is_call(value, _SETTINGS)
    )


def _fill_groups(reading: Reading) -> None:
    """Unsloth raises the batch of an accelerator to the responses to one prompt, where it is less."""
    group, micro = reading.facts.get("rollouts.samples_per_prompt"), reading.facts[MICRO_BATCH]
    if group is not None and micro.value % group.value:
        text = f"{micro.where.partition(': ')[2]} {micro.value}, which Unsloth raises to num_generations"
        reading.add(MICRO_BATCH, group.value, text, assumed=True)


def _fill_of_unsloth(reading: Reading, loaded: Call, data: Mapping[str, Any]) -> None:
    """What Unsloth takes where the script is silent."""
    given = {*loaded.named, *loaded.unread}
    key = "training.sequence_length"
    if (key not in reading.facts or reading.facts[key].assumed) and _LENGTH not in given:
        reading.add(key, _LONGEST_OF_UNSLOTH, "the default of Unsloth", assumed=True)
    if not {"use_gradient_checkpointing", "gradient_checkpointing"} & {*given, *data}:
        text = "gradient_checkpointing is on by Unsloth's default"
        reading.add("training.layout.recompute", "full", text, assumed=True)
    if data.get("use_peft") and not given.intersection(_CHOSEN):
        reading.add("training.frozen_bits", 4, "load_in_4bit is on by Unsloth's default", assumed=True)


def _is_trainer(call: Call) -> bool:
    others = _LIGHTNING & {*call.named, *call.unread}
    return _TRAINER.fullmatch(call.name) is not None and bool(call.positional or call.named) and not others


def _is_settings(call: Call) -> bool:
    name = call.last
    trains = {"per_device_train_batch_size", "num_train_epochs", "max_steps", "learning_rate", "output_dir"}
    return (
        _SETTINGS.fullmatch(name) is not None
        and _NO_SETTINGS.fullmatch(name) is None
        and bool(trains & call.named.keys())
    )


def _settings(trainer: Call, calls: list[Call]) -> Call:
    """The arguments of training: those of the trainer, else the last in the script."""
    own = trainer.named.get(
        "args", next((part for part in trainer.positional if _is_call(part, _SETTINGS)), None)
    )
    if isinstance(own, Call) and _is_call(own, _SETTINGS):
        return own
    return next((call for call in reversed(calls) if _is_settings(call)), Call("", (), {}))


def _is_call(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, Call) and pattern.fullmatch(value.last) is not None


def _chain(value: Any) -> Iterator[Call]:
    """The calls that a value went through, the last first: `get_peft_model(prepare(X.from_pretrained(name)))`."""
    while isinstance(value, Call):
        yield value
        value = next(
            (part for part in (*value.positional[:1], value.named.get("model")) if isinstance(part, Call)),
            None,
        )


def _is_loaded(call: Call) -> bool:
    owner, _, last = call.name.rpartition(".")
    if last in _EMBEDDERS:
        return True
    return last in ("from_pretrained", "from_config") and _NO_MODEL.search(owner) is None


def _loaded(trainer: Call, calls: list[Call]) -> Call | None:
    """The call that loads the trained model: what the trainer is given, else the first in the script."""
    given = trainer.named.get("model", next(iter(trainer.positional), None))
    if isinstance(given, str):
        return Call("from_pretrained", (given,), {})
    found = next((call for call in _chain(given) if _is_loaded(call)), None)
    return found or next((call for call in calls if _is_loaded(call) and _name_of(call)), None)


def _by_name(call: Call | None) -> Call | None:
    """What Unsloth is given by place under its name."""
    if call is None or _UNSLOTH.fullmatch(call.name) is None:
        return call
    placed = dict(zip(_PLACES, call.positional, strict=False))
    known = {name: value for name, value in placed.items() if value is not UNKNOWN}
    unread = [name for name in placed if name not in known]
    return replace(call, named={**known, **call.named}, unread=[*call.unread, *unread])


def _name_of(call: Call | None) -> str:
    if call is None:
        return ""
    names = (*(call.named.get(key) for key in ("model_name", "pretrained_model_name_or_path", "model_name_or_path")),
             *call.positional[:1])  # fmt: skip
    return next((name for name in names if isinstance(name, str)), "")


def _adapters(trainer: Call, calls: list[Call]) -> Iterator[Call]:
    """Calls that put adapters on the model, the trainer's own first."""
    own = trainer.named.get("peft_config")
    if isinstance(own, Call):
        yield own
    for call in calls:
        if call.last in ("get_peft_model", "add_adapter"):
            yield call
            yield from (
                part
                for part in (*call.positional, *call.named.values())
                if isinstance(part, Call) and _is_lora(part)
            )


def _is_known(value: Any) -> bool:
    """Whether the script states a value, and does not work it out."""
    return value is not None and not isinstance(value, Call | Imported)


def _is_lora(call: Call) -> bool:
    return call.last in ("LoraConfig", "LoHaConfig", "LoKrConfig", "AdaLoraConfig")


def _recomputes(call: Call) -> bool:
    """Whether a call makes the model compute its activations again; PEFT's prepares a model in few bits so."""
    prepares = call.last == "prepare_model_for_kbit_training"
    return call.last == "gradient_checkpointing_enable" or (
        prepares and call.named.get("use_gradient_checkpointing") is not False
    )


def _arguments(
    trainer: Call, settings: Mapping[str, Any], loaded: Call | None, adapters: list[Call]
) -> dict[str, Any]:
    """The arguments as TRL's command line has them; those of training count before those of the model."""
    data: dict[str, Any] = {"model_name_or_path": _name_of(loaded)}
    options = loaded.named if loaded is not None else {}
    stored = options.get("quantization_config")
    for source in (options, stored.named if isinstance(stored, Call) else {}):
        data |= {name: source[name] for name in _OF_MODEL if _is_known(source.get(name))}
    for call in reversed(adapters):
        data |= {ours: call.named[name] for name, ours in _ADAPTERS.items() if name in call.named}
        data |= {_LENGTH: call.named[_LENGTH]} if _is_known(call.named.get(_LENGTH)) else {}
        data["use_peft"] = True
    data |= {name: trainer.named[name] for name in _OF_TRAINER if name in trainer.named}
    data |= {name: value for name, value in settings.items() if not isinstance(value, Call | Imported)}
    teacher = next((call for call in _chain(trainer.named.get("teacher_model")) if _is_loaded(call)), None)
    if teacher is not None or isinstance(trainer.named.get("teacher_model"), str):
        data["teacher_model"] = _name_of(teacher) or trainer.named["teacher_model"]
    return data
