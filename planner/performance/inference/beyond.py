"""Prompts that are longer, for their answers, than in the rows that an engine's figures were fitted on."""

from __future__ import annotations

import math

import numpy as np

from planner.performance.inference.engines import EngineRow, find_engine
from planner.performance.post_training.spec import Engine, Requests, Rollouts

# Prompt tokens per token of an answer that are usual (assumed), so that no measured row need have as many; and how many
# times the most that were measured make prompts as unknown as a chip of which no row is.
USUAL, FAR = 4.0, 4.0


def prompt_ratio(work: Requests | Rollouts) -> float:
    """Prompt tokens that are read for a token of an answer; 0 where nothing is written or prompts are in the cache."""
    if work.prompts is None or work.answers is None:
        return 0.0
    if isinstance(work, Requests):
        return 0.0 if work.shared_prefix else work.prompts.mean / work.answers.mean
    if work.pool == "trainer":
        return 0.0
    return work.prompts.mean / work.answers.mean / work.samples_per_prompt


def beyond_measured(engine: Engine, ratio: float) -> float:
    """How much longer prompts are, for their answers, than in the rows of the engine's fit: 0 within, 1 from `FAR` on.

    Args:
        engine: what answers.
        ratio: `prompt_ratio`.
    """
    most = _known(find_engine(engine.name, engine.year))
    return float(np.clip(np.log(max(ratio / most, 1.0)) / np.log(FAR), 0.0, 1.0))


def prompt_doubts(work: Requests | Rollouts | None) -> tuple[str, ...]:
    """`ratio_doubts` of a job; none without an engine."""
    return () if work is None else ratio_doubts(work.engine, prompt_ratio(work), "`planner calibrate`")


def ratio_doubts(engine: Engine, ratio: float, how: str) -> tuple[str, ...]:
    """That prompts are longer, for their answers, than measured ones, in words; empty otherwise, or by a fraction.

    Args:
        engine: what answers.
        ratio: `prompt_ratio`.
        how: by what a user's own measurement is read.
    """
    row = find_engine(engine.name, engine.year)
    if math.isinf(_known(row)) or round(ratio) <= round(_known(row)):
        return ()
    return (
        f"{ratio:,.0f} prompt tokens per token of an answer, more than the {row.most_prompt:,.3g} up to which"
        f" {row.name} {row.year} was measured: measure such a job ({how})",
    )


def _known(row: EngineRow) -> float:
    return max(row.most_prompt, USUAL)
