"""LLaMA-Factory: one YAML file of a run (https://llamafactory.readthedocs.io)."""

from __future__ import annotations

from planner.errors import InputError
from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, MICRO_BATCH, NOT_COMPILED, Reader
from planner.trainer_files.model import Document, Reading

_MARKS = ("finetuning_type", "template", "cutoff_len", "dataset_dir")
_STAGES = {"pt": "pretrain", "sft": "sft", "rm": "reward", "ppo": "ppo", "dpo": "dpo", "kto": "kto"}
_SPECIAL = {
    "use_galore": "GaLore's projected states are counted as those of AdamW",
    "use_apollo": "APOLLO's projected states are counted as those of AdamW",
    "use_badam": "BAdam trains one block of layers at a time; all are counted",
    "use_adam_mini": "Adam-mini's smaller states are counted as those of AdamW",
    "use_muon": "Muon's single momentum is counted as AdamW's two",
    "use_llama_pro": "LLaMA Pro trains new blocks alone; all weights are counted",
    "use_unsloth": "Unsloth's kernels are not measured: the step is predicted as without them",
    "shift_attn": "shifted sparse attention is counted as plain attention",
    "mixture_of_depths": "mixture of depths is counted as the plain model",
}
_FROZEN = ("freeze_vision_tower", "freeze_language_model", "freeze_multi_modal_projector")
_WITHOUT_EFFECT = (
    r"trust_remote_code|adapter_.*|cache_dir|use_fast.*|resize_vocab|split_special.*|new_special.*|model_revision|hf_.*",
    r"ms_.*|om_.*|low_cpu_mem.*|rope_scaling|flash_attn|attn|fp8_.*|sequence_parallel_mode|alst_.*|image_.*|video_.*|audio_.*|crop_to.*|use_v1_kernels|use_cache",
    r"infer_.*|vllm_.*|sglang_.*|offload_folder|export_.*|print_param.*|enable_liger.*|use_kt|kt_.*|moe_aux.*|use_reent.*",
    r"template|dataset.*|eval.*|.*prompt.*|streaming|buffer_size|mix_.*|interleave_.*|overwrite_.*|preprocessing_.*",
    r"max_samples|val_size|ignore_pad.*|neat_packing|tool_format|tokenized_path|media_dir|train_on_.*|mask_.*|enable_th.*",
    r"lora_(alpha|dropout)|loraplus_.*|use_(rslora|pissa|dft_loss|eaft_loss|asft_loss|swanlab|ray)|pissa_.*|create_new.*",
    r"additional_target|galore_.*|apollo_.*|badam_.*|freeze_extra.*|module_dropout|oft_.*|pref_.*|dpo_.*|kto_.*|simpo_.*",
    r"ref_model.*|reward_.*|ppo_.*|swanlab_.*|stage|do_.*|output_dir|logging_.*|save_.*|plot_loss|report_to|ray_.*|run_.*",
    r"learning_rate|lr_.*|warmup_.*|weight_decay|adam_.*|max_grad_norm|optim_args|ddp_.*|resume_.*|seed|data_seed|load_.*",
    r"per_device_eval.*|predict_.*|metric_.*|compute_accuracy|include_.*|gradient_checkpointing_kwargs|label_.*|master_.*",
    r"dataloader_.*|remove_unused.*|group_by.*|deepspeed|fsdp_config|early_stop.*|disable_tqdm|push_.*|hub_.*|num_beams",
)


