"""From a YAML file to showback rules, or to one error that lists every fault with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.inputs.documents import load_document
from planner.inputs.faults import Fault, near

if TYPE_CHECKING:
    from planner.inputs.showback_schema import ShowbackFile

FIELDS = ("provider", "service", "category", "account", "billing_account", "region", "charge")


def load_showback(path: Path) -> ShowbackFile:
    """Load and validate a file of showback rules.

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    from planner.inputs.showback_schema import ShowbackFile

    return load_document(path, ShowbackFile, _faults)[0]


def _faults(file: ShowbackFile) -> Iterable[Fault]:
    for at, rule in enumerate(file.rules):
        path = ("rules", at)
        if (rule.team is None) == (rule.from_tag is None):
            yield Fault(path, "name either 'team' or 'from_tag'")
        if rule.rename and rule.from_tag is None:
            yield Fault((*path, "rename"), "is for rules with 'from_tag'")
        yield from _field_faults(path, rule.when)
    teams = {rule.team for rule in file.rules if rule.team} | {
        team for rule in file.rules for team in rule.rename.values()
    }
    open_ended = any(rule.from_tag for rule in file.rules)
    for at, split in enumerate(file.split):
        if split.team not in teams and split.team != file.unassigned and not open_ended:
            yield Fault(
                ("split", at, "team"),
                f"no rule names the team {split.team!r}",
                near(split.team, sorted(teams)),
            )
        if split.by == "weights" and not any(split.weights.values()):
            yield Fault(("split", at, "by"), "needs 'weights': the part of each team")
        if split.by != "weights" and split.weights:
            yield Fault(("split", at, "weights"), "are for 'by: weights'")
        if split.by != "usage" and split.clusters:
            yield Fault(("split", at, "clusters"), "are for 'by: usage'")
        if split.team in split.weights:
            yield Fault(("split", at, "weights"), f"{split.team!r} is what is split; name the others")
        if split.team in [other.team for other in file.split[:at]]:
            yield Fault(("split", at, "team"), f"{split.team!r} is split above already")


def _field_faults(path: tuple[str | int, ...], when: dict[str, tuple[str, ...]]) -> Iterator[Fault]:
    for field, values in when.items():
        key = field.removeprefix("tag:")
        if field not in FIELDS and (key == field or not key):
            yield Fault(
                (*path, "when", field), f"is none of {', '.join(FIELDS)}, tag:KEY", near(field, FIELDS)
            )
        if not values:
            yield Fault((*path, "when", field), "name at least one value")
