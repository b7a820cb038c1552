"""open-instruct: the arguments of its reinforcement learning in a launch script.

Keys and defaults: allenai/open-instruct, open_instruct/grpo_fast.py and ppo_vllm_thread_ray_gtrl.py. Its fine-tuning
and preference training have the arguments of scripts around the Trainer, and are read as those.
"""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCELERATORS, PASSES, Reader
from planner.trainer_files.keys import LIGHT
from planner.trainer_files.model import Document, Reading

_MARKS = ("num_unique_prompts_rollout", "num_samples_per_prompt_rollout", "local_rollout_batch_size")
_PROMPTS, _SAMPLES, _LONGEST = 16, 4, 256  # of a step, of a prompt, tokens: where a file states none


def recognises(document: Document) -> bool:
    """Whether the arguments are those of its reinforcement learning."""
    data = document.data
    return "total_episodes" in data and any(mark in data for mark in _MARKS)


def read(document: Document) -> Reading:
    """Read a run; an episode is a response."""
    reader = Reader(document, "open-instruct")
    reader.hub_key = "model_name_or_path"
    reader.hub_name = reader.text(reader.hub_key)
    program = " ".join(document.programs)
    value_model = "ppo" in program and "grpo" not in program
    reader.add("training.objective", "ppo" if value_model else "grpo", f"the program {program or 'is not named'}",
               assumed=not program)  # fmt: skip
    learners, key = _accelerators(document)
    if reader.has("local_rollout_batch_size"):
        _of_each_accelerator(reader, learners, key)
    else:
        _of_the_step(reader)
    reader.add_whole("training.samples", "total_episodes")
    _lengths(reader)
    reader.add("training.precision", "bf16", "its DeepSpeed configuration computes in bf16", assumed=True)
    if learners:
        reader.add(ACCELERATORS, learners, key)
    _layout(reader)
    reader.name_unknown((LIGHT,))
    return reader


def _lengths(reader: Reader) -> None:
    names = {"rollouts.prompt_max": "max_prompt_token_length", "rollouts.response_max": "response_length"}
    total, assumed = 0, False
    for key, name in names.items():
        stated = reader.whole(name)
        source = name if stated else f"the default of {name}"
        reader.add(key, stated or _LONGEST, source, assumed=not stated)
        total, assumed = total + (stated or _LONGEST), assumed or not stated
    reader.add("training.sequence_length", total, " + ".join(names.values()), assumed=assumed)


def _accelerators(document: Document) -> tuple[int, str]:
    """Accelerators that train, one number for each node, and the key that says so."""
    for key in ("num_learners_per_node", "actor_num_gpus_per_node"):
        value = document.data.get(key)
        counts = value if isinstance(value, list) else [value]
        if all(str(count).isdecimal() for count in counts):
            return sum(int(str(count)) for count in counts), key
    return 0, ""


def _of_the_step(reader: Reader) -> None:
    stated = [reader.whole(name) for name in ("num_unique_prompts_rollout", "num_samples_per_prompt_rollout")]
    prompts, samples = stated[0] or _PROMPTS, stated[1] or _SAMPLES
    batch = prompts * samples
    reader.add("training.global_batch", batch, f"num_unique_prompts_rollout {prompts} x {samples} samples",
               assumed=None in stated)  # fmt: skip
    reader.add(
        "rollouts.samples_per_prompt", samples, "num_samples_per_prompt_rollout", assumed=stated[1] is None
    )
    parts = reader.whole("num_mini_batches") or 1
    if parts > 1 and batch % parts == 0:
        reader.add("rollouts.update_batch", batch // parts, f"1 of num_mini_batches {parts}")
    reader.add_whole(PASSES, "num_epochs")


def _of_each_accelerator(reader: Reader, learners: int, key: str) -> None:
    """The older programs state prompts of each accelerator that trains."""
    each, samples = (
        reader.whole("local_rollout_batch_size") or 1,
        reader.whole("number_samples_per_prompt") or 1,
    )
    count, how = learners or 1, f"{key} {learners}" if learners else "1 accelerator"
    batch = each * samples * count
    reader.add("training.global_batch", batch, f"local_rollout_batch_size {each} x {samples} samples x {how}",
               assumed=not learners)  # fmt: skip
    if samples > 1:
        reader.add("rollouts.samples_per_prompt", samples, "number_samples_per_prompt")
    mini = (reader.whole("local_mini_batch_size") or each) * count
    if mini < batch and batch % mini == 0:
        reader.add("rollouts.update_batch", mini, "local_mini_batch_size")
    reader.add_whole(PASSES, "num_epochs")


def _layout(reader: Reader) -> None:
    reader.add_stage("deepspeed_stage")
    reader.add_recompute("gradient_checkpointing", "gradient_checkpointing is off by default")
    reader.add_whole("training.layout.context_parallel", "sequence_parallel_size")
    reader.add("rollouts.engine", "vllm", "vLLM generates", assumed=True)
    reader.add_whole("rollouts.tensor_parallel", "vllm_tensor_parallel_size")
    together = reader.flag("single_gpu_mode") or reader.flag("colocate_everything")
    reader.add("rollouts.placement", "colocated" if together else "disaggregated",
               "single_gpu_mode" if together else "engines of their own", assumed=not together)  # fmt: skip
