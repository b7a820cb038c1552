"""axolotl: one YAML file of a fine-tuning run (https://docs.axolotl.ai/docs/config-reference.html)."""

from __future__ import annotations

from dataclasses import replace

from planner.inputs.model_config import is_model_config, model_of_config
from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    NOT_COMPILED,
    add_adapter,
    add_attention,
    add_fsdp2,
    add_generations,
    add_length,
    add_offload,
    add_optimizer,
    add_shard,
    add_stack,
    add_targets,
    add_trainer_precision,
    add_whole,
    warn_of_groups,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_MARKS = ("datasets", "micro_batch_size", "sequence_len", "pretraining_dataset", "adapter", "num_epochs")
_SPECIAL = {
    "kd_trainer": "stored outputs of a teacher are counted as plain fine-tuning",
    "tiled_mlp": "the activations that it saves are counted as kept",
    "use_onebitllms": "weights of one bit are counted in the run's precision",
}
_SIZES = (
    "num_hidden_layers", "hidden_size", "intermediate_size", "moe_intermediate_size", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "num_local_experts", "num_experts", "num_experts_per_tok",
)  # fmt: skip
# Keys that change neither speed nor memory, or by little.
_WITHOUT_EFFECT = (
    r"base_model_.*|tokenizer_.*|model_type|trust_remote_code|is_.*|hub_.*|hf_.*|push_.*|.*wandb.*|mlflow_.*|comet_.*",
    r"trackio_.*|swanlab_.*|use_(tensorboard|wandb|mlflow|comet)|output_dir|logging_.*|.*sav(e|es|ing)_.*|eval.*",
    r"val_set_size|dataset_.*|datasets|test_datasets|shuffle.*|chat_template.*|default_system_message|special_tokens",
    r"tokens|added_tokens_.*|eot_tokens|train_on_.*|roles_.*|learning_rate|lr_.*|cosine_.*|weight_decay|warmup_.*",
    r"adam_.*|max_grad_norm|optim_args|loss_.*|label_smoothing.*|neftune.*|resume_.*|auto_resume.*|seed|strict|debug",
    r"lora_(alpha|dropout|model_dir|fan_in_fan_out|on_cpu|.*_kernel)|peft_use_rslora|experimental_.*|use_kernels",
    r"early_stopping_.*|load_best.*|metric_.*|greater_.*|ddp_.*|local_rank|device_map|gpu_memory_limit|max_memory",
    r"dataloader_.*|group_by_length|include_tokens.*|do_.*|remove_unused.*|xformers.*|flash_attn_.*|flex_attn.*",
    r"s2_attention|sdp_attention|eager_attention|sample_packing_.*|pad_to_.*|excess_.*|plugins|liger_.*|cut_.*",
    r"gradient_checkpointing_kwargs|model_quantization_.*|resize_token.*|shrink_.*|fix_untrained.*|torch_compile_.*",
    r"num_labels|experts_implementation|use_(scatter|sonic)moe|gkd_.*|kd_.*|rl_beta|dpo_.*|orpo_.*|kto_.*|simpo_.*|trl|reward_model|process_reward_model|overrides_of.*|revision.*|min_.*",
    r"fsdp|lora_target_.*|load_in_.*|fp8_.*|skip_prepare.*|streaming.*|save.*|unfrozen_parameters_.*|profiler_.*|deepcompile|ray_.*|use_ray|.*_token",
)  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the keys are axolotl's."""
    data = document.data
    return (
        document.syntax in ("yaml", "json") and "base_model" in data and any(mark in data for mark in _MARKS)
    )


