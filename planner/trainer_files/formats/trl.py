"""TRL and scripts around the Trainer of Hugging Face: its arguments in a YAML file or on a command line."""

from __future__ import annotations

from planner.trainer_files.formats.common import NOT_COMPILED, Reader
from planner.trainer_files.formats.embedders import add_groups
from planner.trainer_files.formats.llama_factory import add_batch
from planner.trainer_files.formats.llama_factory import recognises as is_llama_factory
from planner.trainer_files.formats.ms_swift import recognises as is_swift
from planner.trainer_files.hub import preset_of_hub_name
from planner.trainer_files.keys import LIGHT, Lookup
from planner.trainer_files.model import Document, Fact, Reading

_MARKS = (
    "per_device_train_batch_size", "num_train_epochs", "dataset_name", "max_seq_length", "max_length", "use_peft",
    "dataset_mixer", "train_file", "num_generations",
)  # fmt: skip
_SOURCE, _TARGET = "max_source_length", "max_target_length"
_MODELS = ("model_name_or_path", "model_name", "model_id")  # the last in scripts for Qwen-VL
# of run_clm.py and the like, which train from scratch: a model's sizes, or the defaults of its kind
_FROM_SCRATCH = ("config_name", "model_type")
_RESIZED = "config_overrides"
_OBJECTIVES = ("grpo", "dpo", "orpo", "kto", "simpo", "reward", "ppo", "rloo", "sft")
# keys, and values of loss_type, that only one trainer of TRL has
_KEYS_OF = {
    "num_generations": "grpo", "desirable_weight": "kto", "undesirable_weight": "kto",
    "gamma_beta_ratio": "simpo", "simpo_gamma": "simpo",
    "center_rewards_coefficient": "reward", "num_ppo_epochs": "ppo",
}  # fmt: skip
_LOSSES_OF = {
    "nll": "sft", "dft": "sft", "kto": "kto", "apo_zero_unpaired": "kto",
    **dict.fromkeys(("grpo", "dr_grpo", "bnpo", "dapo"), "grpo"),
    **dict.fromkeys(("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard"), "dpo"),
    **dict.fromkeys(("aot", "aot_pair", "apo_zero", "apo_down", "discopop"), "dpo"),
}  # fmt: skip
_OF_OTHERS = (
    "num_unique_prompts_rollout", "local_rollout_batch_size",  # open-instruct
    "lora_dim", "data_split", "sft_only_data_path", "num_padding_at_beginning", "only_optimize_lora",  # DeepSpeed-Chat
)  # fmt: skip
_DEGREES = {
    "tensor_parallel": "tensor_parallel_degree",
    "context_parallel": "context_parallel_degree",
}  # OLMo-core's
# How a caller that knows that TRL's own configuration is used says so; and TRL's programs.
TRL = "trl"
_PROGRAMS = frozenset({TRL, "sft", "dpo", "grpo", "kto", "reward", "rloo"})
# What TRL takes where an argument is left out (trl/trainer/*_config.py of 1.16, read on 2026-11-29).
_STORED = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "half": "fp16"}
# flags of LLaVA, InternVL and Qwen-VL that keep the language model frozen
_FROZEN = {"tune_mm_mlp_adapter": True, "freeze_llm": True, "tune_mm_llm": False}
# flags of such scripts that keep the image encoder frozen
_STILL = {
    "freeze_vision_tower": True,
    "freeze_vision_modules": True,
    "freeze_backbone": True,
    "tune_mm_vision": False,
}
# flags of the same scripts that let the image encoder learn; InternVL's does unless freeze_backbone is set
_ENCODER = ("tune_mm_vision", "unfreeze_mm_vision_tower")
_LONGEST, _RESPONSE, _SAMPLES, _SAMPLES_OF_RLOO = 1024, 512, 8, 2


def _is_trl(keys: Lookup) -> bool:
    """Whether TRL's own defaults count, by its programs or by what TRL alone has."""
    own = any(keys.has(name) for name in _KEYS_OF) or keys.text("loss_type").lower() in _LOSSES_OF
    return own or bool(_PROGRAMS & set(keys.document.programs))


def add_lengths_of_trl(reading: Reading, *, rloo: bool) -> None:
    """Add the lengths that TRL takes where the file is silent: of sequences, or of what it generates."""
    objective = reading.facts.get("training.objective")
    samples = _SAMPLES_OF_RLOO if rloo else _SAMPLES
    defaults: tuple[tuple[str, int], ...] = ()
    if objective is not None and objective.value == "grpo":
        defaults = (("rollouts.response_max", _RESPONSE), ("rollouts.samples_per_prompt", samples))
    elif objective is not None and objective.value in ("sft", "dpo", "kto", "reward"):
        defaults = (("training.sequence_length", _LONGEST),)
    for key, value in defaults:
        if key not in reading.facts:
            reading.add(key, value, "the default of TRL", assumed=True)


