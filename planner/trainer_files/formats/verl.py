"""verl: reinforcement learning and fine-tuning by overrides on a command line, or the whole configuration as YAML.

Keys and defaults: https://verl.readthedocs.io/en/latest/examples/config.html. Batches count prompts there and responses
in a workload.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.arguments import CHOICES
from planner.trainer_files.formats.common import (
    ACCELERATORS,
    MEGATRON_DEGREES,
    MICRO_BATCH,
    NODES,
    add_adapter,
    add_eager,
    add_offload,
    add_recompute,
    add_targets,
    add_whole,
    warn_of_groups,
)
from planner.trainer_files.formats.verl_async import add_pools, add_steps, is_async, prompts_of_a_step
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_ACTOR = "actor_rollout_ref.actor."
_MODEL = "actor_rollout_ref.model."
_ROLLOUT = "actor_rollout_ref.rollout."
_MEGATRON = f"{_ACTOR}megatron."
_ENGINE = "engine."  # of the supervised trainer
_ULYSSES = ("ulysses_sequence_parallel_size", f"{_ENGINE}ulysses_sequence_parallel_size")
_BATCH, _PROMPT, _RESPONSE = "data.train_batch_size", "data.max_prompt_length", "data.max_response_length"
# What verl takes where a file leaves a key out.
_PROMPTS, _LONGEST, _UPDATE, _EPOCHS, _ACCELERATORS = 1024, 512, 256, 30.0, 8
_SHORT = {
    "tensor_parallel": "tp_size", "pipeline_parallel": "pp_size", "context_parallel": "cp_size",
    "expert_parallel": "ep_size",
}  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the sections are verl's."""
    return isinstance(document.data.get("actor_rollout_ref"), Mapping) or tunes(document)


def tunes(document: Document) -> bool:
    """Whether the file is of verl's supervised trainers."""
    data, model = document.data.get("data"), document.data.get("model")
    trainer = document.data.get("trainer")
    sections = isinstance(model, Mapping) and isinstance(trainer, Mapping)
    return isinstance(data, Mapping) and sections and "train_files" in data


def read(document: Document) -> Reading:
    """Read a run."""
    keys, reading = Lookup(document), Reading(document.path, "verl")
    if isinstance(document.data.get("actor_rollout_ref"), Mapping):
        _reinforcement(reading, keys)
    else:
        _tuning(reading, keys)
    reading.add("training.precision", "bf16", "verl computes in bf16", assumed=True)
    _length(reading, keys)
    return reading


def _reinforcement(reading: Reading, keys: Lookup) -> None:
    reading.hub_name, reading.hub_key = keys.text(f"{_MODEL}path"), f"{_MODEL}path"
    estimator = keys.text("algorithm.adv_estimator") or "gae"
    reading.add("training.objective", "ppo" if estimator == "gae" else estimator, "algorithm.adv_estimator")
    _rollouts(reading, keys)
    _adapters(reading, keys, _MODEL)
    _accelerators(reading, keys)
    if _runs_megatron(keys, f"{_ACTOR}strategy", f"{CHOICES}.model_engine", "config_name", of=_MEGATRON[:-1]):
        _megatron(reading, keys, _MEGATRON)
    else:
        _fsdp(reading, keys, f"{_ACTOR}fsdp_config.", f"{_ACTOR}ulysses_sequence_parallel_size")
        _recompute(reading, keys, f"{_MODEL}enable_gradient_checkpointing")
    if keys.flag(f"{_MODEL}use_fused_kernels") or keys.flag(f"{_MODEL}use_liger"):
        source = keys.first(f"{_MODEL}use_fused_kernels", f"{_MODEL}use_liger")
        reading.add("training.memory.loss", "tiled", source)
    if keys.flag("reward_model.enable"):
        reading.warn("reward_model: the time and memory of a reward model are not counted")


