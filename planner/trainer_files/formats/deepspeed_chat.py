"""DeepSpeed-Chat: supervised fine-tuning, reward model and PPO by arguments of its three `main.py`.

https://github.com/deepspeedai/DeepSpeedExamples/tree/master/applications/DeepSpeed-Chat
"""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
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
    reader = Reader(document, "DeepSpeed-Chat")
    reader.add_launcher()
    learns = bool(reader.first(*_LEARNS))
    reader.hub_key = _ACTOR if learns else "model_name_or_path"
    reader.hub_name = reader.text(reader.hub_key)
    own = "actor_" if learns else ""
    if learns:
        _rollouts(reader)
    else:
        rewards = reader.has("num_padding_at_beginning")  # of the programs that load a reward model
        source = "num_padding_at_beginning" if rewards else "the program of step 1"
        reader.add("training.objective", "reward" if rewards else "sft", source, assumed=not rewards)
        reader.add_whole(MICRO_BATCH, "per_device_train_batch_size", default=_MICRO)
        reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
        reader.add_whole("training.sequence_length", "max_seq_len", default=_LENGTH)
        reader.add("training.packing", False, "samples are padded", assumed=True)
    epochs = reader.number("num_train_epochs")
    reader.add("training.epochs", float(epochs or _EPOCHS), "num_train_epochs", assumed=not epochs)
    stage = reader.number(f"{own}zero_stage")
    reader.add("training.layout.zero_stage", int(stage or 0), f"{own}zero_stage", assumed=stage is None)
    if reader.flag("offload"):
        reader.add_offload("offload", "optimizer", *(["weights"] if stage == 3 else []))
    checkpointing = reader.flag(f"{own}gradient_checkpointing")
    reader.add("training.layout.recompute", "full" if checkpointing else "none", f"{own}gradient_checkpointing",
               assumed=not checkpointing)  # fmt: skip
    word = reader.text("dtype")
    reader.add("training.precision", "bf16" if word == "bf16" else "fp16", "dtype", assumed=not word)
    reader.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    _adapters(reader, own)
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _rollouts(reader: Reader) -> None:
    """Step 3: a step generates one batch on each accelerator, or several, and learns from it."""
    reader.add("training.objective", "ppo", _ACTOR)
    reader.add_whole(MICRO_BATCH, "per_device_generation_batch_size", default=_MICRO)
    reader.add_whole(ACCUMULATION, "generation_batches")
    reader.add_whole("rollouts.epochs", "ppo_epochs")
    reader.add_whole("rollouts.prompt_max", "max_prompt_seq_len", default=_TOKENS)
    reader.add_whole("rollouts.response_max", "max_answer_seq_len", default=_TOKENS)
    longest = [reader.whole(name) or _TOKENS for name in ("max_prompt_seq_len", "max_answer_seq_len")]
    reader.add("training.sequence_length", sum(longest), "max_prompt_seq_len + max_answer_seq_len")
    reader.warn("the hybrid engine that generates is DeepSpeed's, which was not measured")
    if reader.has("critic_model_name_or_path"):
        reader.warn("critic_model_name_or_path: the critic is counted at the size of the actor")


def _adapters(reader: Reader, own: str) -> None:
    rank = reader.whole(f"{own}lora_dim")
    if not rank:
        return
    if reader.flag("only_optimize_lora"):
        reader.add_adapter("lora", "only_optimize_lora", rank, f"{own}lora_dim")
    else:
        text = "the whole model learns beside the adapters; they are not counted"
        reader.warn(f"{own}lora_dim without only_optimize_lora: {text}")
