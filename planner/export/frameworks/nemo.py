"""NeMo (Megatron-Bridge): overrides `key=value` of a recipe's configuration."""

from __future__ import annotations

from planner.export.frameworks.megatron import FSDP_FORMAT, SHARDING
from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values, save_flags
from planner.export.frameworks.stages import refuse_what_it_asserts, uneven_stages

NAME = "nemo"
_DEGREES = {
    "tensor": "model.tensor_model_parallel_size", "pipeline": "model.pipeline_model_parallel_size",
    "context": "model.context_parallel_size", "expert": "model.expert_model_parallel_size",
    "micro_batch": "train.micro_batch_size",
}  # fmt: skip
_VIRTUAL = "model.virtual_pipeline_model_parallel_size"
_STAGES = "model.pipeline_model_parallel_layout"
_STRATEGY = "ddp.data_parallel_sharding_strategy"


def render(parallel: Parallel) -> Part:
    """Return overrides of the recipe.

    Raises:
        InputError: a model without tokens, or a layout that it stops at.
    """
    if parallel.sequence_length is None:
        raise cannot(NAME, "it trains models of tokens", "accelerate and deepspeed train others")
    refuse_what_it_asserts(NAME, parallel)
    words = [f"{key}={getattr(parallel, name)}" for name, key in _DEGREES.items()]
    words += [
        f"train.global_batch_size={parallel.global_batch}", f"model.seq_length={parallel.sequence_length}",
        f"dataset.seq_length={parallel.sequence_length}",
        f"model.sequence_parallel={str(parallel.sequence_parallel).lower()}",
        *(f"{key}.use_distributed_optimizer={str(parallel.zero_stage > 0).lower()}" for key in ("ddp", "optimizer")),
    ]  # fmt: skip
    if parallel.interleave > 1:
        words.append(f"{_VIRTUAL}={parallel.interleave}")
    if stages := uneven_stages(parallel):
        words.append(f"{_STAGES}='{stages}'")  # quoted for Hydra, which gives brackets a meaning
    if parallel.zero_stage > 1:
        words += ["ddp.use_megatron_fsdp=true", f"{_STRATEGY}={SHARDING[parallel.zero_stage]}",
                  f"checkpoint.ckpt_format={FSDP_FORMAT}"]  # fmt: skip
    if parallel.recompute != "none":
        words.append(f"model.recompute_granularity={parallel.recompute}")
    if parallel.recompute == "full":
        words += ["model.recompute_method=uniform", "model.recompute_num_layers=1"]
    words += save_flags(NAME, parallel, "checkpoint.save={}", "checkpoint.load={}", "checkpoint.save_interval={}",
                        scheme="msc")  # fmt: skip
    return Part(
        tuple(words), notes=("the recipe of NeMo sets the precision: PLANNER_PRECISION says the plan's",)
    )


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the overrides state."""
    flags = option_values(part.args)
    degrees = {name: int(flags[key]) for name, key in _DEGREES.items()}
    data = nodes * gpus // (degrees["tensor"] * degrees["pipeline"] * degrees["context"])
    zero = {value: key for key, value in SHARDING.items()}.get(flags.get(_STRATEGY, ""))
    if zero is None:
        zero = int(flags["ddp.use_distributed_optimizer"] == "true")
    saved = flags.get("checkpoint.save_interval")
    return from_variables(
        part, nodes, gpus, **degrees, data=data, zero_stage=zero, sequence_length=int(flags["model.seq_length"]),
        grad_accumulation=int(flags["train.global_batch_size"]) // (data * degrees["micro_batch"]),
        recompute=flags.get("model.recompute_granularity", "none"), interleave=int(flags.get(_VIRTUAL, 1)),
        sequence_parallel=flags["model.sequence_parallel"] == "true", save_every=int(saved) if saved else None,
        save_to=flags.get("checkpoint.save", ""),
    )  # fmt: skip
