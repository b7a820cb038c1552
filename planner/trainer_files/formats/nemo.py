"""NeMo: YAML of a run in the forms of NeMo 1 and 2, NeMo Automodel and NeMo RL, or overrides on a command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from planner.errors import InputError
from planner.trainer_files.formats.common import ACCELERATORS, MICRO_BATCH, NODES, Reader
from planner.trainer_files.formats.levanter import recognises as is_levanter
from planner.trainer_files.formats.sizes import stated_model
from planner.trainer_files.formats.verl import recognises as is_verl
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_GATED = ("swiglu", "fast-swiglu", "geglu", "fast-geglu", "reglu", "fast-reglu", "silu")
_SIZES = ("model.", "model.config.", "", "model.encoder.")  # the last of T5
_DEGREES = {
    "tensor_parallel": ("tensor_model_parallel_size", "tensor_parallel_size", "tp_size"),
    "pipeline_parallel": ("pipeline_model_parallel_size", "pp_size"),
    "context_parallel": ("context_parallel_size", "cp_size"),
    "expert_parallel": ("expert_model_parallel_size", "ep_size"),
}
_PLACES = (
    "model.", "trainer.strategy.", "policy.megatron_cfg.", "policy.dtensor_cfg.", "policy.automodel_cfg.",
    "distributed.", "strategy.", "model.config.", "parallelizer.", "fsdp.",
)  # fmt: skip
_AUTOMODEL = "policy.automodel_cfg"
_POLICIES = ("policy.megatron_cfg.", "policy.dtensor_cfg.", f"{_AUTOMODEL}.")
_LORA = ("policy.dtensor_cfg.lora_cfg", f"{_AUTOMODEL}.lora_cfg", "policy.megatron_cfg.peft")
_GROUP = 16  # responses to a prompt in NeMo RL's own files
_REINFORCED = ("sft", "dpo", "grpo", "distillation", "rm")
_OF_REINFORCEMENT = tuple(f"{section}.max_num_steps" for section in _REINFORCED)
_STEPS = ("trainer.max_steps", "step_scheduler.max_steps", *_OF_REINFORCEMENT, "train.train_iters")
_EPOCHS = ("trainer.max_epochs", "step_scheduler.num_epochs",
           *(f"{section}.max_num_epochs" for section in _REINFORCED))  # fmt: skip
_RECURRENT = "activations_checkpoint_recurrent"  # of Griffin, Jamba and Mamba, whether set or not
_NO_LIMIT = 1_000_000  # steps that NeMo RL's own files write where epochs end the run
_OBJECTIVES = ("grpo", "ppo", "dpo", "kto", "rm", "distillation", "sft")


def recognises(document: Document) -> bool:
    """Whether the sections are NeMo's."""
    data = document.data
    model, trainer = data.get("model"), data.get("trainer")
    first = (
        isinstance(model, Mapping)
        and isinstance(trainer, Mapping)
        and not is_verl(document)
        and not is_levanter(document)
        and "class_path" not in model  # Lightning's command line, whose model is a class of the user's
    )
    policy = data.get("policy")
    reinforcement = isinstance(policy, Mapping) and ("model_name" in policy or "defaults" in data)
    automodel = isinstance(data.get("step_scheduler"), Mapping) and isinstance(model, Mapping)
    return (first or reinforcement or automodel) and document.syntax in ("yaml", "json", "arguments")


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(_opened(document), "NeMo")
    _layout(reader)
    _model(reader)
    reader.add_whole(MICRO_BATCH, "model.micro_batch_size", "data.micro_batch_size",
                     "policy.train_micro_batch_size", "step_scheduler.local_batch_size",
                     "model.data.train_ds.micro_batch_size")  # fmt: skip
    reader.add_whole("training.global_batch", "model.global_batch_size", "data.global_batch_size",
                     "policy.train_global_batch_size", "step_scheduler.global_batch_size",
                     "model.data.train_ds.global_batch_size")  # fmt: skip
    if reader.has("policy") and "training.global_batch" not in reader.facts:
        reader.facts.pop(MICRO_BATCH, None)  # NeMo RL takes the batch from the file that this one builds on
    reader.add_whole("training.sequence_length", "model.encoder_seq_length", "data.seq_length",
                     "model.data.seq_length", "model.data.train_ds.max_seq_length", "policy.max_total_sequence_length",
                     "model.config.seq_length", "dataset.seq_length", "dataset.seq_len",
                     "packed_sequence.packed_sequence_size", "model.seq_length")  # fmt: skip
    if _kind(reader) == "t5":
        encoder = reader.first("model.encoder_seq_length", "model.seq_length", "model.data.seq_length")
        reader.add_halves(encoder, "model.data.seq_length_dec")
    _length(reader)
    _precision(reader)
    for name in ("model.optim.name", "optim.config.optimizer", "policy.optimizer.name", "optimizer._target_",
                 "policy.megatron_cfg.optimizer.optimizer"):  # fmt: skip
        if reader.has(name):
            reader.add_optimizer(name)
            break
    _adapters(reader)
    _objective(reader)
    _rollouts(reader)
    _automodel(reader)
    plain = reader.facts.get("training.layout.zero_stage")
    if plain is not None and plain.value == 3:  # FSDP2 around models of Transformers
        reader.add("training.stack", "eager", "the model runs as Transformers has it", assumed=True)
    else:
        reader.add("training.stack", "tuned", "NeMo's fused kernels", assumed=True)
    return reader


