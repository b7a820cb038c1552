"""Showback rules, version 1: whose a charge is, and how shared cost is split."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import MAX_FLOAT, Text
from planner.inputs.section import Section

Weight = Annotated[float, Field(ge=0, le=MAX_FLOAT)]


class Rule(Section):
    """One rule; of the rules of a file the first that fits a charge names its team."""

    team: Text | None = Field(None, description="The team; or 'from_tag'.")
    from_tag: Text | None = Field(
        None, description="Tag key whose value is the team; matches charges that have it."
    )
    rename: dict[str, Text] = Field({}, description="Team for a value of the tag: {ML-Platform: ml}.")
    when: dict[str, tuple[Text, ...]] = Field(
        {},
        description="Conditions that must all match: lists of values by provider, service, category, account, "
        "billing_account, region, charge or tag:KEY. * and ? match any letters; capitals do not matter.",
    )


class Split(Section):
    """A team whose cost is shared by the others."""

    team: Text = Field(description="The team whose cost is split; a rule must name it.")
    by: Literal["cost", "usage", "equal", "weights"] = Field(
        description="In proportion to the others' cost, to their GPU-hours (--usage), in equal parts, or by weights."
    )
    weights: dict[str, Weight] = Field({}, description="Part of each team, for by: weights.")
    clusters: tuple[Text, ...] = Field(
        (),
        description="For by: usage: clusters or accounts of the usage files whose GPU-hours count; by default all.",
    )


class ShowbackFile(Section):
    """Rules and splits."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["showback"] = Field(description="Kind of file.")
    name: Text = Field("showback", description="Name shown in the answer.")
    cost: Literal["effective", "billed"] = Field(
        "effective", description="Which cost of the bill is divided."
    )
    rules: tuple[Rule, ...] = Field(min_length=1, description="Rules; the first that fits counts.")
    split: tuple[Split, ...] = Field((), description="Teams whose cost the others share, in this order.")
    unused_commitments: Literal["use", "cost", "keep"] = Field(
        "use",
        description="Unused parts of commitments: by use of the same commitment, by all cost, or left to the rules.",
    )
    unassigned: Text = Field("(unassigned)", description="Team of charges that no rule fits.")
