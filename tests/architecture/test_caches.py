"""What is remembered has a bound wherever the keys are texts that users bring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from catalogs.tables.accelerators import load_aliases
from planner.market.expected_price import list_terms
from planner.spot.hazards_cells import family_of, plain_type, plain_zone
from tests.architecture.modules import nodes_of, relative, source_files, text_of

# Caches without a bound whose texts the code chooses itself, or that refuse (and so do not keep) other texts.
CHOSEN_BY_THE_CODE = {
    "catalogs/providers/known_types.py: _bundled",
    "catalogs/providers/known_types.py: known_places",
    "catalogs/providers/known_types.py: known_types",
    "planner/asked/assumptions.py: _read",
    "planner/export/fabric.py: _rows",
    "planner/inputs/plain.py: _sections",
    "planner/judge/capacity_waits.py: _table",
    "planner/performance/goodput.py: load_site",
    "planner/spot/meet.py: calibration",
}


def _without_bound(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator).removeprefix("functools.")
    return name == "cache" or name.replace(" ", "") in ("lru_cache(None)", "lru_cache(maxsize=None)")


def _asked_by_text() -> Iterator[str]:
    for path in source_files():
        for node in nodes_of(path) if "cache" in text_of(path) else ():
            if isinstance(node, ast.FunctionDef) and any(map(_without_bound, node.decorator_list)):
                kinds = [ast.unparse(one.annotation) for one in node.args.args if one.annotation is not None]
                if any("str" in kind for kind in kinds):
                    yield f"{relative(path)}: {node.name}"


def test_no_cache_without_a_bound_is_asked_by_texts_of_users() -> None:
    assert set(_asked_by_text()) == CHOSEN_BY_THE_CODE


@pytest.mark.parametrize("remembered", [family_of, plain_type, plain_zone, list_terms, load_aliases])
def test_names_without_end_are_not_all_kept(remembered: Any) -> None:
    info = remembered.cache_info
    most = info().maxsize
    first = remembered("own.large_0 x2")
    for number in range(most + 10):
        remembered(f"own.large_{number} x2")
    assert info().currsize == most
    assert remembered("own.large_0 x2") == first