def _opened(document: Document) -> Document:
    """The run inside a launcher's section `training`."""
    inner = document.data.get("training")
    inside = isinstance(inner, Mapping) and "model" in inner
    return (
        replace(document, data={**document.data, **inner})
        if inside and isinstance(inner, Mapping)
        else document
    )


def _model(reader: Reader) -> None:
    model_key = reader.first(
        "policy.model_name",
        "model.pretrained_model_name_or_path",
        "model.config.pretrained_model_name_or_path",
        "model.model_id",
        "resume.restore_config.path",
    )
    prefix = next(
        (
            prefix
            for prefix in _SIZES
            if reader.has(f"{prefix}num_layers") and reader.has(f"{prefix}hidden_size")
        ),
        None,
    )
    if prefix is None:
        path = model_key or reader.first("model.restore_from_path", "restore_from_path")
        reader.hub_name = reader.text(path).removesuffix(".nemo") if path else ""
        reader.hub_key = path
        return
    mixed = isinstance(section := reader.get(prefix.rstrip(".")), Mapping) and _RECURRENT in section
    if mixed and not any(
        reader.has(f"{prefix}{name}") for name in ("hybrid_override_pattern", "ngroups_mamba")
    ):
        raise InputError(
            f"{reader.path}: {prefix}{_RECURRENT}: some of its layers are recurrent, and it does not state which: "
            "give --model-config or --model"
        )
    split = reader.facts.get("training.layout.tensor_parallel")
    tied = reader.flag(f"{prefix}share_embeddings_and_output_weights")
    learned = reader.text(f"{prefix}position_embedding_type") in ("", "learned_absolute")
    gated = reader.flag(f"{prefix}gated_linear_unit") or reader.text(f"{prefix}activation") in _GATED
    reader.model = stated_model(
        reader, prefix, gated=bool(gated), tied=tied is not False, learned_positions=learned,
        vocab=reader.whole(f"{prefix}override_vocab_size") or reader.whole(f"{prefix}vocab_size"),
        split=split.value if split is not None else 1, kv_heads=reader.whole(f"{prefix}num_query_groups"),
        latent=bool(reader.flag(f"{prefix}multi_latent_attention")), kind=_kind(reader),
    )  # fmt: skip


def _kind(keys: Lookup) -> str:
    """`t5` or `bert` where the data are those of an encoder-decoder or an encoder; empty for a decoder."""
    dataset_type = keys.text("model.data.dataset_type")
    if dataset_type in ("t5", "ul2", "bart") or keys.has("model.decoder_arch") or keys.has("model.decoder"):
        return "t5"
    return "bert" if "bert" in dataset_type or keys.has("model.bert_binary_head") else ""


