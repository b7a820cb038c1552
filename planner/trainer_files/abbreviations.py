"""Abbreviated arguments of the Trainer's scripts: argparse takes the begin of a name that no other name has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from planner.bundled import bundled_rows

# a script whose arguments are those of the Trainer names its model with one of these
_MODELS = ("model_name_or_path", "model_name")
_SHORTEST = 6


@cache
def _names() -> tuple[str, ...]:
    return tuple(row["argument"] for row in bundled_rows("trainer_arguments.csv"))


def written_out(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Arguments under their full names, and a remark on those that were abbreviated.

    Args:
        arguments: those of a command line, by name.

    Returns:
        The arguments; remarks, at most one.
    """
    if not any(name in arguments for name in _MODELS):
        return dict(arguments), []
    full = {name: _full(name) for name in arguments}
    renamed = {name: meant for name, meant in full.items() if meant and meant not in arguments}
    found = {renamed.get(name, name): value for name, value in arguments.items()}
    listed = ", ".join(f"{name} is {meant}" for name, meant in renamed.items())
    return found, [f"abbreviated arguments, read as argparse does: {listed}"] if listed else []


def _full(name: str) -> str:
    """The one argument that a name abbreviates, empty where it is none or could be several."""
    if len(name) < _SHORTEST or "_" not in name.strip("_") or name in _MODELS:
        return ""
    meant = [known for known in _names() if known.startswith(name)]
    return meant[0] if len(meant) == 1 and meant[0] != name else ""
