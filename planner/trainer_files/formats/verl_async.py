"""verl's fully asynchronous trainer: its own accelerators for generation, batches by mini-batches, staleness.

https://verl.readthedocs.io/en/latest/advance/fully_async.html. Responses flow one prompt at a time
(`data.train_batch_size` is 0); the weights are handed over after `trigger_parameter_sync_step` times `require_batches`
mini-batches.
"""

from __future__ import annotations

import math

from planner.trainer_files.formats.common import ACCELERATORS, NODES, Reader
from planner.trainer_files.keys import Lookup

_SECTION = "async_training."
_SYNC, _BATCHES, _STALE = (
    f"{_SECTION}{name}" for name in ("trigger_parameter_sync_step", "require_batches", "staleness_threshold")
)
_PARTIAL = f"{_SECTION}partial_rollout"
_STEPS = "rollout.total_rollout_steps"
# What verl takes where a file leaves a key out (fully_async_ppo_trainer.yaml).
_EACH, _SYNCS, _STALENESS = 8, 4, 0.1


def is_async(keys: Lookup) -> bool:
    """Whether generation has its own accelerators and may run ahead."""
    return keys.has("async_training") or keys.flag("actor_rollout_ref.hybrid_engine") is False


def prompts_of_a_step(keys: Lookup, mini_batch: int) -> int:
    """Prompts between two hand-overs of weights."""
    return mini_batch * (keys.whole(_SYNC) or _SYNCS) * (keys.whole(_BATCHES) or 1)


def add_pools(reader: Reader) -> None:
    """Note the two pools and by how much the one that generates may run ahead."""
    train, generate = _pool(reader, "trainer."), _pool(reader, "rollout.")
    text = "trainer. and rollout.nnodes x n_gpus_per_node"
    reader.add(ACCELERATORS, train[0] + generate[0], text, assumed=train[2] or generate[2])
    reader.add(NODES, train[1] + generate[1], text, assumed=train[2] or generate[2])
    reader.add("rollouts.placement", "disaggregated", "actor_rollout_ref.hybrid_engine false")
    reader.add("rollouts.generation_share", round(generate[0] / (train[0] + generate[0]), 6), text)
    if not reader.has("async_training"):
        own, waits = (
            f"one_step_off_policy {does}" for does in ("has its own accelerators", "waits for a whole batch")
        )
        reader.add("rollouts.steps_off_policy", 1, own, assumed=True)
        reader.add("rollouts.in_flight_updates", False, waits, assumed=True)
        return
    said, partial = reader.number(_STALE), reader.flag(_PARTIAL)
    stale = _STALENESS if said is None else said
    if stale > 0:
        # part of a step's samples may be of the step before: one step ahead, the least that a workload can say
        assumed = said is None or stale != int(stale)
        reader.add("rollouts.steps_off_policy", math.ceil(stale), f"{_STALE} {stale:g}", assumed=assumed)
        reader.add("rollouts.in_flight_updates", partial is not False, _PARTIAL, assumed=partial is None)


def add_steps(reader: Reader, prompts: int) -> None:
    """Note how long training runs, in prompts there."""
    total = reader.whole(_STEPS)
    if total is not None:
        reader.add("training.steps", max(total // prompts, 1), f"{_STEPS} / {prompts} prompts of a step")


def _pool(keys: Lookup, section: str) -> tuple[int, int, bool]:
    """Accelerators and nodes of a pool, and whether they are assumed."""
    each, nodes = keys.whole(f"{section}n_gpus_per_node"), keys.whole(f"{section}nnodes")
    return (each or _EACH) * (nodes or 1), nodes or 1, each is None
