"""axolotl: values over its configuration, after `-m axolotl.cli.train c.yaml`; FSDP2, or DeepSpeed without splits."""

from __future__ import annotations

import json

from planner.export.files import ExportFile
from planner.export.frameworks.deepspeed import FILE, trainer_configuration
from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values, save_flags

NAME = "axolotl"
_DEGREES = {"tensor": "tensor_parallel_size", "context": "context_parallel_size", "micro_batch": "micro_batch_size",
            "grad_accumulation": "gradient_accumulation_steps"}  # fmt: skip
_HALF = ("bf16", "fp16")
_PREFERENCES = ("dpo", "kto", "orpo")


def render(parallel: Parallel) -> Part:
    """Return values over its configuration.

    Raises:
        InputError: pipeline or expert parallelism, sequences split, selective recomputation, ZeRO-0 or 1 with other
            degrees, a model without tokens, or what its validation refuses.
    """
    if parallel.pipeline > 1:
        raise cannot(NAME, "it has no key for pipeline parallelism", "megatron, nemo and torchtitan have")
    if parallel.expert > 1:
        raise cannot(
            NAME,
            f"its expert parallelism shards other weights over {parallel.data // parallel.expert} accelerators, not "
            f"over {parallel.data}",
            "megatron, nemo and torchtitan have the plan's; or plan with layout.expert_parallel: 1",
        )
    if parallel.sequence_length is None:
        raise cannot(NAME, "it trains models of tokens", "accelerate and deepspeed train others")
    if parallel.sequence_parallel:
        raise cannot(
            NAME, "its tensor parallelism does not split sequences", "megatron, nemo and torchtitan do"
        )
    split = parallel.tensor * parallel.context > 1
    if split and parallel.zero_stage < 2:
        raise cannot(
            NAME,
            f"ZeRO-{parallel.zero_stage} goes with no other degree there",
            "megatron and nemo combine them",
        )
    if parallel.recompute == "selective":
        raise cannot(NAME, "it recomputes everything or nothing", "megatron and nemo recompute selectively")
    words = [f"--{key}={getattr(parallel, name)}" for name, key in _DEGREES.items()]
    words += [f"--sequence_len={parallel.sequence_length}",
              *(f"--{key}=true" for key in _HALF if key == parallel.precision),
              f"--gradient_checkpointing={str(parallel.recompute == 'full').lower()}"]  # fmt: skip
    words += save_flags(
        NAME, parallel, "--output_dir={}", "--auto_resume_from_checkpoints=true", "--save_steps={}"
    )
    if not split:
        text = json.dumps(trainer_configuration(parallel), indent=2) + "\n"
        return Part((*words, f"--deepspeed={FILE}"), files=(ExportFile(FILE, text),))
    words += _fully_sharded(parallel)
    fsdp = {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "reshard_after_forward": parallel.zero_stage == 3}
    words += ["--fsdp_version=2", f"--fsdp_config={fsdp}",
              f"--dp_shard_size={parallel.data}", "--dp_replicate_size=1"]  # fmt: skip
    packed = parallel.context > 1 and parallel.micro_batch > 1
    note = "axolotl splits packed sequences only in micro-batches of 1: without sample_packing, or with micro_batch: 1"
    return Part(tuple(words), notes=(note,) if packed else ())


def _fully_sharded(parallel: Parallel) -> list[str]:
    """What its FSDP2 and its split sequences and tensors need (axolotl/utils/schemas/validation.py, 0.19).

    Raises:
        InputError: an optimizer or a method that it refuses with them.
    """
    few_bits = "qlora" in parallel.methods
    preference = next((method for method in parallel.methods if method in _PREFERENCES), "")
    if few_bits and preference:
        raise cannot(
            NAME,
            f"its FSDP2 has no {preference} on weights in few bits",
            "plan without tensor and context parallelism",
        )
    if parallel.tensor > 1 and parallel.optimizer == "paged_adamw_8bit":
        raise cannot(
            NAME, "its tensor parallelism has no paged 8-bit AdamW", "plan with optimizer: adamw_8bit"
        )
    words = ["--optimizer=adamw_torch_8bit"] if parallel.optimizer == "adamw_8bit" else []
    return [*words, "--attn_implementation=flash_attention_2"] if parallel.context > 1 else words


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the values state."""
    flags = option_values(part.args)
    values = {name: int(flags[key]) for name, key in _DEGREES.items()}
    data = nodes * gpus // (values["tensor"] * values["context"])
    if "deepspeed" in flags:
        zero = json.loads(part.file(FILE))["zero_optimization"]["stage"]
    else:
        zero = 3 if "True" in flags["fsdp_config"] else 2
        if int(flags["dp_shard_size"]) * int(flags["dp_replicate_size"]) != data:
            raise ValueError("shards and replicas are not what the world leaves")
    half = next((key for key in _HALF if key in flags), None)
    return from_variables(
        part, nodes, gpus, **values, data=data, zero_stage=zero, sequence_length=int(flags["sequence_len"]),
        recompute="full" if flags["gradient_checkpointing"] == "true" else "none",
        save_every=int(flags["save_steps"]) if "save_steps" in flags else None, save_to=flags.get("output_dir", ""),
        **({"precision": half} if half else {}),
    )  # fmt: skip