def read(document: Document) -> Reading:
    """Read a run."""
    keys, reading = Lookup(document), Reading(document.path, "axolotl")
    _model(reading, keys)
    add_whole(reading, keys, MICRO_BATCH, "micro_batch_size")
    add_whole(reading, keys, ACCUMULATION, "gradient_accumulation_steps")
    if MICRO_BATCH not in reading.facts:
        add_whole(reading, keys, "training.global_batch", "batch_size")
    add_length(reading, keys, steps="max_steps", epochs="num_epochs", default_epochs=1.0)
    add_whole(reading, keys, "training.sequence_length", "sequence_len", "rl_max_length")
    if keys.flag("tf32") and not any(
        keys.has(name) for name in ("bf16", "fp16", "bfloat16", "float16", "fp8")
    ):
        reading.add("training.precision", "tf32", "tf32")
    add_trainer_precision(reading, keys)
    add_optimizer(reading, keys, "optimizer")
    _method(reading, keys)
    _sharding(reading, keys)
    _memory(reading, keys)
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _model(reading: Reading, keys: Lookup) -> None:
    """The base model, or without one the sizes of a `config.json` that a new model is made from."""
    reading.hub_name, reading.hub_key = keys.text("base_model"), "base_model"
    for section in ("overrides_of_model_config", "model_config"):
        sizes = keys.get(section)
        if not isinstance(sizes, dict):
            continue
        if not reading.hub_name and is_model_config(sizes):
            model = model_of_config(sizes, str(reading.path))
            sources = {key: f"{section}.{name}" for key, name in model.sources.items()}
            reading.model = replace(model, sources=sources)
        elif changed := [f"{section}.{name}" for name in _SIZES if sizes.get(name) is not None]:
            reading.warn(f"{', '.join(changed)}: the sizes of the model are taken without this change")


def _method(reading: Reading, keys: Lookup) -> None:
    adapter = keys.text("adapter").lower()
    rank = keys.whole("lora_r")
    if keys.flag("peft_use_dora"):
        adapter = adapter or "dora"
    if adapter:
        add_adapter(
            reading, "dora" if keys.flag("peft_use_dora") else adapter, f"adapter {adapter}", rank, "lora_r"
        )
        if keys.flag("load_in_4bit") or adapter == "qlora":
            bits = "load_in_4bit" if keys.has("load_in_4bit") else "adapter qlora"
            reading.add("training.frozen_bits", 8 if keys.flag("load_in_8bit") else 4, bits)
        elif keys.flag("load_in_8bit"):
            reading.add("training.frozen_bits", 8, "load_in_8bit")
        _targets(reading, keys)
    elif keys.has("unfrozen_parameters"):
        reading.warn("unfrozen_parameters: training a part of the weights is counted as training all")
    objective = keys.text("rl").lower()
    if objective:
        reading.add("training.objective", objective, "rl")
    elif keys.flag("reward_model"):
        reading.add("training.objective", "reward", "reward_model")
    elif keys.flag("gkd_trainer"):
        _distillation(reading, keys)
    elif not keys.has("pretraining_dataset"):
        reading.add("training.objective", "sft", "no rl is set", assumed=True)
    add_generations(reading, keys, "trl.")


def _distillation(reading: Reading, keys: Lookup) -> None:
    """A teacher beside the student; `gkd_lmbda` is the share of steps on the student's own answers."""
    reading.add("training.objective", "distill", "gkd_trainer")
    reading.add("training.teacher", keys.text("gkd_teacher") or None, "gkd_teacher")
    if (keys.number("gkd_lmbda") or 0) > 0:
        reading.warn("gkd_lmbda: the time in which the student writes its own answers is not counted")


def _targets(reading: Reading, keys: Lookup) -> None:
    if keys.flag("lora_target_linear"):
        reading.add("training.lora_targets", "all-linear", "lora_target_linear")
    else:
        add_targets(reading, keys, "lora_target_modules")
    if keys.has("lora_modules_to_save"):
        reading.warn("lora_modules_to_save: whole modules trained beside the adapters are not counted")