def recognises(document: Document) -> bool:
    """Whether the keys are arguments of the Trainer, and not LLaMA-Factory's own."""
    data = document.data
    of_script = document.syntax == "arguments" and "tokenizer_name" in data
    models = (*_MODELS, *_FROM_SCRATCH) if of_script else _MODELS
    has_model = any(name in data for name in models) or bool(_own_file(Lookup(document)))
    others = is_llama_factory(document) or is_swift(document) or any(mark in data for mark in _OF_OTHERS)
    started = bool(_own_file(Lookup(document))) and bool(_PROGRAMS & set(document.programs))
    return has_model and (started or any(mark in data for mark in _MARKS)) and not others


def _own_file(keys: Lookup) -> str:
    """The YAML file of arguments that a command line names (`--config grpo.yaml`, or right behind the program)."""
    named = keys.text("config") if keys.document.syntax == "arguments" else ""
    return named if named.endswith((".yaml", ".yml")) else ""


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(document, "Hugging Face Trainer")
    _model(reader)
    add_batch(reader)
    if document.syntax == "arguments":
        reader.add_launcher()
    if own := _own_file(reader):
        reader.files["trl"] = own
    epochs = reader.first("num_train_epochs", "num_epochs") or "num_train_epochs"
    steps = (
        reader.first("max_steps", "max_train_steps") or "max_steps"
    )  # the latter of scripts without a trainer
    reader.add_length(steps=steps, epochs=epochs, default_epochs=3.0)
    reader.add_whole(
        "training.sequence_length",
        "max_seq_length",
        "max_seq_len",
        "max_length",
        "model_max_length",
        "block_size",
    )
    _halves(reader)
    prompt, response = reader.whole("max_prompt_length"), reader.whole("max_completion_length")
    if prompt is not None and response is not None and "training.sequence_length" not in reader.facts:
        reader.add("training.sequence_length", prompt + response, "max_prompt_length + max_completion_length")
    _precision(reader)
    if "training.precision" not in reader.facts and reader.flag("bf16") is None and _is_trl(reader):
        reader.add("training.precision", "bf16", "the default of TRL", assumed=True)
    if "training.precision" not in reader.facts:
        reader.add("training.precision", "fp32", "neither bf16 nor fp16 is set", assumed=True)
    reader.add_optimizer("optim")
    _adapters(reader)
    _objective(reader, document)
    reader.add_precomputed_reference()
    reader.add_whole("rollouts.prompt_max", "max_prompt_length")
    reader.add_generations()
    if _is_trl(reader):
        add_lengths_of_trl(reader, rloo=bool({"rloo", "RLOOTrainer"} & set(document.programs)))
    longest = reader.facts.get("rollouts.response_max")
    if prompt is not None and longest is not None and longest.assumed:
        text = "max_prompt_length + the default of max_completion_length"
        reader.facts.setdefault(
            "training.sequence_length", Fact("training.sequence_length", prompt + longest.value, text, True)
        )
    reader.add_attention("attn_implementation")
    _memory(reader)
    add_groups(reader)
    for degree, name in _DEGREES.items():
        reader.add_whole(f"training.layout.{degree}", name)
    deepspeed = reader.first("deepspeed", "deepspeed_config_file")
    reader.add_engine(deepspeed)
    reader.name_unknown((LIGHT,))
    return reader


def _model(reader: Reader) -> None:
    reader.hub_key = reader.first(*_MODELS, *_FROM_SCRATCH)
    reader.hub_name = reader.text(reader.hub_key)
    reader.seen.update((*_FROM_SCRATCH, _RESIZED))
    if reader.hub_key in _FROM_SCRATCH and reader.has(_RESIZED):
        reader.hub_name += f" with {_RESIZED} {reader.text(_RESIZED)}"  # no preset: its sizes are asked for


def _halves(reader: Reader) -> None:
    """Note one length for a source and its target: their mean where each is read by half of the layers, else both."""
    source, target = reader.whole(_SOURCE), reader.whole(_TARGET)
    if source is None or "training.sequence_length" in reader.facts:
        return
    preset = preset_of_hub_name(reader.hub_name)
    both = preset is not None and preset.values.get("architecture") == "decoder"
    if target is None:
        reader.add("training.sequence_length", source, _SOURCE)
        reader.warn(
            f"{_TARGET} is not stated: targets are counted {'as nothing' if both else 'as long as sources'}"
        )
    elif both:
        reader.add("training.sequence_length", source + target, f"{_SOURCE} + {_TARGET}")
    else:
        reader.add_halves(_SOURCE, _TARGET)


