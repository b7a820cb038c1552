"""A workload, portfolio or pipeline: whichever a file says it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.inputs.documents import kind_of
from planner.inputs.load import load_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.portfolio_load import LoadedPortfolio

    Loaded = LoadedWorkload | LoadedPortfolio | LoadedPipeline

_NAMES = {"LoadedWorkload": "workload", "LoadedPortfolio": "portfolio", "LoadedPipeline": "pipeline"}
_FUNCTIONS = {"workload": "optimize", "portfolio": "portfolio", "pipeline": "pipeline"}


def load_any(file: Path) -> Loaded:
    """Read a file by its key `kind`.

    Raises:
        InputError: lists every fault with its line, column and remedy.
    """
    from planner.inputs.pipeline_load import load_pipeline
    from planner.inputs.portfolio_load import load_portfolio

    readers: dict[str, Callable[[Path], Loaded]] = {"portfolio": load_portfolio, "pipeline": load_pipeline}
    return readers.get(kind_of(file), load_workload)(file)


def loaded_as(source: object, kind: str) -> Any:
    """Read `source` if it is a path; anything loaded must be of the kind asked.

    Raises:
        InputError: it is of another kind.
    """
    loaded = load_any(Path(source)) if isinstance(source, str | Path) else source
    actual = _NAMES.get(type(loaded).__name__, kind)
    if actual != kind:
        subject = "what was loaded" if loaded is source else source
        raise InputError(
            f"{subject}: is a {actual}, a {kind} is needed; use planner.{_FUNCTIONS[actual]}() for it"
        )
    return loaded
