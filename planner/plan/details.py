"""The sections behind the screen of a plan, by the names that `--details` takes."""

from __future__ import annotations

# keys of the sections that each name selects
DETAILS: dict[str, tuple[str, ...]] = {
    "warnings": ("warnings",), "plan": ("lines",), "cost": ("cost",), "time": ("time",), "speed": ("performance",),
    "risk": ("risk",), "baseline": ("baseline",), "alternatives": ("alternatives",), "quotas": ("quotas",),
    "cash": ("cash",), "carbon": ("carbon", "carbon_lines"), "storage": ("storage", "loading"),
    "relaxations": ("relaxations",), "assumptions": ("assumptions",),
    "filters": ("filters", "filter_pairs"), "unknown": ("unknown",), "excluded": ("excluded",), "prices": ("prices",),
    "proof": ("proof",),
}  # fmt: skip
ALL_DETAILS = "all"
