"""open-instruct: the arguments of its reinforcement learning in a launch script.

Keys and defaults: allenai/open-instruct, open_instruct/grpo_fast.py and ppo_vllm_thread_ray_gtrl.py. Its fine-tuning
and preference training have the arguments of scripts around the Trainer, and are read as those.
"""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCELERATORS, PASSES, add_recompute, add_stage, add_whole
from planner.trainer_files.keys import LIGHT, Lookup
from planner.trainer_files.model import Document, Reading

_MARKS = ("num_unique_prompts_rollout", "num_samples_per_prompt_rollout", "local_rollout_batch_size")
_PROMPTS, _SAMPLES, _LONGEST = 16, 4, 256  # of a step, of a prompt, tokens: where a file states none


def recognises(document: Document) -> bool:
    """Whether the arguments are those of its reinforcement learning."""
    data = document.data
    return "total_episodes" in data and any(mark in data for mark in _MARKS)


def read(document: Document) -> Reading:
    """Read a run; an episode is a response."""
    keys, reading = Lookup(document), Reading(document.path, "open-instruct")
    reading.hub_key = "model_name_or_path"
    reading.hub_name = keys.text(reading.hub_key)
    program = " ".join(document.programs)
    value_model = "ppo" in program and "grpo" not in program
    reading.add("training.objective", "ppo" if value_model else "grpo", f"the program {program or 'is not named'}",
                assumed=not program)  # fmt: skip
    learners, key = _accelerators(document)
    if keys.has("local_rollout_batch_size"):
        _of_each_accelerator(reading, keys, learners, key)
    else:
        _of_the_step(reading, keys)
    add_whole(reading, keys, "training.samples", "total_episodes")
    _lengths(reading, keys)
    reading.add("training.precision", "bf16", "its DeepSpeed configuration computes in bf16", assumed=True)
    if learners:
        reading.add(ACCELERATORS, learners, key)
    _layout(reading, keys)
    reading.unknown = keys.unknown((LIGHT,))
    return reading


def _lengths(reading: Reading, keys: Lookup) -> None:
    names = {"rollouts.prompt_max": "max_prompt_token_length", "rollouts.response_max": "response_length"}
    total, assumed = 0, False
    for key, name in names.items():
        stated = keys.whole(name)
        source = name if stated else f"the default of {name}"
        reading.add(key, stated or _LONGEST, source, assumed=not stated)
        total, assumed = total + (stated or _LONGEST), assumed or not stated
    reading.add("training.sequence_length", total, " + ".join(names.values()), assumed=assumed)


def _accelerators(document: Document) -> tuple[int, str]:
    """Accelerators that train, one number for each node, and the key that says so."""
    for key in ("num_learners_per_node", "actor_num_gpus_per_node"):
        value = document.data.get(key)
        counts = value if isinstance(value, list) else [value]
        if all(str(count).isdecimal() for count in counts):
            return sum(int(str(count)) for count in counts), key
    return 0, ""


def _of_the_step(reading: Reading, keys: Lookup) -> None:
    stated = [keys.whole(name) for name in ("num_unique_prompts_rollout", "num_samples_per_prompt_rollout")]
    prompts, samples = stated[0] or _PROMPTS, stated[1] or _SAMPLES
    batch = prompts * samples
    reading.add("training.global_batch", batch, f"num_unique_prompts_rollout {prompts} x {samples} samples",
                assumed=None in stated)  # fmt: skip
    reading.add(
        "rollouts.samples_per_prompt", samples, "num_samples_per_prompt_rollout", assumed=stated[1] is None
    )
    parts = keys.whole("num_mini_batches") or 1
    if parts > 1 and batch % parts == 0:
        reading.add("rollouts.update_batch", batch // parts, f"1 of num_mini_batches {parts}")
    add_whole(reading, keys, PASSES, "num_epochs")


def _of_each_accelerator(reading: Reading, keys: Lookup, learners: int, key: str) -> None:
    """The older programs state prompts of each accelerator that trains."""
    each, samples = keys.whole("local_rollout_batch_size") or 1, keys.whole("number_samples_per_prompt") or 1
    count, how = learners or 1, f"{key} {learners}" if learners else "1 accelerator"
    batch = each * samples * count
    reading.add("training.global_batch", batch, f"local_rollout_batch_size {each} x {samples} samples x {how}",
                assumed=not learners)  # fmt: skip
    if samples > 1:
        reading.add("rollouts.samples_per_prompt", samples, "number_samples_per_prompt")
    mini = (keys.whole("local_mini_batch_size") or each) * count
    if mini < batch and batch % mini == 0:
        reading.add("rollouts.update_batch", mini, "local_mini_batch_size")
    add_whole(reading, keys, PASSES, "num_epochs")


def _layout(reading: Reading, keys: Lookup) -> None:
    add_stage(reading, keys, "deepspeed_stage")
    add_recompute(reading, keys, "gradient_checkpointing", "gradient_checkpointing is off by default")
    add_whole(reading, keys, "training.layout.context_parallel", "sequence_parallel_size")
    reading.add("rollouts.engine", "vllm", "vLLM generates", assumed=True)
    add_whole(reading, keys, "rollouts.tensor_parallel", "vllm_tensor_parallel_size")
    together = keys.flag("single_gpu_mode") or keys.flag("colocate_everything")
    reading.add("rollouts.placement", "colocated" if together else "disaggregated",
                "single_gpu_mode" if together else "engines of their own", assumed=not together)  # fmt: skip
