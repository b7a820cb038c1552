"""Every number of an input file has bounds that no run reaches: what is beyond them is refused with the bound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.load import parse_workload

SCHEMAS = Path(__file__).parents[3] / "planner" / "data" / "schemas"
INPUTS = (
    "workload",
    "portfolio",
    "pipeline",
    "commit",
    "schedule",
    "serving",
    "budget",
    "state",
    "sweep",
    "tco",
    "showback",
    "calibration",
)
BASE = """version: 1
name: tiny
model: {preset: bert-base}
training: {samples: 1e6, global_batch: 256, sequence_length: 128}
"""


def unbounded(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        kinds = node.get("type")
        stated = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
        if {"number", "integer"} & set(stated) and not {
            "maximum", "exclusiveMaximum", "enum", "const"
        } & set(node):  # fmt: skip
            yield path
        for key, value in node.items():
            yield from unbounded(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from unbounded(value, f"{path}/{index}")


@pytest.mark.parametrize("name", INPUTS)
def test_every_number_of_an_input_file_has_an_upper_bound(name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.v1.json").read_text(encoding="utf-8"))
    assert list(unbounded(schema)) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "constraints: {max_nodes: 100000000}",
            "constraints.max_nodes: must be at most 16384, got 100000000",
        ),
        ("checkpoint: {keep: 1000000000000}", "checkpoint.keep: must be at most 10000"),
        ("checkpoint: {interval: 1e-16s}", "checkpoint.interval: is shorter than a millisecond"),
        ("data: {size: 1EB}", "data.size: is more than 100 PB"),
        ("data: {size: 1e9GB}", "data.size: is more than 100 PB"),
        ("data: {size: 1e999999 GB}", "data.size: is not between 1e-30 and 1e30"),
        ("start: 0001-01-01", "start: must be in the years 2000 to 2100"),
        ("start: 9999-12-31", "start: must be in the years 2000 to 2100"),
        ("constraints: {deadline: 9999-12-31}", "constraints.deadline: must be in the years 2000 to 2100"),
        ("constraints: {deadline: 1e999999h}", "constraints.deadline: is not between 1e-30 and 1e30"),
        ("constraints: {deadline: 1e9999999999999999999h}", "is not a number of a usual size"),
        ("constraints: {budget_usd: $1e999999}", "constraints.budget_usd: is not between 1e-30 and 1e30"),
        ("constraints: {min_memory_gib: 1.0e+300}", "must be at most 1e+15"),
        ("constraints: {regions: [" + "aws/us-east-1," * 1001 + "]}", "has 1001 items, at most 1000"),
    ],
)
def test_a_figure_beyond_its_bound_is_refused_with_the_bound(line: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_workload(f"{BASE}{line}\n", Path("w.yaml"))
    assert words in str(refused.value)
    assert ":5:" in str(refused.value)


def test_a_message_quotes_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InputError) as refused:
        parse_workload(f"{BASE}constraints: {{deadline: '{'x' * 100_000}'}}\n", Path("w.yaml"))
    assert len(str(refused.value)) < 600
