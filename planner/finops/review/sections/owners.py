"""Whom an action is addressed to: the team whose use it changes, or the account where no team is known."""

from __future__ import annotations

from dataclasses import replace

from planner.finops.review.inputs import Inputs
from planner.finops.review.parts import cells, text
from planner.finops.review.sections.action import Action
from planner.finops.review.sections.allocation import owner_names
from planner.finops.things.ask import ask_things

_OF_SKUS = ("move_region", "switch_option")


def main_owner(inputs: Inputs, provider: str, service: str = "", commitment: str = "") -> str:
    """The team (first mandatory tag) that uses most of a service or a commitment; the account without such a tag."""
    if "owner_of" not in inputs.answers:
        frame, shown = inputs.ask("owners"), owner_names(inputs)
        names = cells(frame, "provider", "service", "commitment_id", "owner")
        inputs.answers["owner_of"] = {
            (text(p), text(s), text(c)): shown.get(text(owner), text(owner)) for p, s, c, owner in names
        }
    found: dict[tuple[str, str, str], str] = inputs.answers["owner_of"]
    return found.get((provider, service, commitment), "")


def with_owners(inputs: Inputs, actions: list[Action]) -> list[Action]:
    """Moves and switches to spot with the team that uses most of the SKU: of a service others may use more."""
    skus = tuple(sorted({one.thing for one in actions if one.kind in _OF_SKUS and one.thing}))
    if not skus:
        return actions
    frame, shown = (
        ask_things(inputs.bill.engine, "sku_owners", {**inputs.parameters, "skus": skus}),
        owner_names(inputs),
    )
    found = {
        (text(provider), text(service), text(sku)): shown.get(text(owner), text(owner))
        for provider, service, sku, owner in cells(frame, "provider", "service", "sku_id", "owner")
    }
    return [
        replace(one, owner=found.get((*one.pool, one.thing), one.owner)) if one.kind in _OF_SKUS else one
        for one in actions
    ]
