"""Embedding tables of recommenders: a section of a workload's model. Attribute names are the YAML keys."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import Count, PositiveFloat, SmallInt, Width
from planner.inputs.section import Section


class EmbeddingTables(Section):
    """Tables that are divided among all accelerators, beside a dense network that each of them has."""

    rows: Count = Field(description="Rows of all tables together.")
    width: Width = Field(description="Elements of a row.")
    tables: SmallInt = Field(description="Tables, each of which gives a sample one vector.")
    lookups_per_sample: PositiveFloat | None = Field(
        None, description="Rows that a sample reads from all tables; default: one of each table."
    )
    precision: Literal["fp32", "fp16", "bf16"] = Field("fp32", description="Stored precision of the tables.")
    optimizer: Literal["sgd", "rowwise_adagrad", "adagrad", "adam"] = Field(
        "sgd", description="Decides what is kept beside each row; only rows that were read are updated."
    )
