"""The plan that does an action: a command to run as written, a saved plan, or what is missing for one."""

from __future__ import annotations

import shlex
from dataclasses import replace

from planner.finops.plan_vs_actual import PlannedRun
from planner.finops.review.inputs import Inputs
from planner.finops.review.parts import bill_paths, mapping_options
from planner.finops.review.sections.action import Action
from planner.finops.review.sections.committable import machines
from planner.finops.units.names import provider_id

_OPTIONS = {"move_region": "with the region allowed", "switch_option": "with spot allowed"}
_NOT_MACHINES = "no plan: this use is not hours of machines by type, which `planner commit` plans"
_NO_PRICE = (
    "no plan: neither the catalog nor the bill has a price of a one-year commitment for any of these machines; state "
    "your provider's in a question of `planner commit` (examples/commit.yaml)"
)
_LEFT_OUT = (
    "its plan lists and excludes machines, also with GPUs, for which neither the catalog nor the bill has a price of a "
    "one-year commitment"
)
_NO_PLAN = {
    "commit_less": "no plan: an exchange or a sale is agreed with the provider",
    "renew": "no plan: renewal is agreed with the provider",
    "delete_idle": "no plan: delete what is not used where it runs",
    "look_into": "no plan: find out first why it cost more",
}


def commit_plan(inputs: Inputs, action: Action) -> Action:
    """An action on commitments with the command that plans purchases from the same bill."""
    found = machines(inputs)
    if not found.are_in(action.pool):
        return replace(action, needs=_NOT_MACHINES)
    command = _commit_command(inputs)
    if command and not found.have_price(action.pool):
        return replace(action, needs=_NO_PRICE)
    lacks = (
        "" if command else "no plan: `planner commit --from-focus` needs the bill as files, in one currency"
    )
    return replace(
        action, plan=command, needs=lacks, why=f"{action.why}; {_LEFT_OUT}" if command else action.why
    )


def said_of_plan(action: Action) -> Action:
    """An action of a kind that no command plans, with the reason; any other as it is."""
    return action if action.plan or action.needs else replace(action, needs=_NO_PLAN[action.kind])


def run_plan(inputs: Inputs, action: Action, machine: str, places: tuple[str, ...]) -> Action:
    """A move or a switch of a machine with the saved plan (`--plans`) that does it, the cheapest of several.

    Args:
        inputs: has the plans.
        action: the move or the switch.
        machine: instance type; empty where the use is no machine's.
        places: regions that the machine would run in.
    """
    if not machine:
        return replace(action, needs="no plan: this use is not hours of machines by type")
    found = [plan for plan in inputs.plans if _does(plan, action, machine, places)]
    if not found:
        lacks = "no plan in --plans does this: create one with `planner optimize WORKLOAD -o json --out plan.json`, "
        return replace(action, needs=lacks + _OPTIONS[action.kind])
    best = min(found, key=lambda plan: (plan.total_usd, plan.path))
    return replace(action, plan=f"planner verify {shlex.quote(best.path)}", file=best.path)


def _does(plan: PlannedRun, action: Action, machine: str, places: tuple[str, ...]) -> bool:
    """Whether a plan runs the machine where, or as, the action says."""
    is_there = machine in plan.instance_types and bool(set(places) & set(plan.regions))
    is_same = plan.provider == (provider_id(action.pool[0]) or action.pool[0].lower())
    return is_there and is_same and (action.kind != "switch_option" or "spot" in plan.purchase_options)


def _commit_command(inputs: Inputs) -> str:
    """`planner commit` of the same bill; empty where that command cannot read it."""
    bill = inputs.bill
    if bill.connection or bill.consolidated is not None or not bill.named:
        return ""
    several = any(finding.code == "other_currency" for finding in bill.findings)
    paths = "".join(f"--from-focus {shlex.quote(path)} " for path in bill_paths(bill))
    options = f"{mapping_options(bill)}{f'--currency {bill.currency}' if several else ''}"
    return f"planner commit {paths}{options}".rstrip()
