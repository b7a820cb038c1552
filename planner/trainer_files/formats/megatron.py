"""Megatron-LM and its descendants: the arguments in a launch script (megatron/training/arguments.py)."""

from __future__ import annotations

from planner.errors import InputError
from planner.inputs.model_config import ConfigModel
from planner.trainer_files.formats.common import MICRO_BATCH, Reader
from planner.trainer_files.formats.sizes import NUMBERS, stated_model
from planner.trainer_files.model import Document, Reading

_MARKS = (
    "num_layers",
    "hidden_size",
    "micro_batch_size",
    "tensor_model_parallel_size",
    "hybrid_override_pattern",
)
# programs of Megatron-LM that train no decoder -> the model_type that has their sizes
_KINDS = {"pretrain_bert": "bert", "pretrain_t5": "t5"}
_OTHERS = {
    "pretrain_vision": "a network of images", "pretrain_ict": "two encoders of a retriever",
    "pretrain_retro": "a decoder with a retriever",
}  # fmt: skip
_WITHOUT_EFFECT = (
    r".*lr.*|.*decay.*|adam_.*|clip_grad|init_method.*|.*dropout|seed|log_.*|tensorboard_.*|wandb_.*|timing_.*|eval_.*",
    r"save.*|load.*|ckpt_.*|dist_ckpt.*|data_.*|.*_data_path|split|vocab_file|merge_file|tokenizer.*|num_workers|.*path",
    r"norm.*|.*norm_epsilon|disable_bias.*|add_.*bias.*|position_.*|rotary_.*|use_rotary.*|no_position.*|attention_.*",
    r"transformer_impl|use_mcore.*|distributed_.*|overlap_.*|no_.*|.*fusion|use_flash_attn|mock_data|exit_.*|moe_.*",
    r"master_.*|node_rank|rdzv_.*|local_rank|log_dir|tee|redirects|nproc.*|nnodes|bias_.*|squared_relu|max_.*|min_.*",
    r"accumulate_.*|attention_softmax.*|manual_gc.*|cross_entropy.*|async_.*|auto_detect.*|finetune|.*_interval|empty.*",
    r"start_weight.*|end_weight.*|apply_.*|make_vocab.*|fp8_.*|te_.*|enable_.*|.*_iters|.*_samples|tp_comm.*|use_.*",
    r"group_query_attention|swiglu|bf16|fp16|sequence_parallel|untie.*|train_.*|deepspeed.*|recompute_.*|qk_layer.*",
)


def recognises(document: Document) -> bool:
    """Whether the arguments are Megatron-LM's."""
    names = document.data
    started = any(name.startswith("pretrain_") for name in document.programs)
    marks = sum(mark in names for mark in _MARKS)
    # ms-swift's command, and slime, which passes Megatron-LM's arguments on
    others = "megatron" in document.programs or ("hf_checkpoint" in names and "rollout_batch_size" in names)
    return (
        not others
        and document.syntax == "arguments"
        and marks >= (1 if started else 2)
        and "model" not in names
    )


def read(document: Document) -> Reading:
    """Read a launch script."""
    reader = Reader(document, "Megatron-LM")
    _layout(reader)
    reader.model = _model(reader)
    reader.add_whole(MICRO_BATCH, "micro_batch_size")
    reader.add_whole("training.global_batch", "global_batch_size")
    reader.add_whole("training.sequence_length", "seq_length", "encoder_seq_length")
    if any("t5" in program for program in reader.document.programs):
        reader.add_halves(reader.first("encoder_seq_length", "seq_length"), "decoder_seq_length")
    _length(reader)
    _precision(reader)
    reader.add_optimizer("optimizer")
    reader.add("training.stack", "tuned", "Megatron-LM's fused kernels", assumed=True)
    if reader.flag("optimizer_cpu_offload") or reader.flag("cpu_optimizer"):
        reader.add_offload(reader.first("optimizer_cpu_offload", "cpu_optimizer"), "optimizer")
    pattern = reader.text("hybrid_layer_pattern") or reader.text("hybrid_override_pattern")
    if reader.whole("mtp_num_layers") or "/" in pattern:
        reader.warn("layers that predict further tokens are not counted")
    reader.name_unknown((*_WITHOUT_EFFECT, *NUMBERS.values()))
    return reader


