"""Pipelines of Megatron-Core, which Megatron-LM and NeMo's Megatron-Bridge share: what it asserts, and uneven stages.

Stages that do not divide the layers are listed (`pipeline_model_parallel_layout`): a character for each layer and a
bar between stages, those of the first turn of all ranks before those of the second
(megatron/core/transformer/pipeline_parallel_layer_layout.py).
"""

from __future__ import annotations

import re
from itertools import groupby

from planner.export.frameworks.model import Parallel, cannot

_OTHERS = "torchtitan has no such rule"
_LONG = 4  # layers of a stage that are written out
_TURNS = re.compile(r"\(([^)]+)\)\*(\d+)")
_LAYERS = re.compile(r"(.)\*(\d+)")


def refuse_what_it_asserts(name: str, parallel: Parallel) -> None:
    """Refuse a layout that Megatron-Core stops at, before its first step or in it.

    Raises:
        InputError: names the rule and what has none.
    """
    stages = parallel.pipeline * parallel.interleave
    if parallel.layers is not None and parallel.layers < stages:
        raise cannot(name, f"{stages} stages are more than the model's {parallel.layers} layers", _OTHERS)
    if parallel.interleave > 1 and parallel.grad_accumulation % parallel.pipeline:
        what = (
            f"interleaved stages take turns with {parallel.pipeline} micro-batches each, and an update has "
        )
        raise cannot(name, f"{what}{parallel.grad_accumulation}", _OTHERS)
    if parallel.expert > 1 and parallel.tensor > 1 and not parallel.sequence_parallel:
        raise cannot(name, "experts with tensor parallelism need sequence parallelism", _OTHERS)
    length = parallel.sequence_length or 0
    pieces = 2 * parallel.context if parallel.context > 1 else 1
    ranks = parallel.context * (parallel.tensor if parallel.sequence_parallel else 1)
    for parts in (pieces, ranks):
        if length % parts:
            raise cannot(
                name, f"it cuts sequences into {parts} equal parts, and they have {length} tokens", _OTHERS
            )


def uneven_stages(parallel: Parallel) -> str:
    """The stages of a pipeline that the layers do not fill evenly; empty where they do, or where none are known.

    The ranks in the middle take one layer more than those at the ends, which hold the embeddings and the loss, and of
    a rank's virtual stages the first ones.
    """
    ranks, turns, layers = parallel.pipeline, parallel.interleave, parallel.layers
    if layers is None or layers % (ranks * turns) == 0:
        return ""
    more = sorted(range(ranks), key=lambda rank: (rank == ranks - 1, rank == 0, rank))[: layers % ranks]
    of_rank = [layers // ranks + (rank in more) for rank in range(ranks)]
    counts = [
        of_rank[rank] // turns + (turn < of_rank[rank] % turns)
        for turn in range(turns)
        for rank in range(ranks)
    ]
    return _written(counts)


def _written(counts: list[int]) -> str:
    """Layers by stage in Megatron-Core's letters, equal stages beside each other once: `Ett|(tt|)*13tL`."""
    stages = [f"t*{count}" if count > _LONG else "t" * count for count in counts]
    stages[0], last = f"E{stages[0]}", f"{stages.pop()}L"
    runs = ((stage, len(list(group))) for stage, group in groupby(stages))
    return "".join(f"{stage}|" if number == 1 else f"({stage}|)*{number}" for stage, number in runs) + last


def layers_of_stages(text: str) -> list[int]:
    """Decoder layers of each stage that a list of stages states."""
    for pattern in (_TURNS, _LAYERS):
        text = pattern.sub(lambda match: match[1] * int(match[2]), text)
    return [stage.count("t") for stage in text.split("|")]