def _rollouts(reading: Reading, keys: Lookup) -> None:
    """Batches, lengths and the engine; a step generates `n` responses to each prompt of its batch."""
    samples, prompts = keys.whole(f"{_ROLLOUT}n") or 1, keys.whole(_BATCH)
    update = keys.whole(f"{_ACTOR}ppo_mini_batch_size") or _UPDATE
    text = f"{_BATCH} x {_ROLLOUT}n"
    if keys.has("async_training") and prompts is None:
        prompts = prompts_of_a_step(keys, update)
        text = f"mini-batches between updates of the engines x {_ROLLOUT}n"
        add_steps(reading, keys, prompts)
    reading.add("training.global_batch", (prompts or _PROMPTS) * samples, text, assumed=prompts is None)
    longest = [keys.whole(name) or _LONGEST for name in (_PROMPT, _RESPONSE)]
    reading.add("training.sequence_length", sum(longest), "max_prompt_length + max_response_length")
    reading.add("rollouts.prompt_max", longest[0], _PROMPT)
    reading.add("rollouts.response_max", longest[1], _RESPONSE)
    reading.add("rollouts.samples_per_prompt", samples, f"{_ROLLOUT}n")
    if (asked := prompts or _PROMPTS) % update:
        reading.warn(f"{_ACTOR}ppo_mini_batch_size: {update} does not divide {asked} prompts: left out")
    else:
        reading.add("rollouts.update_batch", update * samples, f"{_ACTOR}ppo_mini_batch_size")
    add_whole(reading, keys, "rollouts.epochs", f"{_ACTOR}ppo_epochs")
    if keys.flag("algorithm.rollout_correction.bypass_mode"):
        reading.add("rollouts.old_logprobs", "reused", "algorithm.rollout_correction.bypass_mode")
    reading.add("rollouts.engine", keys.text(f"{_ROLLOUT}name") or None, f"{_ROLLOUT}name")
    add_eager(reading, keys, f"{_ROLLOUT}enforce_eager")
    add_whole(reading, keys, "rollouts.tensor_parallel", f"{_ROLLOUT}tensor_model_parallel_size")
    if not keys.flag(f"{_ACTOR}use_kl_loss") and not keys.flag("algorithm.use_kl_in_reward"):
        text = "neither use_kl_loss nor use_kl_in_reward"
        reading.add("training.reference", "none", text, assumed=not keys.has(f"{_ACTOR}use_kl_loss"))


def _tuning(reading: Reading, keys: Lookup) -> None:
    reading.hub_key = keys.first("model.partial_pretrain", "model.path")
    reading.hub_name = keys.text(reading.hub_key)
    reading.add("training.objective", "sft", "the supervised trainer")
    add_whole(reading, keys, "training.global_batch", _BATCH)
    add_whole(reading, keys, MICRO_BATCH, "data.micro_batch_size_per_gpu")
    _adapters(reading, keys, "model.")
    add_whole(reading, keys, "training.sequence_length", "data.max_length")
    for name, word in MEGATRON_DEGREES.items():
        add_whole(reading, keys, f"training.layout.{name}", _ENGINE + word, _ENGINE + _SHORT[name])
    degrees = keys.first(*(_ENGINE + word for word in MEGATRON_DEGREES.values()))
    if _runs_megatron(keys, f"{_ENGINE}strategy", f"{CHOICES}.engine", of=degrees):
        _megatron(reading, keys, _ENGINE)
        return
    _fsdp(reading, keys, "model.fsdp_config.", keys.first(*_ULYSSES) or _ULYSSES[0])
    own = f"{_ENGINE}activation_checkpointing"
    _recompute(reading, keys, own if keys.has(own) else "model.enable_gradient_checkpointing")


def _runs_megatron(keys: Lookup, *named: str, of: str) -> bool:
    """Whether Megatron trains: by the first key that names an engine, else by a key that only it has (`of`)."""
    name = keys.first(*named)
    engine = keys.text(name).lower()
    return "megatron" in engine or (not engine.startswith("fsdp") and bool(of) and keys.has(of))


