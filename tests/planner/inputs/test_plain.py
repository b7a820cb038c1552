"""The plain reader: what it takes, the models take with the same values; what it leaves, they judge."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.inputs.plain import read_plain
from planner.inputs.schema import Workload
from planner.inputs.section import Section
from planner.inputs.view import encode_section
from planner.inputs.yaml12 import parse_yaml
from tests.planner.inputs.test_workload_compiled import FULL

ROOT = Path(__file__).parents[3]
ODD = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        3,
        2**70,
        0.5,
        1.0,
        -0.0,
        1e400,
        float("nan"),
        "",
        "auto",
        "x" * 201,
        "12",
    ),
    *(
        "72h",
        "5%",
        "$3",
        "2026-12-01",
        "2026-12-01T08:00Z",
        "1e3",
        "-12%",
        "-12%\n",
        [],
        [""],
        ["a"],
        {},
        {"a": 1},
    ),
    *("100GB", "fleet", "spot", ["spot"], [None], {"deny": ["a"]}, {"micro_batch": 2}, {"allow": None}),
)


def _data() -> dict[str, Any]:
    return parse_yaml(FULL, "full.yaml").data  # type: ignore[no-any-return]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, item in items for inner in _paths(item, (*path, key)))]


def _agree(data: dict[str, Any]) -> bool:
    """Whether the plain reader took the data; fails where the models say otherwise."""
    plain = read_plain(copy.deepcopy(data))
    try:
        model = Workload.model_validate(data)
    except ValidationError:
        assert plain is None
        return False
    assert plain is None or encode_section(plain) == encode_section(model)  # type: ignore[arg-type]
    return plain is not None


def test_workloads_with_every_kind_of_value_and_with_the_least_are_read() -> None:
    assert _agree(_data())
    assert _agree({"version": 1, "name": "least"})


@pytest.mark.parametrize("odd", ODD, ids=lambda value: repr(value)[:20])
def test_both_readers_agree_on_odd_values_everywhere(odd: Any) -> None:
    data = _data()
    for path in _paths(data)[1:]:
        changed = copy.deepcopy(data)
        place: Any = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = odd
        _agree(changed)


def test_both_readers_agree_on_every_key_of_the_schema() -> None:
    """Also on keys that the example above lacks."""
    least = {"version": 1, "name": "least"}
    taken = 0
    for name, model in Workload.model_fields.items():
        for odd in (*ODD, "cuda", ["cuda", "any"], "full", "adamw"):
            taken += _agree({**least, name: odd})
            kinds = [
                kind for kind in get_args(model.annotation) or (model.annotation,) if isinstance(kind, type)
            ]
            sections = [kind for kind in kinds if issubclass(kind, Section)]
            for key in sections[0].model_fields if sections else ():
                taken += _agree({**least, name: {key: odd}})
    assert taken > 300


@pytest.mark.hypothesis
@given(st.data())
def test_both_readers_agree_on_changed_keys(drawn: st.DataObject) -> None:
    data = _data()
    for _ in range(drawn.draw(st.integers(1, 4))):
        places = [path for path in _paths(data) if path]
        path = drawn.draw(st.sampled_from(places))
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        if drawn.draw(st.booleans()) and isinstance(place, dict):
            place[drawn.draw(st.sampled_from(["quota", "allow", "Tokens", "note", "data", "task"]))] = (
                place.pop(path[-1])
            )
        else:
            # a copy: what is drawn next may change it, and the next example draws it again
            place[path[-1]] = copy.deepcopy(drawn.draw(st.sampled_from(ODD)))
    _agree(data)


def test_a_new_valid_file_needs_no_pydantic(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(FULL)
    code = (
        "import sys; from pathlib import Path; from planner.inputs.load import load_workload\n"
        "load_workload(Path(sys.argv[1]), cache=False); sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=False).returncode == 0
