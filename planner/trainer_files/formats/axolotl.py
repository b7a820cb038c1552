"""axolotl: one YAML file of a fine-tuning run (https://docs.axolotl.ai/docs/config-reference.html)."""

from __future__ import annotations

from dataclasses import replace

from planner.inputs.model_config import is_model_config, model_of_config
from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, NOT_COMPILED, Reader
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
    r"base_model_.*|(tokenizer|processor)_.*|model_type|trust_remote_code|is_.*|hub_.*|hf_.*|push_.*|.*wandb.*|mlflow_.*|comet_.*",
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
)


def recognises(document: Document) -> bool:
    """Whether the keys are axolotl's."""
    data = document.data
    return (
        document.syntax in ("yaml", "json") and "base_model" in data and any(mark in data for mark in _MARKS)
    )


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(document, "axolotl")
    _model(reader)
    reader.add_whole(MICRO_BATCH, "micro_batch_size")
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
    if MICRO_BATCH not in reader.facts:
        reader.add_whole("training.global_batch", "batch_size")
    reader.add_length(steps="max_steps", epochs="num_epochs", default_epochs=1.0)
    reader.add_whole("training.sequence_length", "sequence_len", "rl_max_length")
    if reader.flag("tf32") and not any(
        reader.has(name) for name in ("bf16", "fp16", "bfloat16", "float16", "fp8")
    ):
        reader.add("training.precision", "tf32", "tf32")
    reader.add_trainer_precision()
    reader.add_optimizer("optimizer")
    _method(reader)
    _sharding(reader)
    _memory(reader)
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _model(reader: Reader) -> None:
    """The base model, or without one the sizes of a `config.json` that a new model is made from."""
    reader.hub_name, reader.hub_key = reader.text("base_model"), "base_model"
    for section in ("overrides_of_model_config", "model_config"):
        sizes = reader.get(section)
        if not isinstance(sizes, dict):
            continue
        if not reader.hub_name and is_model_config(sizes):
            model = model_of_config(sizes, str(reader.path))
            sources = {key: f"{section}.{name}" for key, name in model.sources.items()}
            reader.model = replace(model, sources=sources)
        elif changed := [f"{section}.{name}" for name in _SIZES if sizes.get(name) is not None]:
            reader.warn(f"{', '.join(changed)}: the sizes of the model are taken without this change")


def _method(reader: Reader) -> None:
    adapter = reader.text("adapter").lower()
    rank = reader.whole("lora_r")
    if reader.flag("peft_use_dora"):
        adapter = adapter or "dora"
    if adapter:
        reader.add_adapter(
            "dora" if reader.flag("peft_use_dora") else adapter, f"adapter {adapter}", rank, "lora_r"
        )
        if reader.flag("load_in_4bit") or adapter == "qlora":
            bits = "load_in_4bit" if reader.has("load_in_4bit") else "adapter qlora"
            reader.add("training.frozen_bits", 8 if reader.flag("load_in_8bit") else 4, bits)
        elif reader.flag("load_in_8bit"):
            reader.add("training.frozen_bits", 8, "load_in_8bit")
        _targets(reader)
    elif reader.has("unfrozen_parameters"):
        reader.warn("unfrozen_parameters: training a part of the weights is counted as training all")
    if reader.flag("freeze_mm_modules"):
        reader.freeze_encoder("freeze_mm_modules")
    elif adapter and reader.has("processor_type"):  # images are read
        targets = str(reader.get("lora_target_modules"))
        where = "processor_type, with lora_target_modules of the language model"
        if "language_model" in targets and "vis" not in targets:
            reader.freeze_encoder(where, assumed=True)
    objective = reader.text("rl").lower()
    if objective:
        reader.add("training.objective", objective, "rl")
    elif reader.flag("reward_model"):
        reader.add("training.objective", "reward", "reward_model")
    elif reader.flag("gkd_trainer"):
        _distillation(reader)
    elif not reader.has("pretraining_dataset"):
        reader.add("training.objective", "sft", "no rl is set", assumed=True)
    reader.add_generations("trl.")
    reader.add_whole("rollouts.tensor_parallel", "vllm.tensor_parallel_size")
    reader.add_precomputed_reference()


def _distillation(reader: Reader) -> None:
    """A teacher beside the student; `gkd_lmbda` is the share of steps on the student's own answers."""
    reader.add("training.objective", "distill", "gkd_trainer")
    reader.add("training.teacher", reader.text("gkd_teacher") or None, "gkd_teacher")
    if (reader.number("gkd_lmbda") or 0) > 0:
        reader.warn("gkd_lmbda: the time in which the student writes its own answers is not counted")