def recognises(document: Document) -> bool:
    """Whether the keys are LLaMA-Factory's."""
    data = document.data
    return "model_name_or_path" in data and any(mark in data for mark in _MARKS)


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: the file trains nothing.
    """
    reader = Reader(document, "LLaMA-Factory")
    if reader.flag("do_train") is not True and (reader.flag("do_predict") or reader.flag("do_eval")):
        raise InputError(
            f"{document.path}: do_train is not set: the file only predicts or evaluates, it trains nothing"
        )
    if (
        not reader.has("stage")
        and not reader.has("per_device_train_batch_size")
        and reader.flag("do_train") is not True
    ):
        raise InputError(
            f"{document.path}: states no training (stage, do_train): is it for chat, export or inference?"
        )
    reader.hub_name, reader.hub_key = reader.text("model_name_or_path"), "model_name_or_path"
    add_batch(reader)
    if document.syntax == "arguments":
        reader.add_launcher()
    reader.add_length(steps="max_steps", epochs="num_train_epochs", default_epochs=3.0)
    reader.add_whole("training.sequence_length", "cutoff_len", default=2048)
    reader.add_trainer_precision()
    if "training.precision" not in reader.facts:
        text = "neither bf16 nor fp16 is set: the weights' own precision"
        reader.add("training.precision", "bf16", text, assumed=True)
    if reader.flag("pure_bf16"):
        reader.add("training.memory.master", "none", "pure_bf16")
    reader.add_optimizer("optim")
    _method(reader)
    _memory(reader)
    _samples(reader)
    reader.add_engine("deepspeed")
    if reader.has("fsdp"):
        reader.add("training.layout.zero_stage", 3, "fsdp")
    for name, text in _SPECIAL.items():
        if reader.has(name) and reader.flag(name) is not False:
            reader.warn(f"{name}: {text}")
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def add_batch(reader: Reader) -> None:
    """Note the batch as the Trainer of Hugging Face states it, with its defaults."""
    reader.add_whole(MICRO_BATCH, "per_device_train_batch_size", default=8)
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps", default=1)
    reader.add_whole(ACCELERATORS, "ray_num_workers")


def _method(reader: Reader) -> None:
    stage = reader.text("stage") or "sft"
    reader.add("training.objective", _objective(stage, reader.text("pref_loss")), "stage")
    reader.add_whole("rollouts.response_max", "max_new_tokens")
    kind = reader.text("finetuning_type") or "lora"
    reader.seen.update(_FROZEN)
    if kind in ("lora", "oft"):
        if reader.flag("use_dora"):
            kind = "dora"
        source = (
            f"finetuning_type {kind}" if reader.has("finetuning_type") else "the default of finetuning_type"
        )
        default = 8 if kind != "oft" else None
        reader.add_adapter(kind, source, reader.whole("lora_rank") or default, "lora_rank")
        reader.add_targets("lora_target")
        bits = reader.whole("quantization_bit")
        if bits is not None:
            reader.add("training.frozen_bits", bits, "quantization_bit")
            reader.get("quantization_method")
        reader.freeze_beside_adapters(_FROZEN[0])
    elif kind == "freeze":
        reader.add("training.method", "full", "finetuning_type freeze")
        layers = reader.number("freeze_trainable_layers")
        shown = 2 if layers is None else int(layers)
        reader.warn(f"finetuning_type freeze: {shown} layers are trained, all are counted")
    else:
        reader.add("training.method", "full", f"finetuning_type {kind}")
        _frozen(reader)


def _frozen(reader: Reader) -> None:
    """What stays frozen although all weights are trained: the encoder unless the file says otherwise."""
    encoder, language, _ = _FROZEN  # a projector is small: it counts with the language model
    if reader.flag(language):
        reader.add_projector(language)
        if reader.flag(encoder) is False:
            reader.warn_of_encoder(encoder)
    elif reader.flag(encoder) is not False:
        reader.freeze_by_default(encoder)


def _objective(stage: str, loss: str) -> str:
    if stage == "dpo" and loss in ("orpo", "simpo", "ipo"):
        return loss
    return _STAGES.get(stage, stage)


def _memory(reader: Reader) -> None:
    if reader.flag("disable_gradient_checkpointing"):
        reader.add("training.layout.recompute", "none", "disable_gradient_checkpointing")
    elif reader.flag("gradient_checkpointing"):
        reader.add("training.layout.recompute", "full", "gradient_checkpointing")
    else:
        reader.add(
            "training.layout.recompute", "full", "on unless disable_gradient_checkpointing", assumed=True
        )
    reader.add_whole("training.layout.context_parallel", "sequence_parallel_size", "alst_ulysses_degree")
    reader.add_attention("flash_attn")
    if reader.text("flash_attn").lower() == "disabled":
        reader.add("training.attention", "materialised", "flash_attn disabled")
    if reader.flag("enable_liger_kernel"):
        reader.add("training.memory.loss", "tiled", "enable_liger_kernel")
    reader.add_stack(bool(reader.flag("torch_compile")), "torch_compile", NOT_COMPILED)
    packed = reader.first("packing", "neat_packing")
    reader.add("training.packing", bool(reader.flag(packed)) or reader.text("stage") == "pt",
               packed or "the default of packing", assumed=not packed)  # fmt: skip


def _samples(reader: Reader) -> None:
    most = reader.whole("max_samples")
    sets = reader.get("dataset")
    names = sets.split(",") if isinstance(sets, str) else sets if isinstance(sets, list) else []
    if most is not None and names and "training.epochs" in reader.facts:
        text = f"max_samples {most:,} of each of {len(names)} sets: at most so many"
        reader.add("data.samples", most * len(names), text, assumed=True)
