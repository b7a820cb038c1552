"""Measured steps of reinforcement learning as the rollouts of a workload."""

from __future__ import annotations

from typing import Any

from benchmarks.rows import Skip


def rollout_training(row: dict[str, str]) -> dict[str, Any]:
    """The training section of a row.

    Raises:
        Skip: always, until rollouts are modelled.
    """
    raise Skip(f"{row['objective']} is not modelled yet")