def _adapters(reading: Reading, keys: Lookup, model: str) -> None:
    """Adapters under FSDP (`lora_rank`) and under Megatron-Bridge (`lora.rank`)."""
    rank = next((name for name in ("lora_rank", "lora.rank") if keys.whole(model + name) is not None), "")
    if not rank:
        return
    add_adapter(reading, "lora", model + rank, keys.whole(model + rank), model + rank)
    add_targets(reading, keys, f"{model}target_modules", f"{model}lora.target_modules")


def _accelerators(reading: Reading, keys: Lookup) -> None:
    if is_async(keys):
        add_pools(reading, keys)
        return
    each, nodes = keys.whole("trainer.n_gpus_per_node"), keys.whole("trainer.nnodes")
    text = "trainer.n_gpus_per_node x trainer.nnodes"
    reading.add(ACCELERATORS, (each or _ACCELERATORS) * (nodes or 1), text, assumed=each is None)
    reading.add(NODES, nodes, "trainer.nnodes")


def _fsdp(reading: Reading, keys: Lookup, config: str, ulysses: str) -> None:
    reading.add("training.layout.zero_stage", 3, "FSDP, resharding after forward", assumed=True)
    sharing, accelerators = keys.whole(f"{config}fsdp_size"), reading.facts.get(ACCELERATORS)
    if sharing and (accelerators is None or sharing < accelerators.value):
        warn_of_groups(reading, f"{config}fsdp_size")
    add_whole(reading, keys, "training.layout.context_parallel", ulysses)
    reading.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    if keys.flag(f"{config}offload_policy"):
        add_offload(reading, f"{config}offload_policy", "optimizer", "weights")
    _warn_of_moves(reading, keys, config)


def _warn_of_moves(reading: Reading, keys: Lookup, section: str) -> None:
    moved = [name for name in ("param_offload", "optimizer_offload") if keys.flag(section + name)]
    if moved:
        reading.warn(f"{', '.join(moved)}: what leaves for generation is back for updates: counted as there")


def _megatron(reading: Reading, keys: Lookup, engine: str) -> None:
    for name, word in MEGATRON_DEGREES.items():
        add_whole(reading, keys, f"training.layout.{name}", engine + word)
    tensors = reading.facts.get("training.layout.tensor_parallel")
    if tensors is not None and tensors.value > 1 and keys.flag(f"{engine}sequence_parallel") is not False:
        stated = keys.has(f"{engine}sequence_parallel")
        reading.add(
            "training.layout.sequence_parallel", True, f"{engine}sequence_parallel", assumed=not stated
        )
    stages = reading.facts.get("training.layout.pipeline_parallel")
    if stages is not None and stages.value > 1:
        add_whole(
            reading, keys, "training.layout.interleave", f"{engine}virtual_pipeline_model_parallel_size"
        )
    reading.add("training.layout.zero_stage", 1, "Megatron's distributed optimizer", assumed=True)
    reading.add("training.stack", "tuned", "Megatron's fused kernels", assumed=True)
    if engine == _MEGATRON:
        _warn_of_moves(reading, keys, engine)
    optim = "optim." if engine == _ENGINE else f"{_ACTOR}optim."
    on_host = f"{optim}override_optimizer_config.optimizer_cpu_offload"
    if keys.flag(on_host):
        add_offload(reading, on_host, "optimizer")
    granularity = f"{engine}override_transformer_config.recompute_granularity"
    if keys.text(granularity) in ("full", "selective"):
        reading.add("training.layout.recompute", keys.text(granularity), granularity)


def _recompute(reading: Reading, keys: Lookup, key: str) -> None:
    add_recompute(reading, keys, key, f"the default of {key}", usual=True)


def _length(reading: Reading, keys: Lookup) -> None:
    add_whole(reading, keys, "training.steps", "trainer.total_training_steps")
    if "training.steps" not in reading.facts:
        epochs = keys.number("trainer.total_epochs")
        reading.add("training.epochs", float(epochs or _EPOCHS), "trainer.total_epochs", assumed=not epochs)
