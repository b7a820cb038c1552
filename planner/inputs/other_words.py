"""Words that other tools use, and what is written here instead: keys, values, and keys that have no place here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WHOLE_BATCH = (
    "global_batch counts what all accelerators do in one optimizer step: samples per device x accumulation x devices; "
    "layout.micro_batch fixes the samples per device"
)
_NEITHER = "it changes neither time nor cost: leave it out"
_WITHOUT_SPOT = "to do without spot, write exclude_purchase_options: [spot] under 'constraints'"
_NO_SPOT = "to do without spot, write exclude_purchase_options: [spot]; how spot may be used is 'spot' at the top level"
_MACHINES = (
    "your own machines are described in a file under prices.offers (`planner validate FILE` checks it), "
    "reserved ones under commitments; constraints.accelerators and constraints.instance_types limit the choice; "
    "baseline names today's cluster"
)
_PLACES = "set the location of machines with constraints.regions, that of the data with data.location"
_WHAT_IS_BOUGHT = "write purchase_options under 'constraints'"
_WHOSE = "write providers under 'constraints'"
_RECOMPUTED = "write layout: {recompute: full}; without it, the planner decides"
_CREDITS = "credits pay for a plan and do not change it: write the provider under providers, what is left as budget_usd"
_SCOPE = "write the scope of the budget as by: tag:team, service or account, and scope: its value"
_STANDS = "only the place counts: write location, such as aws/us-east-1"
_PRECISION = "write precision: bf16, fp16, fp8 or fp32"
_PROMPTS = "write rollouts: {prompt_tokens: {mean: 512}}; without generation part of sequence_length"
_RESPONSES = (
    "write rollouts: {response_tokens: {mean: 800, max: 4096}}; without generation part of sequence_length"
)
_GROUP = "write rollouts: {samples_per_prompt: 16}"
_OF_A_STEP = "global_batch counts the responses of a step: its prompts x rollouts.samples_per_prompt"
_IN_SEQUENCES = "write global_batch in sequences: tokens of a step / sequence_length"
_RESOLUTION = (
    "write image_size under 'model'; of a video model, sequence_length counts the latent tokens of a clip"
)
_KIND_OF_MODEL = "write family: transformer, cnn, vit or diffusion"
_AUDIO = "write samples; an audio model takes pieces (Whisper: 30 s), so hours x 120 of those"
_GRAPH = "graph networks are not modelled as such: write samples, those of an epoch"
_ACCOUNT = "limits of the account are quota under 'constraints': [{provider: aws, quota: h100, limit: 64}]"
_PAID = "for capacity already paid, write commitments: [{provider, region, instance_type, purchase_option, nodes}]"
_RUNS = "many runs of one training are kind: fleet with fleet: {runs: 200}"
_OF_THE_JOB = "write a section 'training', or with kind: inference 'inference'"
_WHICH_QUOTA = "write quota: h100, a family of instance types or the quota's name"
_WITH_SPOT = (
    "spot is allowed unless constraints exclude it; for spot only, write purchase_options: [spot] there"
)
_BOUGHT = "write parts: [{name: workstation, usd: 5000}]"
_PASSES = "passes over the set are 'epochs', in place of tokens, samples or steps"

KEYS: Mapping[str, str] = {
    "batch_size": "global_batch",
    "train_batch_size": "global_batch",
    "seq_len": "sequence_length",
    "sequence_len": "sequence_length",
    "seq_length": "sequence_length",
    "max_seq_len": "sequence_length",
    "max_seq_length": "sequence_length",
    "max_length": "sequence_length",
    "max_steps": "steps",
    "train_steps": "steps",
    "budget": "budget_usd",
    "max_cost": "budget_usd",
    **dict.fromkeys(
        ("max_hours", "max_time", "time_limit", "max_duration", "walltime", "timeout"), "deadline"
    ),
    "gpus": "accelerators",
    "gpu": "accelerators",
    "num_gpus": "accelerators",
    "max_gpus": "max_accelerators",
    "dtype": "precision",
    "clouds": "providers",
    "cloud": "providers",
    "region": "location",
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "cp": "context_parallel",
    "ep": "expert_parallel",
    "zero": "zero_stage",
    "n_layers": "layers",
    "n_layer": "layers",
    "num_layers": "layers",
    "num_hidden_layers": "layers",
    "d_model": "hidden",
    "n_embd": "hidden",
    "hidden_size": "hidden",
    "n_heads": "heads",
    "n_head": "heads",
    "num_attention_heads": "heads",
    "n_kv_heads": "kv_heads",
    "num_key_value_heads": "kv_heads",
    "intermediate_size": "ffn",
    "num_experts": "experts",
    "num_local_experts": "experts",
    "n_routed_experts": "experts",
    "num_experts_per_tok": "experts_per_token",
    "n_shared_experts": "shared_experts",
    "moe_intermediate_size": "moe_ffn",
    "tie_word_embeddings": "tied_embeddings",
    "sliding_window": "attention_window",
    "vocab_size": "vocab",
    **dict.fromkeys(("parameters", "num_params", "num_parameters", "n_params"), "params"),
    **dict.fromkeys(("hidden_dim", "embed_dim", "embedding_dim"), "hidden"),
    **dict.fromkeys(("depth", "num_blocks"), "layers"),
    **dict.fromkeys(("num_heads", "n_attention_heads"), "heads"),
    "mlp_dim": "ffn",
    **dict.fromkeys(("img_size", "image_resolution"), "image_size"),
    **dict.fromkeys(("rank", "r", "lora_r"), "lora_rank"),
    **dict.fromkeys(("optim", "optimizer_name"), "optimizer"),
    **dict.fromkeys(("mixed_precision", "torch_dtype"), "precision"),
    "teacher_model": "teacher",
    **dict.fromkeys(("images", "rows", "examples", "records", "num_samples", "pairs", "clips"), "samples"),
    **dict.fromkeys(("documents", "prompts", "num_prompts", "num_requests"), "requests"),
    "prompt_tokens": "input_tokens",
    **dict.fromkeys(
        ("completion_tokens", "max_tokens", "max_new_tokens", "response_tokens"), "output_tokens"
    ),
    **dict.fromkeys(("gpu_type", "accelerator_type"), "accelerators"),
    **dict.fromkeys(("until", "end", "ends", "expiry", "expiration", "term"), "expires"),
    "dataset": "data",
}
_OF_NUMBERS: Mapping[str, str] = {"accelerators": "max_accelerators"}  # where the value is a number
_LENGTH = "it belongs under 'training'; with kind: inference, write inference.input_tokens"
_EXPLAINED: Mapping[str, Mapping[str, str]] = {
    "training": {
        "gradient_accumulation_steps": _WHOLE_BATCH,
        "gradient_accumulation": _WHOLE_BATCH,
        "per_device_train_batch_size": _WHOLE_BATCH,
        "per_device_batch_size": _WHOLE_BATCH,
        "micro_batch_size": _WHOLE_BATCH,
        "num_train_epochs": _PASSES,
        "num_epochs": _PASSES,
        "learning_rate": _NEITHER,
        "lr": _NEITHER,
        "lr_scheduler": _NEITHER,
        "warmup_steps": _NEITHER,
        "weight_decay": _NEITHER,
        **dict.fromkeys(
            (
                "seed",
                "beta",
                "temperature",
                "top_p",
                "kl_coef",
                "fim_rate",
                "warmup_ratio",
                "lora_alpha",
                "lora_dropout",
                "max_grad_norm",
                "gradient_clipping",
                "grad_clip",
                "label_smoothing",
                "scheduler",
            ),
            _NEITHER,
        ),
        **dict.fromkeys(("max_prompt_length", "prompt_max_len", "prompt_length"), _PROMPTS),
        **dict.fromkeys(
            (
                "max_completion_length",
                "max_new_tokens",
                "generate_max_len",
                "max_response_length",
                "response_length",
            ),
            _RESPONSES,
        ),
        **dict.fromkeys(("num_generations", "group_size", "n_samples_per_prompt"), _GROUP),
        **dict.fromkeys(("prompts", "rollout_batch_size", "train_prompt_bsz"), _OF_A_STEP),
        **dict.fromkeys(
            ("global_batch_tokens", "batch_tokens", "tokens_per_batch", "batch_size_tokens"), _IN_SEQUENCES
        ),
        **dict.fromkeys(("resolution", "frames", "num_frames"), _RESOLUTION),
        "reward_model": "what scores the responses is not counted: leave it out",
        "batch": _WHOLE_BATCH,
        "gradient_checkpointing": _RECOMPUTED,
        "activation_checkpointing": _RECOMPUTED,
        "lora": "write method: lora and lora_rank",
        "qlora": "write method: qlora and lora_rank",
        "peft": "write method: lora and lora_rank",
        **dict.fromkeys(("bf16", "fp16", "fp8", "fp32"), _PRECISION),
    },
    "model": {
        "sequence_length": _LENGTH,
        "seq_len": _LENGTH,
        "max_seq_length": _LENGTH,
        "context_length": _LENGTH,
        **dict.fromkeys(("max_position_embeddings", "frames", "num_frames"), _LENGTH),
        **dict.fromkeys(("type", "model_type"), _KIND_OF_MODEL),
        "resolution": "write image_size, the side of a square image in pixels",
    },
    "rollouts": {
        **dict.fromkeys(("num_generations", "group_size", "n"), "write samples_per_prompt"),
        **dict.fromkeys(("max_prompt_length", "prompt_length"), "write prompt_tokens: {mean: 512}"),
        **dict.fromkeys(
            ("max_completion_length", "max_new_tokens", "max_response_length"),
            "write response_tokens: {mean: 800, max: 4096}",
        ),
    },
    "inference": {
        "sequence_length": "write input_tokens, and output_tokens where it generates",
        "prompt_length": "write input_tokens: {mean: 800}",
        **dict.fromkeys(
            ("answer_tokens", "completion_tokens", "max_new_tokens"), "write output_tokens: {mean: 200}"
        ),
    },
    "constraints": {
        **dict.fromkeys(("spot", "use_spot", "no_spot", "allow_spot"), _NO_SPOT),
        "credits": _CREDITS,
        "owned": _MACHINES,
        "hours": "write deadline: 5h, or a date",
        "count": "write max_accelerators, or max_nodes for machines",
        "location": _PLACES,
    },
    "preferences": {
        **dict.fromkeys(("purchase", "purchase_option", "purchase_options"), _WHAT_IS_BOUGHT),
        **dict.fromkeys(("provider", "providers", "cloud", "clouds"), _WHOSE),
        **dict.fromkeys(
            ("region", "regions", "location"), "write prefer_regions, or regions under 'constraints'"
        ),
        "spot": _WITHOUT_SPOT,
    },
    "budgets": {
        **dict.fromkeys(
            ("amount_usd", "budget_usd", "usd"),
            "write amount; its currency is that of the file, USD by default",
        ),
        **dict.fromkeys(("tags", "team", "service", "project", "account"), _SCOPE),
    },
    "tasks": dict.fromkeys(
        ("after", "depends_on", "needs", "inputs", "output", "outputs"),
        "write reads: [{task: NAME, size: 20GB}] at the task that reads",
    ),
    "jobs": dict.fromkeys(
        ("after", "depends_on", "needs"),
        "jobs do not wait for each other; tasks of a pipeline do (planner pipeline)",
    ),
    "recurrence": dict.fromkeys(("runs", "count", "repeats", "number"), "write times: how many runs in all"),
    "quota": {
        **dict.fromkeys(("gpu", "gpus", "accelerator", "instance_type", "family", "name"), _WHICH_QUOTA),
        **dict.fromkeys(
            ("max", "count", "value", "gpu_count"), "write limit, and unit: GPU, vCPU or instances"
        ),
    },
    "commitments": {**dict.fromkeys(("count", "quantity", "instances"), "write nodes")},
    "spot": dict.fromkeys(("preemptible", "enabled", "use", "allow", "allowed"), _WITH_SPOT),
    "machine": {
        "gpu": "write accelerator, such as rtx4090-24gb-pcie",
        **dict.fromkeys(
            ("count", "gpus", "num_gpus", "gpu_count"), "write accelerators; several machines are machines"
        ),
        **dict.fromkeys(("price", "cost", "usd", "price_usd"), _BOUGHT),
    },
    "parts": dict.fromkeys(("price", "cost", "amount", "price_usd"), "write usd"),
    "data": {
        **dict.fromkeys(("hours", "hours_of_audio", "audio_hours", "duration"), _AUDIO),
        **dict.fromkeys(("nodes", "edges"), _GRAPH),
        **dict.fromkeys(("columns", "features"), "the width of a sample belongs to the model: leave it out"),
        **dict.fromkeys(("bucket", "uri", "url", "path"), _STANDS),
        "format": "write encoded: image, audio or video where CPU cores decode the samples, else leave it out",
    },
    "": {
        "spot": _WITHOUT_SPOT,
        **dict.fromkeys(("owned", "resources", "cluster", "hardware", "machines", "compute"), _MACHINES),
        **dict.fromkeys(("region", "regions"), _PLACES),
        "credits": _CREDITS,
        "seed": _NEITHER,
        **dict.fromkeys(("quotas", "quota", "limits"), _ACCOUNT),
        **dict.fromkeys(("reservations", "reserved", "savings_plans", "reserved_instances"), _PAID),
        **dict.fromkeys(("trials", "n_trials", "num_trials", "runs"), _RUNS),
        **dict.fromkeys(("workload", "job", "task_config"), _OF_THE_JOB),
    },
}
VALUES: Mapping[str, str] = {
    "finetune": "sft",
    "finetuning": "sft",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "mixed": "bf16",
    "float32": "fp32",
    "nvidia": "cuda",
    "amd": "rocm",
    "trainium": "neuron",
    "inferentia": "neuron",
    "habana": "gaudi",
    "ascend": "cann",
    **dict.fromkeys(("adamwtorch", "adamwtorchfused", "adamwhf", "fusedadam", "adamwfused"), "adamw"),
    **dict.fromkeys(("adamwbnb8bit", "adam8bit"), "adamw_8bit"),
    "pagedadamw32bit": "paged_adamw",
    "cheapest": "cost",
    "fastest": "time",
}


_OBJECTIVES = ("sft", "dpo", "orpo", "kto", "reward", "ppo", "grpo", "distill", "contrastive")
_ANY_NETWORK = (
    "it is not modelled as such: family: cnn with params, forward_flops_per_sample and activations_per_sample takes "
    "any network; what its data loader does is not counted"
)
VALUES_ELSEWHERE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("training", "method"): {
        **{name: f"write objective: {name}; method says which weights learn" for name in _OBJECTIVES},
        "distillation": "write objective: distill; method says which weights learn",
        "rlhf": "write objective: ppo or grpo; method says which weights learn",
        **dict.fromkeys(
            ("qat", "quantization_aware"),
            "the rounding of quantization-aware training is not counted: write full",
        ),
    },
    ("model", "family"): {
        **dict.fromkeys(
            ("llm", "gpt", "bert", "encoder", "decoder", "moe", "mamba", "ssm"), "write transformer"
        ),
        **dict.fromkeys(("dit", "unet"), "write diffusion"),
        **dict.fromkeys(("gnn", "graph", "rnn", "lstm", "mlp", "tabular", "gbdt", "dlrm"), _ANY_NETWORK),
    },
}


def value_elsewhere(path: tuple[str | int, ...], value: str) -> str:
    """Return what to write instead of a value that belongs to another key or unit; "" where nothing is known."""
    section, key = (str(part) for part in ("", "", *path)[-2:])
    if key == "global_batch" and "tok" in value.lower():
        return _IN_SEQUENCES
    return VALUES_ELSEWHERE.get((section, key), {}).get(value.lower().replace("-", "_"), "")


def key_meant(key: str, value: object, known: Sequence[str]) -> str:
    """Return the key of `known` that another tool calls `key`, "" where none is.

    Args:
        key: as written.
        value: what was written for it: `gpus: 8` limits their number, `gpus: [h100]` names them.
        known: the keys of the section.
    """
    meant = KEYS.get(key.lower(), "")
    if isinstance(value, int) and not isinstance(value, bool):
        meant = _OF_NUMBERS.get(meant, meant)
    return meant if meant in known else ""


def other_name(value: str, choices: Sequence[str]) -> str:
    """Return the choice that another tool calls `value`, "" where none is."""
    meant = VALUES.get(value.lower().replace("-", "").replace("_", ""), "")
    return meant if meant in choices else ""


def begins_with(value: str, choices: Sequence[str]) -> str:
    """Return the longest choice that `value` begins with, as `adamw_torch_fused` with `adamw`; "" where none."""
    written = value.lower().replace("-", "_")
    return max((one for one in choices if written.startswith(f"{one}_")), key=len, default="")


def why_not_here(section: str, key: str) -> str:
    """Return why a section has no such key and what to write instead, "" where nothing is known."""
    return _EXPLAINED.get(section, {}).get(key.lower(), "")
