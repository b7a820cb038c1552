"""OpenRLHF: the arguments of its trainers in a launch script, with underscores (to 0.9) or dots (from 0.10).

Keys and defaults: openrlhf/cli/train_*.py. Batches of rollouts count prompts there, and those of training responses.
"""

from __future__ import annotations

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    MICRO_BATCH,
    add_adapter,
    add_eager,
    add_launcher,
    add_offload,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

# what is read -> its names, the newest first
_NAMES: dict[str, tuple[str, ...]] = {
    "model": ("actor.model_name_or_path", "model.model_name_or_path", "pretrain", "model_name_or_path"),
    "reward": ("reward.model_name_or_path", "reward_pretrain"),
    "batch": ("train.batch_size", "train_batch_size"),
    "micro": ("train.micro_batch_size", "micro_train_batch_size"),
    "rollouts": ("rollout.batch_size", "rollout_batch_size"),
    "samples": ("rollout.n_samples_per_prompt", "n_samples_per_prompt"),
    "epochs": ("train.max_epochs", "max_epochs"),
    "episodes": ("train.num_episodes", "num_episodes"),
    "most": ("data.max_samples", "max_samples"),
    "length": ("data.max_len", "max_len"),
    "prompt": ("prompt_max_len",),
    "response": ("rollout.max_new_tokens", "generate_max_len"),
    "estimator": ("algo.advantage.estimator", "advantage_estimator"),
    "penalty": ("algo.kl.init_coef", "init_kl_coef"),
    "engines": ("vllm.num_engines", "vllm_num_engines"),
    "eager": ("vllm.enforce_eager", "enforce_eager"),
    "engine_split": ("vllm.tensor_parallel_size", "vllm_tensor_parallel_size"),
    "together": ("train.colocate_all", "colocate_all_models"),
    "ahead": ("train.async_enable", "async_train"),
    "flying": ("train.partial_rollout_enable", "partial_rollout"),
    "stage": ("ds.zero_stage", "zero_stage"),
    "offload": ("ds.adam_offload", "adam_offload"),
    "tensor": ("ds.tensor_parallel_size", "ds_tensor_parallel_size"),
    "ring": ("ds.ring_attn_size", "ring_attn_size"),
    "precision": ("ds.param_dtype", "param_dtype"),
    "packing": ("ds.packing_samples", "packing_samples"),
    "loss": ("ds.use_liger_kernel", "use_liger_kernel"),
    "rank": ("ds.lora.rank", "lora_rank"),
    "targets": ("ds.lora.target_modules", "target_modules"),
    "bits": ("ds.load_in_4bit", "load_in_4bit"),
    "plain": ("model.pretrain_mode_enable", "pretrain_mode"),
    "recompute": ("actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable",
                  "gradient_checkpointing"),
    "teacher": ("teacher.model_name_or_path", "teacher_model"),
}  # fmt: skip
# trainer -> objective; what an argument or a loss changes is decided where it is read
_TRAINERS = {
    "train_ppo_ray": "ppo", "train_ppo": "ppo", "train_dpo": "dpo", "train_kto": "kto", "train_rm": "reward",
    "train_sft": "sft", "train_kd": "distill", "train_ct": "sft", "train_prm": "sft",
    "train_knowledge_distillation": "distill", "train_opd": "distill",
}  # fmt: skip
_MARKS = ("micro_train_batch_size", "rollout_batch_size", "train.batch_size", "train.micro_batch_size")
# What its trainers take where an argument is left out.
_BATCH, _ROLLOUTS, _STAGE, _LONGEST, _ALL = 128, 1024, 2, 1024, 10**8
_EPOCHS = {"sft": 2.0, "distill": 2.0}


def recognises(document: Document) -> bool:
    """Whether the arguments are OpenRLHF's."""
    keys = Lookup(document)
    has_model = bool(keys.first(*_NAMES["model"]))
    return document.syntax == "arguments" and has_model and bool(keys.first(*_MARKS))


