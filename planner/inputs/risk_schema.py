"""Aversion to risk, a part of portfolio and pipeline files: what the choice minimises beside the expected cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import Confidence, NonNegativeInt, Share
from planner.inputs.section import Section


class RiskAversion(Section):
    """Minimise (1 - weight) x expected cost + weight x mean of the worst outcomes (CVaR) over common scenarios."""

    measure: Literal["cvar"] = Field("cvar", description="Mean of the worst outcomes.")
    level: Confidence = Field(0.95, description="0.95: the worst twentieth.")
    weight: Share = Field(0.5, description="0: expected cost alone; 1: the worst outcomes alone.")
    scenarios: Annotated[int, Field(strict=True, ge=1, le=1_000)] = Field(
        200, description="Scenarios of speed, spot prices and interruptions, the same for every choice."
    )
    seed: NonNegativeInt = Field(1, description="Of the scenarios.")
