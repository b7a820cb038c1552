"""Embedding tables of a model, complete: bytes of a row and of what its optimizer keeps, and the rules on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault
from planner.inputs.resolved import Assumed, ResolvedTables

if TYPE_CHECKING:
    from planner.inputs.resolved import ResolvedModel
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import EmbeddingTables

# Bytes per parameter of a table and, beside it, of its optimizer's states; row-wise AdaGrad keeps 4 bytes a row.
TABLE_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}
STATE_BYTES = {"sgd": 0.0, "rowwise_adagrad": 0.0, "adagrad": 4.0, "adam": 8.0}
ROW_STATE_BYTES = {"rowwise_adagrad": 4.0}


def with_tables(model: ResolvedModel, embedding_tables: EmbeddingTables | None) -> ResolvedModel:
    """The model with its tables, and what they are as assumptions of the plan."""
    if embedding_tables is None:
        return model
    lookups = embedding_tables.lookups_per_sample or float(embedding_tables.tables)
    states = STATE_BYTES[embedding_tables.optimizer] * embedding_tables.width + ROW_STATE_BYTES.get(
        embedding_tables.optimizer, 0.0
    )
    tables = ResolvedTables(
        float(embedding_tables.rows), embedding_tables.width, embedding_tables.tables, float(lookups),
        TABLE_BYTES[embedding_tables.precision] * embedding_tables.width, states,
    )  # fmt: skip
    gib = tables.rows * (tables.row_bytes + tables.state_bytes) / 2.0**30
    size = f"{embedding_tables.tables} tables of {embedding_tables.width} wide rows"
    note = f"{size}, {lookups:g} read by a sample; {embedding_tables.optimizer}"
    noted = Assumed("model.embedding_tables", f"{gib:.1f}", "GiB", "workload", note)
    return replace(model, tables=tables, assumptions=(*model.assumptions, noted))


def table_faults(w: Workload) -> Iterator[Fault]:
    """What embedding tables cannot be joined with."""
    if w.model is None or w.model.embedding_tables is None:
        return
    path = ("model", "embedding_tables")
    tables = w.model.embedding_tables
    if w.model.parts:
        yield Fault(path, "cannot be joined with parts: describe the dense network as one", at_key=True)
    if w.kind == "inference":
        yield Fault(path, "are modelled for training: remove it, or measure what answers take", at_key=True)
    if w.training is not None and (w.training.method != "full" or w.model.trainable != "all"):
        yield Fault(path, "learn with the dense network: remove trainable and method", at_key=True)
    if tables.lookups_per_sample is not None and tables.lookups_per_sample < tables.tables:
        text = f"is below the {tables.tables} tables: a sample reads at least one row of each"
        yield Fault((*path, "lookups_per_sample"), text)


RULES = ((("kind", "model", "training"), table_faults),)