def _layout(reader: Reader) -> None:
    layout = "training.layout."
    off = [place for place in _POLICIES if reader.flag(f"{place}enabled") is False]
    own = [place for place in _POLICIES if reader.flag(f"{place}enabled")]
    if not off and not own and reader.has(_AUTOMODEL):  # on in NeMo RL's own files, which this one builds on
        off = ["policy.megatron_cfg."]
    places = [place for place in _PLACES if place not in off]
    for name, words in _DEGREES.items():
        reader.add_whole(layout + name, *(place + word for place in places for word in words))
    sequence = reader.first(*(f"{place}sequence_parallel" for place in places))
    if reader.flag(sequence) and f"{layout}tensor_parallel" in reader.facts:
        reader.add(f"{layout}sequence_parallel", True, sequence)
    granularity = reader.first(
        "model.activations_checkpoint_granularity",
        "model.config.recompute_granularity",
        "model.recompute_granularity",
    )
    method = "model.activations_checkpoint_method"
    if reader.text(granularity) in ("full", "selective"):
        reader.add(f"{layout}recompute", reader.text(granularity), granularity)
    elif reader.text(method) in ("uniform", "block"):  # before there was a granularity, whole layers
        reader.add(f"{layout}recompute", "full", f"{method} {reader.text(method)}")
    checkpointing = reader.first(*(f"{place}activation_checkpointing" for place in places))
    if checkpointing:
        reader.add(f"{layout}recompute", "full" if reader.flag(checkpointing) else "none", checkpointing)
    virtual = reader.first(*(f"{place}virtual_pipeline_model_parallel_size" for place in places))
    stages = reader.facts.get(f"{layout}pipeline_parallel")
    if virtual and stages is not None and stages.value > 1:
        reader.add_whole(f"{layout}interleave", virtual)
    sharded = reader.flag("policy.dtensor_cfg.enabled") or (
        reader.has(_AUTOMODEL) and f"{_AUTOMODEL}." not in off
    )
    if sharded:
        reader.add(f"{layout}zero_stage", 3, reader.first(_AUTOMODEL, "policy.dtensor_cfg"))
    elif "dist" in reader.text("model.optim.name") or any(
        reader.flag(f"{place}use_distributed_optimizer")
        for place in ("trainer.strategy.ddp.", *(f"{own}optimizer." for own in places))
    ):
        reader.add(f"{layout}zero_stage", 1, "the distributed optimizer")
    on_host = next(
        (name for name in (f"{own}optimizer.optimizer_cpu_offload" for own in places) if reader.flag(name)),
        "",
    )
    if on_host:
        reader.add_offload(on_host, "optimizer")
    moved = next((f"{place}cpu_offload" for place in _POLICIES if reader.flag(f"{place}cpu_offload")), "")
    if moved:
        reader.add_offload(moved, "optimizer", "weights")
    devices = reader.first("trainer.devices", "cluster.gpus_per_node", "trainer.gpus")
    nodes = reader.first("trainer.num_nodes", "cluster.num_nodes")
    count = reader.get(devices)
    if isinstance(count, list):
        count = len(count)
    if str(count).isdigit() and int(count) > 0:
        number = reader.whole(nodes)
        reader.add(ACCELERATORS, int(count) * (number or 1), f"{devices}{f' x {nodes}' if nodes else ''}")
        reader.add(NODES, number, nodes)


def _length(reader: Reader) -> None:
    """Note steps before epochs, but for limits so high that they stand for none."""
    steps = reader.first(*_STEPS)
    count = reader.whole(steps)
    epochs = next((name for name in _EPOCHS if (reader.number(name) or 0) > 0), "")
    if epochs and (count is None or (count >= _NO_LIMIT and steps in _OF_REINFORCEMENT)):
        reader.add("training.epochs", float(reader.number(epochs) or 0), epochs)
    else:
        reader.add("training.steps", count, steps)


def _precision(reader: Reader) -> None:
    name = reader.first(
        "trainer.precision", "trainer.plugins.precision", "policy.precision", "model.torch_dtype"
    )
    word = str(reader.get(name)).lower()
    words = (("bf16", "bf16"), ("bfloat16", "bf16"), ("16", "fp16"), ("float16", "fp16"), ("32", "fp32"))
    value = next((precision for part, precision in words if part in word), None)
    if reader.flag("model.fp8") or reader.flag("policy.megatron_cfg.fp8_cfg.enabled"):
        value, name = "fp8", reader.first("model.fp8", "policy.megatron_cfg.fp8_cfg.enabled")
    reader.add("training.precision", value, name)


def _adapters(reader: Reader) -> None:
    scheme = reader.first("model.peft.peft_scheme", "peft.peft_scheme", "peft._target_")
    scheme = scheme or next((f"{part}.enabled" for part in _LORA if reader.flag(f"{part}.enabled")), "")
    kind = str(reader.get(scheme)).lower().rsplit(".", 1)[-1].removesuffix("config") if scheme else ""
    if kind in ("", "none", "null", "false"):
        return
    rank = (
        scheme.replace(".enabled", ".dim")
        if scheme.endswith(".enabled")
        else reader.first("model.peft.lora_tuning.adapter_dim", "peft.dim")
    )
    adapter = "lora" if kind in ("true", "peft", "lora") else kind
    reader.add_adapter(adapter, f"{scheme} {kind}", reader.whole(rank), rank)


def _objective(reader: Reader) -> None:
    places = [place + name for name in _OBJECTIVES for place in ("", "model.", "trainer.")]
    section = next((place for place in places if isinstance(reader.get(place), Mapping)), None)
    if section is not None:
        name = section.rpartition(".")[2]
        objective = {"rm": "reward", "distillation": "distill"}.get(name, name)
        reader.add("training.objective", objective, f"section {section}")
    elif reader.text("teacher.model_name"):
        reader.add("training.objective", "distill", "section teacher")
    reader.add("training.teacher", reader.text("teacher.model_name") or None, "teacher.model_name")


