"""DeepSpeed-Chat: supervised fine-tuning, reward model and PPO by arguments of its three `main.py`.

https://github.com/deepspeedai/DeepSpeedExamples/tree/master/applications/DeepSpeed-Chat
"""

from __future__ import annotations

from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_adapter,
    add_launcher,
    add_offload,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_ACTOR = "actor_model_name_or_path"
_LEARNS = (_ACTOR, "max_answer_seq_len", "per_device_generation_batch_size")
_OWN = ("lora_dim", "data_split", "sft_only_data_path", "num_padding_at_beginning", "only_optimize_lora")
_WITHOUT_EFFECT = (r".*",)
# What its programs take where an argument is left out.
_EPOCHS, _LENGTH, _MICRO, _TOKENS = 1.0, 512, 16, 256


def recognises(document: Document) -> bool:
    """Whether the arguments are DeepSpeed-Chat's."""
    data = document.data
    if document.syntax != "arguments":
        return False
    tunes = "model_name_or_path" in data and any(name in data for name in _OWN)
    return tunes or (any(name in data for name in _LEARNS) and any(name in data for name in _OWN))


def read(document: Document) -> Reading:
    """Read a launch script."""
    keys, reading = Lookup(document), Reading(document.path, "DeepSpeed-Chat")
    add_launcher(reading, keys)
    learns = bool(keys.first(*_LEARNS))
    reading.hub_key = _ACTOR if learns else "model_name_or_path"
    reading.hub_name = keys.text(reading.hub_key)
    own = "actor_" if learns else ""
    if learns:
        _rollouts(reading, keys)
    else:
        rewards = keys.has("num_padding_at_beginning")  # of the programs that load a reward model
        source = "num_padding_at_beginning" if rewards else "the program of step 1"
        reading.add("training.objective", "reward" if rewards else "sft", source, assumed=not rewards)
        add_whole(reading, keys, MICRO_BATCH, "per_device_train_batch_size", default=_MICRO)
        add_whole(reading, keys, ACCUMULATION, "gradient_accumulation_steps")
        add_whole(reading, keys, "training.sequence_length", "max_seq_len", default=_LENGTH)
        reading.add("training.packing", False, "samples are padded", assumed=True)
    epochs = keys.number("num_train_epochs")
    reading.add("training.epochs", float(epochs or _EPOCHS), "num_train_epochs", assumed=not epochs)
    stage = keys.number(f"{own}zero_stage")
    reading.add("training.layout.zero_stage", int(stage or 0), f"{own}zero_stage", assumed=stage is None)
    if keys.flag("offload"):
        add_offload(reading, "offload", "optimizer", *(["weights"] if stage == 3 else []))
    checkpointing = keys.flag(f"{own}gradient_checkpointing")
    reading.add("training.layout.recompute", "full" if checkpointing else "none", f"{own}gradient_checkpointing",
                assumed=not checkpointing)  # fmt: skip
    word = keys.text("dtype")
    reading.add("training.precision", "bf16" if word == "bf16" else "fp16", "dtype", assumed=not word)
    reading.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    _adapters(reading, keys, own)
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _rollouts(reading: Reading, keys: Lookup) -> None:
    """Step 3: a step generates one batch on each accelerator, or several, and learns from it."""
    reading.add("training.objective", "ppo", _ACTOR)
    add_whole(reading, keys, MICRO_BATCH, "per_device_generation_batch_size", default=_MICRO)
    add_whole(reading, keys, ACCUMULATION, "generation_batches")
    add_whole(reading, keys, "rollouts.epochs", "ppo_epochs")
    add_whole(reading, keys, "rollouts.prompt_max", "max_prompt_seq_len", default=_TOKENS)
    add_whole(reading, keys, "rollouts.response_max", "max_answer_seq_len", default=_TOKENS)
    longest = [keys.whole(name) or _TOKENS for name in ("max_prompt_seq_len", "max_answer_seq_len")]
    reading.add("training.sequence_length", sum(longest), "max_prompt_seq_len + max_answer_seq_len")
    reading.warn("the hybrid engine that generates is DeepSpeed's, which was not measured")
    if keys.has("critic_model_name_or_path"):
        reading.warn("critic_model_name_or_path: the critic is counted at the size of the actor")


def _adapters(reading: Reading, keys: Lookup, own: str) -> None:
    rank = keys.whole(f"{own}lora_dim")
    if not rank:
        return
    if keys.flag("only_optimize_lora"):
        add_adapter(reading, "lora", "only_optimize_lora", rank, f"{own}lora_dim")
    else:
        text = "the whole model learns beside the adapters; they are not counted"
        reading.warn(f"{own}lora_dim without only_optimize_lora: {text}")
