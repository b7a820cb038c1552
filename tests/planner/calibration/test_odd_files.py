"""A calibration of odd content is left out with a word; it stops no command and changes no answer."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.calibration.correction import build_correction, hardware_row
from planner.calibration.store import Calibration, load, load_all
from planner.errors import InputError
from planner.estimation.answer import gather_machines, load_catalog
from planner.inputs.load import load_workload
from tests.conftest import ROOT

FIXTURE = ROOT / "tests" / "fixtures" / "versions" / "calibration.v1.json"
ODD = (
    0, -1, 1e300, -1e300, 1e-300, float("inf"), float("nan"), "x", "", None, [], {}, True, 10**400, 1e21, 0.5, [1, 2],
    {"a": 1}, "x" * 2_000,
)  # fmt: skip


def places(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            yield from places(value, (*path, key))


def read(path: Path, document: Any) -> Calibration | None:
    path.write_text(json.dumps(document))
    try:
        return load(path)
    except InputError as error:
        said = str(error).removeprefix(f"{path}: ")
        assert "delete it or run `planner calibrate` again" in said and len(said) < 350
        return None


def corrected(item: Calibration) -> None:
    """What every command does with the calibrations that it finds."""
    build_correction(item.model, item.training, [item])


@pytest.mark.parametrize("group", range(4))
def test_a_value_of_another_kind_or_size_is_left_out_or_can_be_used(group: int, tmp_path: Path) -> None:
    good = json.loads(FIXTURE.read_text())
    where = list(places(good))
    used = left_out = 0
    for number, (place, odd) in enumerate((place, odd) for place in where for odd in ODD):
        if number % 4 != group:
            continue
        document = copy.deepcopy(good)
        node = document
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = odd
        item = read(tmp_path / "odd.json", document)
        left_out += item is None
        if item is not None and random.Random(number).random() < 0.25:
            corrected(item)
            used += 1
    assert left_out > 200 and used > 10


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["hardware"].update(bf16_tflops=0), "hardware.bf16_tflops must be 0.01 to 1e+07, got 0"),
        (lambda d: d["hardware"].update(vcpus="many"), "hardware.vcpus is 'many'"),
        (lambda d: d["hardware"].pop("memory_gib"), "KeyError: 'memory_gib'"),
        (lambda d: d.update(hardware=7), "hardware is not a mapping"),
        (lambda d: d["model"].update(hidden=None), "hidden must be given for family 'transformer'"),
        (lambda d: d["model"].update(layers=2.5), "model.layers is '2.5'"),
        (lambda d: d["training"].update(sequence_length=0), "training.sequence_length must be at least 1"),
        (lambda d: d["training"]["memory"].update(loss="all"), "training.memory.loss is 'all'"),
        (lambda d: d["measured"].update(step_time_s=1e10), "must be above 0 and at most 1e+09 s"),
        (lambda d: d["cluster"].update(nodes=20_000), "cluster.nodes must be 1 to 16384"),
    ],
)
def test_the_file_and_the_value_are_named(
    change: Callable[[dict[str, Any]], None], says: str, tmp_path: Path
) -> None:
    document = json.loads(FIXTURE.read_text())
    change(document)
    (tmp_path / "odd.json").write_text(json.dumps(document))
    (tmp_path / "sound.json").write_text(FIXTURE.read_text())
    found, problems = load_all(tmp_path)
    assert [item.path and item.path.name for item in found] == ["sound.json"]
    assert len(problems) == 1 and "odd.json" in problems[0] and says in problems[0]


def test_every_machine_of_the_catalog_can_be_in_a_calibration(tmp_path: Path) -> None:
    """The bounds are wider than what is on sale."""
    workload = load_workload(ROOT / "examples" / "bert-large.yaml").workload
    machines = gather_machines(load_catalog(None), workload, str(tmp_path)).hardware
    document = json.loads(FIXTURE.read_text())
    for row in range(len(machines["accelerator"])):
        document["hardware"] = hardware_row(machines, row)
        if document["hardware"]["generation"]:
            assert read(tmp_path / "one.json", document) is not None, document["hardware"]