def _model(reader: Reader) -> ConfigModel:
    """The model by its sizes, and by the program that trains it.

    Raises:
        InputError: the program trains a network that these sizes do not describe; names it.
    """
    programs = " ".join(reader.document.programs)
    for mark, text in _OTHERS.items():
        if mark in programs:
            raise InputError(
                f"{reader.path}: {mark} trains {text}: write the workload, or give --model-config"
            )
    kind = next((name for mark, name in _KINDS.items() if mark in programs), "")
    split = reader.facts.get("training.layout.tensor_parallel")
    gated = bool(reader.flag("swiglu") or reader.flag("gated_linear_unit"))
    groups = reader.whole("num_query_groups")
    shared = reader.whole("num_key_value_heads")  # Megatron-DeepSpeed's word
    experts = reader.document.data.get("num_experts")
    if isinstance(experts, list) and len({count for count in experts if str(count).isdigit()}) > 1:
        reader.warn(
            "num_experts: layers with different numbers of experts: the first number is taken for all"
        )
    grouped = reader.flag("group_query_attention")
    if groups and not grouped:
        reader.warn("num_query_groups: Megatron-LM ignores it without group_query_attention")
    tied = not reader.flag("untie_embeddings_and_output_weights")
    learned = reader.text("position_embedding_type") in ("", "learned_absolute") and not reader.flag(
        "use_rotary_position_embeddings"
    )
    return stated_model(
        reader, "", gated=gated, tied=tied, learned_positions=learned,
        kv_heads=groups or 1 if grouped else shared,
        vocab=reader.whole("vocab_size"), kind=kind,
        split=split.value if split is not None else 1, latent=bool(reader.flag("multi_latent_attention")),
    )  # fmt: skip


def _length(reader: Reader) -> None:
    """Note the first of the ends that are stated: Megatron-DeepSpeed stops at its tokens or at its steps."""
    steps, samples, tokens = (reader.whole(f"train_{unit}") for unit in ("iters", "samples", "tokens"))
    batch, length = (reader.facts.get(f"training.{name}") for name in ("global_batch", "sequence_length"))
    of_step = batch.value * length.value if batch is not None and length is not None else None
    if tokens and (not steps or of_step is None or tokens < steps * of_step):
        reader.add("training.tokens", tokens, "train_tokens")
    elif steps:
        reader.add("training.steps", steps, "train_iters")
    else:
        reader.add("training.samples", samples, "train_samples")
    if reader.has("rampup_batch_size"):
        reader.warn("rampup_batch_size: the smaller batches of the beginning are counted as full ones")


def _precision(reader: Reader) -> None:
    for name in ("fp4_format", "fp8_format", "fp8_hybrid", "fp8_e4m3"):
        if reader.has(name):
            reader.add("training.precision", name[:3], name)
            return
    for name in ("bf16", "fp16"):
        if reader.flag(name):
            reader.add("training.precision", name, name)
            return
    reader.add("training.precision", "fp32", "neither bf16 nor fp16 is set", assumed=True)


def _layout(reader: Reader) -> None:
    layout = "training.layout."
    reader.add_whole(f"{layout}tensor_parallel", "tensor_model_parallel_size", "model_parallel_size")
    reader.add_whole(f"{layout}pipeline_parallel", "pipeline_model_parallel_size")
    reader.add_whole(f"{layout}context_parallel", "context_parallel_size")
    reader.add_whole(f"{layout}expert_parallel", "expert_model_parallel_size", "moe_expert_parallel_size")
    split = reader.facts.get(f"{layout}tensor_parallel")
    if (
        reader.flag("sequence_parallel") and split is not None and split.value > 1
    ):  # else it turns it off itself
        reader.add(f"{layout}sequence_parallel", True, "sequence_parallel")
    _interleave(reader)
    strategy = reader.text("data_parallel_sharding_strategy")
    stages = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
    if reader.number("zero_stage") in (0, 1, 2, 3):
        reader.add(f"{layout}zero_stage", int(reader.number("zero_stage") or 0), "zero_stage")
    elif strategy in stages:
        reader.add(f"{layout}zero_stage", stages[strategy], "data_parallel_sharding_strategy")
    elif reader.flag("use_torch_fsdp2"):
        reader.add(f"{layout}zero_stage", 3, "use_torch_fsdp2")
    elif reader.flag("use_distributed_optimizer"):
        reader.add(f"{layout}zero_stage", 1, "use_distributed_optimizer")
    elif reader.text("deepspeed_config"):
        reader.files["deepspeed"] = reader.text("deepspeed_config")
    granularity = reader.text("recompute_granularity")
    if granularity in ("full", "selective"):
        reader.add(f"{layout}recompute", granularity, "recompute_granularity")
    elif reader.flag("recompute_activations"):
        reader.add(f"{layout}recompute", "selective", "recompute_activations")
    elif whole := reader.first("checkpoint_activations", "activations_checkpoint_method"):
        reader.add(f"{layout}recompute", "full", whole)
    else:
        reader.add(f"{layout}recompute", "none", "recompute is off by default", assumed=True)
    reader.add_launcher()


def _interleave(reader: Reader) -> None:
    stages = reader.whole("pipeline_model_parallel_size") or 1
    per_stage, layers = reader.whole("num_layers_per_virtual_pipeline_stage"), reader.whole("num_layers")
    if per_stage and layers and stages > 1:
        reader.add(
            "training.layout.interleave",
            max(1, layers // stages // per_stage),
            "num_layers_per_virtual_pipeline_stage",
        )
    elif stages > 1:
        reader.add_whole("training.layout.interleave", "num_virtual_stages_per_pipeline_rank")