def _sharding(reading: Reading, keys: Lookup) -> None:
    deepspeed = keys.text("deepspeed")
    if deepspeed:
        reading.files["deepspeed"] = deepspeed
    config = "fsdp_config"
    strategy = keys.first(f"{config}.sharding_strategy", f"{config}.fsdp_sharding_strategy")
    second = keys.number("fsdp_version") == 2 or keys.number(f"{config}.fsdp_version") == 2
    reshard = keys.first(f"{config}.reshard_after_forward", f"{config}.fsdp_reshard_after_forward")
    if second:
        add_fsdp2(reading, keys.flag(reshard) if reshard else None, reshard or "fsdp_version 2")
    elif strategy:
        add_shard(reading, keys.text(strategy), strategy)
    elif keys.has("fsdp"):
        words = keys.get("fsdp")
        listed = words if isinstance(words, list) else str(words).split()
        named = next((str(word) for word in listed if "shard" in str(word)), "full_shard")
        add_shard(reading, named, "fsdp")
    if keys.flag(keys.first(f"{config}.offload_params", f"{config}.fsdp_offload_params") or "none"):
        add_offload(reading, f"{config}: offload_params", "optimizer", "weights")
    if keys.flag(
        keys.first(f"{config}.activation_checkpointing", f"{config}.fsdp_activation_checkpointing") or "none"
    ):
        reading.add("training.layout.recompute", "full", f"{config}.activation_checkpointing")
    add_whole(reading, keys, "training.layout.tensor_parallel", "tensor_parallel_size")
    add_whole(
        reading, keys, "training.layout.context_parallel", "context_parallel_size", "sequence_parallel_degree"
    )
    add_whole(reading, keys, "training.layout.expert_parallel", "expert_parallel_size")
    _degrees_of_data(reading, keys)


def _degrees_of_data(reading: Reading, keys: Lookup) -> None:
    """Copies that see samples of their own: accelerators that share out experts do too.

    Where no degree is above one, all accelerators take part (axolotl/utils/distributed.py).
    """
    degrees = {
        "batch.shards": "dp_shard_size", "batch.replicas": "dp_replicate_size",
        "batch.expert_groups": "expert_parallel_size",
    }  # fmt: skip
    if any((keys.whole(name) or 1) > 1 for name in ("dp_shard_size", "dp_replicate_size")):
        for target, name in degrees.items():
            add_whole(reading, keys, target, name)
    if all((keys.whole(name) or 1) > 1 for name in ("dp_shard_size", "dp_replicate_size")):
        warn_of_groups(reading, "dp_replicate_size")


def _memory(reading: Reading, keys: Lookup) -> None:
    checkpointing = keys.get("gradient_checkpointing")
    offloading = keys.has("activation_offloading") and keys.flag("activation_offloading") is not False
    offloads = str(checkpointing).startswith("offload") or offloading
    if checkpointing and keys.flag("gradient_checkpointing") is not False:
        reading.add("training.layout.recompute", "full", "gradient_checkpointing")
    elif "training.layout.recompute" not in reading.facts:
        reading.add(
            "training.layout.recompute", "none", "gradient_checkpointing is off by default", assumed=True
        )
    if offloads:
        source = "activation_offloading" if offloading else "gradient_checkpointing"
        add_offload(reading, source, "activations")
        if keys.text(source) == "disk":
            reading.warn(f"{source} disk: counted as host memory")
    plugins = " ".join(str(name) for name in keys.get("plugins") or ())
    if "CutCrossEntropy" in plugins or keys.flag("cut_cross_entropy"):
        reading.add("training.memory.loss", "tiled", "cut_cross_entropy")
    elif keys.flag("liger_fused_linear_cross_entropy") or keys.flag("chunked_cross_entropy"):
        reading.add(
            "training.memory.loss",
            "tiled",
            keys.first("liger_fused_linear_cross_entropy", "chunked_cross_entropy"),
        )
    compiled = keys.flag("torch_compile") or keys.text("torch_compile") == "auto"
    add_stack(reading, bool(compiled), "torch_compile", NOT_COMPILED)
    if not keys.flag("pad_to_sequence_len") or keys.flag("sample_packing"):
        reading.add("training.packing", bool(keys.flag("sample_packing")), "sample_packing")
    add_attention(reading, keys, "attn_implementation")
    if keys.flag("eager_attention"):
        reading.add("training.attention", "materialised", "eager_attention")
    keys.seen.add("flash_attention")
    if keys.has("relora_steps") or keys.has("lisa_n_layers") or keys.has("unfrozen_parameters"):
        reading.warn("relora, lisa and frozen parts are counted as the plain method")
    for name, text in _SPECIAL.items():
        if keys.flag(name):
            reading.warn(f"{name}: {text}")
