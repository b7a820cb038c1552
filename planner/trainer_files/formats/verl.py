"""verl: reinforcement learning and fine-tuning by overrides on a command line, or the whole configuration as YAML.

Keys and defaults: https://verl.readthedocs.io/en/latest/examples/config.html. Batches count prompts there and responses
in a workload.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import InputError
from planner.trainer_files.arguments import CHOICES
from planner.trainer_files.formats.common import ACCELERATORS, MEGATRON_DEGREES, MICRO_BATCH, NODES, Reader
from planner.trainer_files.formats.verl_async import add_pools, add_steps, is_async, prompts_of_a_step
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_GENERATES = "main_generation"
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
    return _learns(document) or _GENERATES in document.programs


def _learns(document: Document) -> bool:
    return isinstance(document.data.get("actor_rollout_ref"), Mapping) or tunes(document)


def tunes(document: Document) -> bool:
    """Whether the file is of verl's supervised trainers."""
    data, model = document.data.get("data"), document.data.get("model")
    trainer = document.data.get("trainer")
    sections = isinstance(model, Mapping) and isinstance(trainer, Mapping)
    return isinstance(data, Mapping) and sections and "train_files" in data


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: it trains nothing.
    """
    reader = Reader(document, "verl")
    if not _learns(document):
        raise InputError(
            f"{document.path}: {_GENERATES} only generates, it trains nothing: write kind: inference"
        )
    if isinstance(document.data.get("actor_rollout_ref"), Mapping):
        _reinforcement(reader)
    else:
        _tuning(reader)
    reader.add("training.precision", "bf16", "verl computes in bf16", assumed=True)
    _length(reader)
    return reader


def _reinforcement(reader: Reader) -> None:
    reader.hub_name, reader.hub_key = reader.text(f"{_MODEL}path"), f"{_MODEL}path"
    estimator = reader.text("algorithm.adv_estimator") or "gae"
    reader.add("training.objective", "ppo" if estimator == "gae" else estimator, "algorithm.adv_estimator")
    _rollouts(reader)
    _adapters(reader, _MODEL)
    _accelerators(reader)
    if _runs_megatron(
        reader, f"{_ACTOR}strategy", f"{CHOICES}.model_engine", "config_name", of=_MEGATRON[:-1]
    ):
        _megatron(reader, _MEGATRON)
    else:
        _fsdp(reader, f"{_ACTOR}fsdp_config.", f"{_ACTOR}ulysses_sequence_parallel_size")
        _recompute(reader, f"{_MODEL}enable_gradient_checkpointing")
    if reader.flag(f"{_MODEL}use_fused_kernels") or reader.flag(f"{_MODEL}use_liger"):
        source = reader.first(f"{_MODEL}use_fused_kernels", f"{_MODEL}use_liger")
        reader.add("training.memory.loss", "tiled", source)
    if reader.flag("reward_model.enable"):
        reader.warn("reward_model: the time and memory of a reward model are not counted")


def _rollouts(reader: Reader) -> None:
    """Batches, lengths and the engine; a step generates `n` responses to each prompt of its batch."""
    samples, prompts = reader.whole(f"{_ROLLOUT}n") or 1, reader.whole(_BATCH)
    update = reader.whole(f"{_ACTOR}ppo_mini_batch_size") or _UPDATE
    text = f"{_BATCH} x {_ROLLOUT}n"
    if reader.has("async_training") and prompts is None:
        prompts = prompts_of_a_step(reader, update)
        text = f"mini-batches between updates of the engines x {_ROLLOUT}n"
        add_steps(reader, prompts)
    reader.add("training.global_batch", (prompts or _PROMPTS) * samples, text, assumed=prompts is None)
    longest = [reader.whole(name) or _LONGEST for name in (_PROMPT, _RESPONSE)]
    reader.add("training.sequence_length", sum(longest), "max_prompt_length + max_response_length")
    reader.add("rollouts.prompt_max", longest[0], _PROMPT)
    reader.add("rollouts.response_max", longest[1], _RESPONSE)
    reader.add("rollouts.samples_per_prompt", samples, f"{_ROLLOUT}n")
    if (asked := prompts or _PROMPTS) % update:
        reader.warn(f"{_ACTOR}ppo_mini_batch_size: {update} does not divide {asked} prompts: left out")
    else:
        reader.add("rollouts.update_batch", update * samples, f"{_ACTOR}ppo_mini_batch_size")
    reader.add_whole("rollouts.epochs", f"{_ACTOR}ppo_epochs")
    if reader.flag("algorithm.rollout_correction.bypass_mode"):
        reader.add("rollouts.old_logprobs", "reused", "algorithm.rollout_correction.bypass_mode")
    reader.add("rollouts.engine", reader.text(f"{_ROLLOUT}name") or None, f"{_ROLLOUT}name")
    reader.add_eager(f"{_ROLLOUT}enforce_eager")
    reader.add_whole("rollouts.tensor_parallel", f"{_ROLLOUT}tensor_model_parallel_size")
    if not reader.flag(f"{_ACTOR}use_kl_loss") and not reader.flag("algorithm.use_kl_in_reward"):
        text = "neither use_kl_loss nor use_kl_in_reward"
        reader.add("training.reference", "none", text, assumed=not reader.has(f"{_ACTOR}use_kl_loss"))


def _tuning(reader: Reader) -> None:
    reader.hub_key = reader.first("model.partial_pretrain", "model.path")
    reader.hub_name = reader.text(reader.hub_key)
    pairs = any("dpo_trainer" in program for program in reader.document.programs)
    reader.add(
        "training.objective", "dpo" if pairs else "sft", "the program" if pairs else "the supervised trainer"
    )
    reader.add_whole("training.global_batch", _BATCH)
    reader.add_whole(MICRO_BATCH, "data.micro_batch_size_per_gpu")
    _adapters(reader, "model.")
    reader.add_whole("training.sequence_length", "data.max_length")
    for name, word in MEGATRON_DEGREES.items():
        reader.add_whole(f"training.layout.{name}", _ENGINE + word, _ENGINE + _SHORT[name])
    degrees = reader.first(*(_ENGINE + word for word in MEGATRON_DEGREES.values()))
    if _runs_megatron(reader, f"{_ENGINE}strategy", f"{CHOICES}.engine", of=degrees):
        _megatron(reader, _ENGINE)
        return
    _fsdp(reader, "model.fsdp_config.", reader.first(*_ULYSSES) or _ULYSSES[0])
    moved = "model.fsdp_config.offload_params"
    if reader.flag("model.fsdp_config.cpu_offload") and reader.flag(moved):
        reader.add_offload(moved, "optimizer", "weights")
    own = f"{_ENGINE}activation_checkpointing"
    _recompute(reader, own if reader.has(own) else "model.enable_gradient_checkpointing")


def _runs_megatron(keys: Lookup, *named: str, of: str) -> bool:
    """Whether Megatron trains: by the first key that names an engine, else by a key that only it has (`of`)."""
    name = keys.first(*named)
    engine = keys.text(name).lower()
    return "megatron" in engine or (not engine.startswith("fsdp") and bool(of) and keys.has(of))


def _adapters(reader: Reader, model: str) -> None:
    """Adapters under FSDP (`lora_rank`) and under Megatron-Bridge (`lora.rank`)."""
    rank = next((name for name in ("lora_rank", "lora.rank") if reader.whole(model + name) is not None), "")
    if not rank:
        return
    reader.add_adapter("lora", model + rank, reader.whole(model + rank), model + rank)
    reader.add_targets(f"{model}target_modules", f"{model}lora.target_modules")


def _accelerators(reader: Reader) -> None:
    if is_async(reader):
        add_pools(reader)
        return
    each, nodes = reader.whole("trainer.n_gpus_per_node"), reader.whole("trainer.nnodes")
    text = "trainer.n_gpus_per_node x trainer.nnodes"
    reader.add(ACCELERATORS, (each or _ACCELERATORS) * (nodes or 1), text, assumed=each is None)
    reader.add(NODES, nodes, "trainer.nnodes")


def _fsdp(reader: Reader, config: str, ulysses: str) -> None:
    reader.add("training.layout.zero_stage", 3, "FSDP, resharding after forward", assumed=True)
    sharing, accelerators = reader.whole(f"{config}fsdp_size"), reader.facts.get(ACCELERATORS)
    if sharing and (accelerators is None or sharing < accelerators.value):
        reader.warn_of_groups(f"{config}fsdp_size")
    reader.add_whole("training.layout.context_parallel", ulysses)
    reader.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    if reader.flag(f"{config}offload_policy"):
        reader.add_offload(f"{config}offload_policy", "optimizer", "weights")
    _warn_of_moves(reader, config)


def _warn_of_moves(reader: Reader, section: str) -> None:
    moved = [name for name in ("param_offload", "optimizer_offload") if reader.flag(section + name)]
    if moved:
        reader.warn(f"{', '.join(moved)}: what leaves for generation is back for updates: counted as there")


def _megatron(reader: Reader, engine: str) -> None:
    for name, word in MEGATRON_DEGREES.items():
        reader.add_whole(f"training.layout.{name}", engine + word)
    tensors = reader.facts.get("training.layout.tensor_parallel")
    if tensors is not None and tensors.value > 1 and reader.flag(f"{engine}sequence_parallel") is not False:
        stated = reader.has(f"{engine}sequence_parallel")
        reader.add(
            "training.layout.sequence_parallel", True, f"{engine}sequence_parallel", assumed=not stated
        )
    stages = reader.facts.get("training.layout.pipeline_parallel")
    if stages is not None and stages.value > 1:
        reader.add_whole("training.layout.interleave", f"{engine}virtual_pipeline_model_parallel_size")
    reader.add("training.layout.zero_stage", 1, "Megatron's distributed optimizer", assumed=True)
    reader.add("training.stack", "tuned", "Megatron's fused kernels", assumed=True)
    if engine == _MEGATRON:
        _warn_of_moves(reader, engine)
    optim = "optim." if engine == _ENGINE else f"{_ACTOR}optim."
    on_host = f"{optim}override_optimizer_config.optimizer_cpu_offload"
    if reader.flag(on_host):
        reader.add_offload(on_host, "optimizer")
    granularity = f"{engine}override_transformer_config.recompute_granularity"
    if reader.text(granularity) in ("full", "selective"):
        reader.add("training.layout.recompute", reader.text(granularity), granularity)


def _recompute(reader: Reader, key: str) -> None:
    reader.add_recompute(key, f"the default of {key}", usual=True)


def _length(reader: Reader) -> None:
    reader.add_whole("training.steps", "trainer.total_training_steps")
    if "training.steps" not in reader.facts:
        epochs = reader.number("trainer.total_epochs")
        reader.add("training.epochs", float(epochs or _EPOCHS), "trainer.total_epochs", assumed=not epochs)
