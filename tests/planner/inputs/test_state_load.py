"""A state as JSON is read without pydantic; what it is and what is refused do not depend on that."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.errors import InputError
from planner.inputs.plain import STATE_ROOT, read_section
from planner.inputs.state_load import load_state
from planner.inputs.state_schema import RunState
from planner.inputs.view import SectionView, encode_section
from tests.planner.inputs.test_plain import ODD, ROOT, _paths

FULL: dict[str, Any] = {
    "version": 1, "kind": "state", "now": "6h 30m", "launched_at": "2026-12-01T08:00Z", "done_hours": 2,
    "done_ratio": 0.5, "done_steps": 3, "mode": "spot", "zone": "a", "restart_left_hours": 0.5,
    "checkpoint_region": "r", "on_demand_usd_per_hour": 4,
    "zones": [{
        "name": "a", "region": "r", "available": True, "usd_per_hour": 1.5, "since": 2.5,
        "history": [{"available": False, "hours": 3}],
    }],
}  # fmt: skip
SPOT_STATE = ROOT / "examples" / "spot-state.json"


@pytest.mark.parametrize("odd", [*ODD, [], 1e9, "6h 30m"], ids=lambda value: repr(value)[:20])
def test_both_readers_agree_on_odd_values_everywhere(odd: Any) -> None:
    for path in _paths(FULL)[1:]:
        data = copy.deepcopy(FULL)
        place: Any = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = odd
        plain = read_section(STATE_ROOT, data)
        try:
            model = RunState.model_validate(data)
        except ValidationError:
            assert plain is None, (path, odd)
        else:
            assert plain is None or encode_section(plain) == encode_section(model), (path, odd)
    assert read_section(STATE_ROOT, FULL) is not None


def test_json_and_yaml_give_the_same_state(tmp_path: Path) -> None:
    as_yaml = tmp_path / "state.yaml"
    as_yaml.write_text("# a launcher's state\n" + SPOT_STATE.read_text())
    one, other = load_state(SPOT_STATE).state, load_state(as_yaml).state
    assert isinstance(one, SectionView) and one == other


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"version": 1, "version": 1}', "version"),
        ('{"version": 1, "kind": "state", "now": NaN}', "now"),
        (json.dumps({**FULL, "zone": "b", "done_ratio": None, "done_steps": None}), "'b' is not among the zones"),
        ("[" * 5000, "deep"),
    ],
)  # fmt: skip
def test_faults_have_their_places_also_in_json(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        load_state(path)
    assert "state.json:1" in str(caught.value)


def test_a_state_of_a_launcher_needs_no_pydantic() -> None:
    code = (
        "import sys; from pathlib import Path; from planner.inputs.state_load import load_state\n"
        "load_state(Path(sys.argv[1])); sys.exit('pydantic' in sys.modules or 'yaml' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, str(SPOT_STATE)], cwd=ROOT, check=False).returncode == 0
    )