def read(document: Document) -> Reading:
    """Read a launch script."""
    keys, reading = Lookup(document), Reading(document.path, "OpenRLHF")
    reading.hub_key = keys.first(*_NAMES["model"])
    reading.hub_name = keys.text(reading.hub_key)
    objective = _objective(document, keys)
    estimator = keys.first(*_NAMES["estimator"]) if objective == "grpo" else ""
    reading.add(
        "training.objective", objective, f"{estimator} {keys.text(estimator)}" if estimator else "the trainer"
    )
    add_whole(reading, keys, MICRO_BATCH, *_NAMES["micro"])
    _batch(reading, keys, "training.global_batch")
    if objective in ("ppo", "grpo"):
        _reinforcement(reading, keys)
    else:
        add_launcher(reading, keys)
        _epochs(reading, keys, "epochs", _EPOCHS.get(objective, 1.0))
        add_whole(reading, keys, "training.sequence_length", *_NAMES["length"])
        if objective == "distill":
            teacher = keys.first(*_NAMES["teacher"])
            reading.add("training.teacher", keys.text(teacher) or None, teacher)
        _flag(reading, keys, "training.packing", "packing")
    _samples(reading, keys)
    _method(reading, keys)
    _layout(reading, keys)
    if "train_opd" in document.programs:
        reading.warn("train_opd: the responses that the student generates in each step are not counted")
    for remark in document.programs:
        if remark in ("train_ct", "train_prm"):
            reading.warn(f"{remark}: counted as fine-tuning on the sequences")
    return reading


def _objective(document: Document, keys: Lookup) -> str:
    """By the trainer that is started, else by arguments that one trainer alone has."""
    name = next((_TRAINERS[program] for program in document.programs if program in _TRAINERS), "")
    if not name:
        name = "ppo" if keys.first(*_NAMES["rollouts"], *_NAMES["engines"]) else "sft"
    if name == "sft" and keys.flag(keys.first(*_NAMES["plain"]) or "none"):
        return "pretrain"
    estimator = keys.text(keys.first(*_NAMES["estimator"]) or "none")
    return "grpo" if name == "ppo" and estimator not in ("", "gae") else name


def _batch(reading: Reading, keys: Lookup, target: str) -> None:
    add_whole(reading, keys, target, *_NAMES["batch"])
    if target not in reading.facts:
        reading.add(target, _BATCH, f"the default of {_NAMES['batch'][-1]}", assumed=True)


def _epochs(reading: Reading, keys: Lookup, name: str, default: float) -> None:
    key = keys.first(*_NAMES[name])
    passes = keys.whole(key) if key else None
    reading.add("training.epochs", float(passes or default), key or f"the default of {_NAMES[name][-1]}",
                assumed=not passes)  # fmt: skip


def _reinforcement(reading: Reading, keys: Lookup) -> None:
    """A step generates `n_samples_per_prompt` responses to each prompt of its batch and learns in several updates."""
    update = reading.facts.pop("training.global_batch")
    key, many = keys.first(*_NAMES["rollouts"]), keys.first(*_NAMES["samples"])
    prompts, samples = keys.whole(key) if key else None, (keys.whole(many) if many else None) or 1
    text = f"{key or _NAMES['rollouts'][-1]} x {many or _NAMES['samples'][-1]}"
    step = (prompts or _ROLLOUTS) * samples
    reading.add("training.global_batch", step, text, assumed=prompts is None)
    if step % update.value:
        reading.warn(f"train_batch_size: {update.value} does not divide {step} responses: left out")
    else:
        reading.add("rollouts.update_batch", update.value, update.where.partition(": ")[2])
    reading.add("rollouts.samples_per_prompt", samples, many or "one response to a prompt")
    add_whole(reading, keys, "rollouts.epochs", *_NAMES["epochs"])
    _epochs(reading, keys, "episodes", 1.0)
    _lengths(reading, keys)
    if keys.first(*_NAMES["engines"]):
        reading.add("rollouts.engine", "vllm", keys.first(*_NAMES["engines"]))
        add_eager(reading, keys, *_NAMES["eager"])
        add_whole(reading, keys, "rollouts.tensor_parallel", *_NAMES["engine_split"])
    ahead = keys.first(*_NAMES["ahead"])
    ahead = ahead if ahead and keys.flag(ahead) else ""
    # of what generates ahead, only the trained models share accelerators
    together = bool(keys.flag(keys.first(*_NAMES["together"]) or "none")) and not ahead
    reading.add("rollouts.placement", "colocated" if together else "disaggregated",
                ahead or keys.first(*_NAMES["together"]) or "not colocate_all_models")  # fmt: skip
    if ahead:
        flying = keys.first(*_NAMES["flying"])
        reading.add("rollouts.steps_off_policy", 1, ahead)
        reading.add("rollouts.in_flight_updates", bool(flying and keys.flag(flying)), flying or f"{ahead} alone waits",
                    assumed=not flying)  # fmt: skip
    penalty = keys.first(*_NAMES["penalty"])
    if penalty and keys.number(penalty) == 0:
        reading.add("training.reference", "none", f"{penalty} 0")
    if keys.first(*_NAMES["reward"]):
        reading.warn(
            f"{keys.first(*_NAMES['reward'])}: the time and memory of a reward model are not counted"
        )
    nodes = keys.first("actor.num_nodes", "actor_num_nodes")
    each = keys.first("actor.num_gpus_per_node", "actor_num_gpus_per_node")
    if each:
        count = (keys.whole(each) or 1) * ((keys.whole(nodes) if nodes else None) or 1)
        reading.add(
            ACCELERATORS, count, f"{each}{f' x {nodes}' if nodes else ''}, those of the trained model"
        )


