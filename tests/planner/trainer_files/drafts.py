"""A trainer's file as a user has it, and what is read of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.trainer_files.gather import Draft, Wishes, gather


def draft(folder: Path, name: str, text: str, **wishes: Any) -> Draft:
    """What is read of `text` in a file of this name."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return gather([path], Wishes(**wishes))


def facts(result: Draft) -> dict[str, Any]:
    """The values by key, without their origins."""
    return {key: fact.value for key, fact in result.facts.items()}


def values_of(folder: Path, name: str, text: str, **wishes: Any) -> dict[str, Any]:
    """The values that are read of `text`."""
    return facts(draft(folder, name, text, **wishes))