def _rollouts(reader: Reader) -> None:
    reader.add_whole("rollouts.response_max", "policy.generation.max_new_tokens")
    reader.add_whole("rollouts.samples_per_prompt", "grpo.num_generations_per_prompt")
    reader.add_whole("rollouts.tensor_parallel", "policy.generation.vllm_cfg.tensor_parallel_size")
    backend = reader.text("policy.generation.backend")
    reader.add(
        "rollouts.engine", backend if backend in ("vllm", "sglang") else None, "policy.generation.backend"
    )
    penalty = reader.first("loss_fn.reference_policy_kl_penalty", "grpo.reference_policy_kl_penalty")
    if penalty and reader.number(penalty) == 0:
        reader.add("training.reference", "none", f"{penalty} 0")
    prompts, stated = (
        reader.whole("grpo.num_prompts_per_step"),
        reader.whole("grpo.num_generations_per_prompt"),
    )
    update = reader.facts.get("training.global_batch")
    if prompts:
        group = stated or _GROUP
        text = f"grpo.num_prompts_per_step x {'grpo.num_generations_per_prompt' if stated else f'{group} by default'}"
        reader.add("training.global_batch", prompts * group, text, assumed=stated is None)
        if update is not None and update.value < prompts * group and prompts * group % update.value == 0:
            reader.facts["rollouts.update_batch"] = replace(update, key="rollouts.update_batch")
    asked = reader.whole("distillation.num_prompts_per_step")
    if asked:
        group, text = (
            reader.whole("distillation.num_generations_per_prompt") or 1,
            "distillation.num_prompts_per_step",
        )
        reader.add("training.global_batch", asked * group, text)
        reader.warn(f"{text}: the time in which the student writes its own answers is not counted")
    if reader.text("policy.generation.backend") in ("", "vllm"):  # its section stays beside other engines
        reader.add_eager("policy.generation.vllm_cfg.enforce_eager")
    apart = "policy.generation.colocated.enabled"
    if reader.flag(apart) is not None:
        reader.add("rollouts.placement", "colocated" if reader.flag(apart) else "disaggregated", apart)
    if reader.flag("grpo.async_grpo.enabled"):
        age = "grpo.async_grpo.max_trajectory_age_steps"
        reader.add("rollouts.steps_off_policy", reader.whole(age) or 1, age)
        flying = "grpo.async_grpo.in_flight_weight_updates"
        said = reader.flag(flying)
        reader.add("rollouts.in_flight_updates", said is True, flying, assumed=said is None)
    if reader.flag("loss_fn.force_on_policy_ratio"):
        reader.add("rollouts.old_logprobs", "reused", "loss_fn.force_on_policy_ratio")


def _frozen(reader: Reader) -> None:
    """What stays frozen by a section `freeze_config`: the image encoder unless it says otherwise."""
    section = "freeze_config"
    images, sound = f"{section}.freeze_vision_tower", f"{section}.freeze_audio_tower"
    if not reader.has(section):
        return
    if "training.method" in reader.facts:
        reader.freeze_beside_adapters(images)
    elif reader.flag(f"{section}.freeze_language_model"):
        reader.add_projector(f"{section}.freeze_language_model")
    elif reader.flag(images) is not False:
        reader.freeze_by_default(images)
    elif reader.flag(sound):
        reader.warn(f"{sound}: what is frozen counts as trained")


def _automodel(reader: Reader) -> None:
    """What NeMo Automodel says of sharding, the loss and frozen weights."""
    strategy = reader.first("distributed.strategy", "distributed._target_")
    if "fsdp" in reader.text(strategy).lower():
        reader.add("training.layout.zero_stage", 3, f"{strategy} {reader.text(strategy)}")
    elif isinstance(reader.get("fsdp"), Mapping):  # its recipes of diffusion models
        reader.add("training.layout.zero_stage", 3, "fsdp")
        sides = reader.get("data.dataloader.base_resolution")
        if (
            isinstance(sides, list)
            and len(sides) == 2
            and all(type(side) is int and side > 0 for side in sides)
        ):
            reader.add(
                "model.image_size", round(math.sqrt(sides[0] * sides[1])), "data.dataloader.base_resolution"
            )
    loss = reader.text("loss_fn._target_")
    if "LinearCrossEntropy" in loss:  # fused with the last product: no logits are kept
        reader.add("training.memory.loss", "tiled", f"loss_fn {loss.rsplit('.', 1)[-1]}")
    _frozen(reader)
    for bits in (4, 8):
        if reader.flag(f"quantization.load_in_{bits}bit"):
            reader.add("training.frozen_bits", bits, f"quantization.load_in_{bits}bit")
