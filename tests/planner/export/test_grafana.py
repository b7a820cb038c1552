"""The dashboard: rules that Grafana has no validator for, and every expression parsed as PromQL."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from planner.export.registry import Options, export
from planner.export.view import Launch
from tests.planner.export.launches import LAUNCHES


def faults(board: dict[str, Any], recorded: set[str]) -> list[str]:
    """What is wrong with a dashboard, by the rules that its types and its grid set."""
    promql = pytest.importorskip("promql_parser", reason="promql-parser is not installed")
    found = []
    panels = board["panels"]
    if len({panel["id"] for panel in panels}) < len(panels):
        found.append("panel ids repeat")
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        if not apart_x and not apart_y:
            found.append("panels overlap")
    for panel in panels:
        if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
            found.append("wider than the grid")
        targets = panel["targets"]
        if not targets or len({target["refId"] for target in targets}) < len(targets):
            found.append("refId missing or repeated")
        for target in targets:
            if target["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
                found.append("a data source of one installation")
            try:
                promql.parse(target["expr"])
            except ValueError as error:
                found.append(f"not PromQL: {error}")
            if target["expr"].partition("{")[0] not in recorded:
                found.append(f"not a series of the rules: {target['expr']}")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", board["uid"]) or "id" in board:
        found.append("uid")
    return found


def board_of(launch: Launch) -> tuple[dict[str, Any], set[str]]:
    (file,) = export(launch, "grafana", Options())
    rules = export(launch, "prometheus", Options())[0].text
    return json.loads(file.text), set(re.findall(r"- record: (\S+)", rules))


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_dashboard_keeps_the_rules(name: str) -> None:
    assert faults(*board_of(LAUNCHES[name])) == []


def test_texts_of_users_are_no_variables() -> None:
    board, recorded = board_of(replace(LAUNCHES["one"], name="${datasource} [[x]]", run_id='a"} or up #'))
    assert faults(board, recorded) == []
    assert "${" not in board["title"] and "[[" not in board["title"]


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("panels", 1, "id"), 1, "ids repeat"),
        (("panels", 1, "gridPos", "x"), 6, "overlap"),
        (("panels", 1, "gridPos", "w"), 24, "wider"),
        (("panels", 0, "targets", 0, "expr"), "sum(", "not PromQL"),
        (("panels", 0, "targets", 0, "expr"), "run:gone:ratio", "not a series"),
        (("panels", 0, "targets", 0, "datasource"), {"uid": "abc"}, "one installation"),
        (("uid",), "x" * 41, "uid"),
    ],
)
def test_a_wrong_dashboard_is_found_out(path: tuple[str | int, ...], value: object, fault: str) -> None:
    board, recorded = board_of(LAUNCHES["one"])
    inner: Any = board
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert any(re.search(fault, text) for text in faults(board, recorded))
