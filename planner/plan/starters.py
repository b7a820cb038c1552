"""Which target of `planner export` starts a plan: what an answer names as the next step."""

from __future__ import annotations

from functools import cache

from planner.bundled import bundled_rows
from planner.plan.model import Plan

_OWN = ("owned", "already_owned")


@cache
def skypilot_clouds() -> dict[str, str]:
    """SkyPilot's name of each provider that it starts machines of."""
    return {row["provider"]: row["cloud"] for row in bundled_rows("skypilot_clouds.csv")}


def starter_of(plan: Plan) -> str:
    """`skypilot` where it starts all of the plan, `terraform` for a capacity block, else `slurm`.

    SkyPilot starts no machines of one's own, none of other providers, no block, and no gang on several offers at once;
    Slurm runs on whatever is there.
    """
    has_own = any(line.purchase_option in _OWN or line.option_variant in _OWN for line in plan.lines)
    others = any(line.provider not in skypilot_clouds() for line in plan.lines)
    in_turn = plan.launch is not None and plan.launch.in_turn
    at_once = plan.kind != "fleet" and len(plan.lines) > 1 and not in_turn
    if has_own or others or at_once:
        return "slurm"
    if any(line.purchase_option == "capacity_block" for line in plan.lines):
        return "terraform" if len({line.provider for line in plan.lines}) == 1 else "slurm"
    return "skypilot"
