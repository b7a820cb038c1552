"""FlagEmbedding, Tevatron and open-retrievals: a query with a group of passages.

They become the pairs of sequences that a workload counts.
"""

from __future__ import annotations

from planner.trainer_files.formats.common import MICRO_BATCH, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Fact

_GROUP = ("train_group_size", "train_n_passages")
_LENGTHS = {
    "query": ("query_max_len", "q_max_len", "query_max_length"),
    "passage": ("passage_max_len", "p_max_len", "document_max_length"),
}
# What FlagEmbedding takes where an argument is left out (finetune/*/abc/*Arguments.py of 1.3, read on 2026-11-30).
_DEFAULTS = {"query": 32, "passage": 128}


def add_groups(reader: Reader) -> None:
    """Note queries and their passages as pairs, where a file trains an embedder or a reranker with groups of passages.

    An embedder sees each query and each passage as a sequence of its own, a reranker each passage with its query.
    Epochs are raised as samples are, so that the samples of the training set stay its queries.
    """
    name = reader.first(*_GROUP)
    group, queries = reader.whole(name), reader.facts.get(MICRO_BATCH)
    if not group or queries is None:
        return
    query, passage = (_length(reader, part) for part in ("query", "passage"))
    reranks = any("rerank" in word.lower() for word in (*reader.document.programs, reader.hub_name))
    if reranks:
        share, objective, longest, what = group / 2, "reward", query + passage, "passages with their query"
    else:
        share, objective, longest, what = (group + query / passage) / 2, "contrastive", passage, "passages"
    pairs = max(1, round(queries.value * share))
    text = f"{name} {group}"
    reader.add("training.objective", objective, f"{text}: {'a reranker' if reranks else 'an embedder'}")
    reader.add("training.sequence_length", longest, _where(reader, both=reranks))
    reader.add("training.packing", False, text)
    reader.facts[MICRO_BATCH] = Fact(
        MICRO_BATCH, pairs, f"{queries.where} {queries.value} x {group} {what}, in pairs:", queries.assumed
    )
    epochs = reader.facts.get("training.epochs")
    if epochs is not None:
        each = round(epochs.value * pairs / queries.value, 3)
        where = f"{epochs.where} {epochs.value:g} x {pairs} pairs for {queries.value} queries: samples are queries"
        reader.facts[epochs.key] = Fact(epochs.key, each, where, epochs.assumed)


def _length(keys: Lookup, part: str) -> int:
    return keys.whole(keys.first(*_LENGTHS[part])) or _DEFAULTS[part]


def _where(keys: Lookup, *, both: bool) -> str:
    parts = ("query", "passage") if both else ("passage",)
    return " + ".join(keys.first(*_LENGTHS[part]) or f"the default of {_LENGTHS[part][0]}" for part in parts)