def _lengths(reading: Reading, keys: Lookup) -> None:
    whole, prompt, response = (keys.first(*_NAMES[name]) for name in ("length", "prompt", "response"))
    longest, answer = (keys.whole(key) if key else None for key in (whole, response))
    asked = keys.whole(prompt) if prompt else None
    if longest is not None:
        reading.add("training.sequence_length", longest, whole)
        asked = asked or (longest - answer if answer and answer < longest else None)
    else:
        text = "prompt_max_len + generate_max_len"
        stated = asked is not None and answer is not None
        reading.add(
            "training.sequence_length", (asked or _LONGEST) + (answer or _LONGEST), text, assumed=not stated
        )
    reading.add("rollouts.prompt_max", asked, prompt or whole)
    reading.add("rollouts.response_max", answer, response)


def _samples(reading: Reading, keys: Lookup) -> None:
    most = keys.first(*_NAMES["most"])
    count = keys.whole(most) if most else None
    if count is not None and count < _ALL:
        reading.add("data.samples", count, f"{most}: at most so many", assumed=True)


def _method(reading: Reading, keys: Lookup) -> None:
    key = keys.first(*_NAMES["rank"])
    rank = keys.whole(key) if key else None
    if rank is None:
        return
    add_adapter(reading, "lora", key, rank, key)
    targets = keys.first(*_NAMES["targets"])
    reading.add("training.lora_targets", keys.get(targets) if targets else "all-linear", targets or "all by default",
                assumed=not targets)  # fmt: skip
    if keys.flag(keys.first(*_NAMES["bits"]) or "none"):
        reading.add("training.frozen_bits", 4, keys.first(*_NAMES["bits"]))


def _flag(reading: Reading, keys: Lookup, target: str, name: str) -> None:
    key = keys.first(*_NAMES[name])
    reading.add(
        target, bool(key and keys.flag(key)), key or f"{_NAMES[name][-1]} is not set", assumed=not key
    )


def _layout(reading: Reading, keys: Lookup) -> None:
    layout = "training.layout."
    stage = keys.first(*_NAMES["stage"])
    number = keys.number(stage) if stage else None
    if number in (None, 0, 1, 2, 3):
        value = _STAGE if number is None else int(number)
        reading.add(f"{layout}zero_stage", value, stage or "the default of zero_stage", assumed=not stage)
    add_whole(reading, keys, f"{layout}tensor_parallel", *_NAMES["tensor"])
    add_whole(reading, keys, f"{layout}context_parallel", *_NAMES["ring"])
    if keys.flag(keys.first(*_NAMES["offload"]) or "none"):
        add_offload(reading, keys.first(*_NAMES["offload"]), "optimizer")
    key = keys.first(*_NAMES["recompute"])
    reading.add(f"{layout}recompute", "full" if key and keys.flag(key) else "none",
                key or "gradient_checkpointing is not set", assumed=not key)  # fmt: skip
    word = keys.text(keys.first(*_NAMES["precision"]) or "none").lower()
    precision = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(word, "bf16")
    reading.add("training.precision", precision, keys.first(*_NAMES["precision"]) or "bf16 by default",
                assumed=not word)  # fmt: skip
    if keys.flag(keys.first(*_NAMES["loss"]) or "none"):
        reading.add("training.memory.loss", "tiled", keys.first(*_NAMES["loss"]))
    reading.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