def _adapters(reader: Reader) -> None:
    """Adapters, stored weights, and a language model that stays frozen behind what learns from images."""
    ranked = next(
        (name for name in ("use_llm_lora", "use_backbone_lora") if reader.whole(name)), ""
    )  # InternVL's
    own = reader.first("lora_r", "lora_rank") or "lora_r"
    rank = ranked or ("r" if reader.has("r") and reader.has("lora_alpha") else own)
    asked = reader.first("use_peft", "use_peft_lora", "use_lora", "lora_enable", "lora")
    if ranked or (reader.flag(asked) if asked else reader.has(rank)):
        source = asked or rank
        reader.add_adapter("lora", source, reader.whole(rank) or 16, rank)
        reader.add_targets("lora_target_modules")
        for bits in (4, 8):
            name = reader.first(f"load_in_{bits}bit", f"use_{bits}bit_quantization")
            if reader.flag(name) or reader.whole("bits") == bits:  # of QLoRA's own script and LLaVA's
                reader.add("training.frozen_bits", bits, name or "bits")
        return
    if any("lora" in program.lower() for program in reader.document.programs):
        reader.warn(
            "the program is called after LoRA, but no argument of it is read: all weights are counted"
        )
    frozen = next((name for name, still in _FROZEN.items() if reader.flag(name) is still), "")
    if frozen:
        reader.add_projector(frozen)
        learns = next((name for name in _ENCODER if reader.flag(name)), "")
        if frozen == "freeze_llm" and not reader.flag("freeze_backbone"):
            learns = "freeze_backbone" if reader.has("freeze_backbone") else "the default of freeze_backbone"
        if learns:
            reader.warn_of_encoder(learns)
        return
    encoder = next((name for name, still in _STILL.items() if reader.flag(name) is still), "")
    if encoder:
        reader.freeze_encoder(encoder)


def _precision(reader: Reader) -> None:
    """By the Trainer's own flags, by the launcher's, or as Unsloth chooses it."""
    reader.add_trainer_precision()
    if "training.precision" in reader.facts:
        return
    launched = reader.text("mixed_precision")
    if launched in ("bf16", "fp16", "fp8"):
        reader.add("training.precision", launched, "mixed_precision")
    elif (stored := _STORED.get(reader.text(reader.first("torch_dtype", "dtype")))) and not _is_trl(reader):
        reader.add("training.precision", stored, reader.first("torch_dtype", "dtype"), assumed=True)
    elif any("unsloth" in program for program in reader.document.programs):
        reader.add(
            "training.precision", "bf16", "Unsloth takes bf16 where the accelerator has it", assumed=True
        )


def _objective(reader: Reader, document: Document) -> None:
    """By a key or a loss that one trainer alone has, else by the name of the file."""
    key, loss = next((name for name in _KEYS_OF if reader.has(name)), ""), reader.text("loss_type").lower()
    judge = reader.first("reward_model_path", "reward_model_name_or_path")
    if judge:
        reader.warn(f"{judge}: the time and memory of a reward model are not counted")
    if loss == "apo_zero_unpaired":
        reader.warn(
            "loss_type: passes over answers to other prompts are counted as KTO's, which this loss does without"
        )
    if key:
        reader.add("training.objective", _KEYS_OF[key], key)
    elif loss in _LOSSES_OF:
        reader.add("training.objective", _LOSSES_OF[loss], f"loss_type {loss}")
    else:
        programs = " ".join(document.programs)
        place = f"{document.path.parent.name}/{document.path.name} {programs}".lower()
        objective = next((name for name in _OBJECTIVES if name in place), None)
        reader.add(
            "training.objective",
            objective,
            "by the name of the file, its folder or the program",
            assumed=True,
        )
        if judge and objective not in (None, "ppo", "grpo", "rloo"):
            reader.warn(f"{judge}: the answers that the model writes during training are not counted")


def _memory(reader: Reader) -> None:
    cut = reader.first("max_length", "max_seq_length", "max_seq_len", "model_max_length")
    packing = reader.first("packing", "data_packing") or "packing"
    if reader.flag(packing) is not None or cut:  # scripts that pack without a word call it block_size
        reader.add_flag("training.packing", packing, True, False, "the default of packing")
    name = reader.first("gradient_checkpointing", "grad_checkpoint") or "gradient_checkpointing"
    checkpointing = reader.flag(name)
    # Unsloth's is true, or the name of its own kind, which keeps inputs in host memory.
    if reader.has("use_gradient_checkpointing"):
        checkpointing = reader.flag("use_gradient_checkpointing") is not False
    ours = checkpointing is None and _is_trl(reader)
    usual = "on by TRL's default" if ours else "off by default"
    stated = name + ("" if checkpointing is not None else f" is {usual}")
    reader.add(
        "training.layout.recompute",
        "full" if checkpointing or ours else "none",
        stated,
        assumed=checkpointing is None,
    )
    reader.add_stack(bool(reader.flag("torch_compile")), "torch_compile", NOT_COMPILED)
    liger = reader.first("use_liger_kernel", "use_liger")
    if reader.flag(liger):
        reader.add("training.memory.loss", "tiled", liger)
    if reader.text("fsdp"):
        strategy = next((word for word in reader.text("fsdp").split() if "shard" in word), "full_shard")
        reader.add_shard(strategy, "fsdp")