def _targets(reader: Reader) -> None:
    if reader.flag("lora_target_linear"):
        reader.add("training.lora_targets", "all-linear", "lora_target_linear")
    else:
        reader.add_targets("lora_target_modules")
    if reader.has("lora_modules_to_save"):
        reader.warn("lora_modules_to_save: whole modules trained beside the adapters are not counted")


def _sharding(reader: Reader) -> None:
    reader.add_engine("deepspeed")
    config = "fsdp_config"
    strategy = reader.first(f"{config}.sharding_strategy", f"{config}.fsdp_sharding_strategy")
    second = reader.number("fsdp_version") == 2 or reader.number(f"{config}.fsdp_version") == 2
    reshard = reader.first(f"{config}.reshard_after_forward", f"{config}.fsdp_reshard_after_forward")
    if second:
        reader.add_fsdp2(reader.flag(reshard) if reshard else None, reshard or "fsdp_version 2")
    elif strategy:
        reader.add_shard(reader.text(strategy), strategy)
    elif reader.has("fsdp"):
        words = reader.get("fsdp")
        listed = words if isinstance(words, list) else str(words).split()
        named = next((str(word) for word in listed if "shard" in str(word)), "full_shard")
        reader.add_shard(named, "fsdp")
    if reader.flag(reader.first(f"{config}.offload_params", f"{config}.fsdp_offload_params")):
        reader.add_offload(f"{config}: offload_params", "optimizer", "weights")
    if reader.flag(
        reader.first(f"{config}.activation_checkpointing", f"{config}.fsdp_activation_checkpointing")
        or "none"
    ):
        reader.add("training.layout.recompute", "full", f"{config}.activation_checkpointing")
    reader.add_whole("training.layout.tensor_parallel", "tensor_parallel_size")
    reader.add_whole("training.layout.context_parallel", "context_parallel_size", "sequence_parallel_degree")
    reader.add_whole("training.layout.expert_parallel", "expert_parallel_size")
    _degrees_of_data(reader)


def _degrees_of_data(reader: Reader) -> None:
    """Copies that see samples of their own: accelerators that share out experts do too.

    Where no degree is above one, all accelerators take part (axolotl/utils/distributed.py).
    """
    degrees = {
        "batch.shards": "dp_shard_size", "batch.replicas": "dp_replicate_size",
        "batch.expert_groups": "expert_parallel_size",
    }  # fmt: skip
    if any((reader.whole(name) or 1) > 1 for name in ("dp_shard_size", "dp_replicate_size")):
        for target, name in degrees.items():
            reader.add_whole(target, name)
    if all((reader.whole(name) or 1) > 1 for name in ("dp_shard_size", "dp_replicate_size")):
        reader.warn_of_groups("dp_replicate_size")


def _memory(reader: Reader) -> None:
    checkpointing = reader.get("gradient_checkpointing")
    offloading = reader.has("activation_offloading") and reader.flag("activation_offloading") is not False
    offloads = str(checkpointing).startswith("offload") or offloading
    if checkpointing and reader.flag("gradient_checkpointing") is not False:
        reader.add("training.layout.recompute", "full", "gradient_checkpointing")
    elif "training.layout.recompute" not in reader.facts:
        reader.add(
            "training.layout.recompute", "none", "gradient_checkpointing is off by default", assumed=True
        )
    if offloads:
        source = "activation_offloading" if offloading else "gradient_checkpointing"
        reader.add_offload(source, "activations")
        if reader.text(source) == "disk":
            reader.warn(f"{source} disk: counted as host memory")
    plugins = " ".join(str(name) for name in reader.get("plugins") or ())
    if "CutCrossEntropy" in plugins or reader.flag("cut_cross_entropy"):
        reader.add("training.memory.loss", "tiled", "cut_cross_entropy")
    elif reader.flag("liger_fused_linear_cross_entropy") or reader.flag("chunked_cross_entropy"):
        reader.add(
            "training.memory.loss",
            "tiled",
            reader.first("liger_fused_linear_cross_entropy", "chunked_cross_entropy"),
        )
    compiled = reader.flag("torch_compile") or reader.text("torch_compile") == "auto"
    reader.add_stack(bool(compiled), "torch_compile", NOT_COMPILED)
    if not reader.flag("pad_to_sequence_len") or reader.flag("sample_packing"):
        reader.add("training.packing", bool(reader.flag("sample_packing")), "sample_packing")
    reader.add_attention("attn_implementation")
    if reader.flag("eager_attention"):
        reader.add("training.attention", "materialised", "eager_attention")
    reader.seen.add("flash_attention")
    if reader.has("relora_steps") or reader.has("lisa_n_layers") or reader.has("unfrozen_parameters"):
        reader.warn("relora, lisa and frozen parts are counted as the plain method")
    for name, text in _SPECIAL.items():
        if reader.flag(name):
            reader.warn(f"{name}: {text}")
