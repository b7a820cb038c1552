"""The sections of a review in reading order: what a page, a terminal and every other format shows, one entry each."""

from __future__ import annotations

from collections.abc import Callable

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Section
from planner.finops.review.sections import (
    actions,
    allocation,
    anomalies,
    bridge,
    carbon,
    commitments,
    contracts,
    fiscal,
    forecast,
    gpu,
    ledger,
    overview,
    plan_vs_actual,
    quality,
    showback,
    units,
    usage,
)

# Money first, then its reasons, then what supports them; a section that has nothing to say says so in a sentence.
# docs/finops/review.md has a row for each, in this order.
# One that answers what only some reviews ask (usage files, say) is None without it.
SECTIONS: tuple[tuple[str, Callable[[Inputs], Section | None]], ...] = (
    ("overview", overview.build),
    ("actions", actions.build),
    ("ledger", ledger.build),
    ("bridge", bridge.build),
    ("movers", bridge.build_movers),
    ("commitments", commitments.build),
    ("contracts", contracts.build),
    ("gpu", gpu.build),
    ("units", units.build),
    ("carbon", carbon.build),
    ("usage", usage.build),
    ("allocation", allocation.build),
    ("showback", showback.build),
    ("anomalies", anomalies.build),
    ("forecast", forecast.build),
    ("fiscal_year", fiscal.build),
    ("plan_vs_actual", plan_vs_actual.build),
    ("quality", quality.build),
)
