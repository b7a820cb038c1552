"""What a loop saw is kept as evidence: the record is read back and moves the estimate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.advice.question import Question, build_question
from planner.advice.recording import append_rows, recorded_rows
from planner.advice.saved_plan import load_spot_plan
from planner.errors import InputError
from planner.inputs.state_load import LoadedState, load_state
from planner.spot.hazards import load_hazards
from planner.spot.hazards_evidence import model_from_files
from planner.spot.traces.registry import read_traces
from tests.conftest import Run
from tests.planner.advice.plans import state_values, write

NOW = datetime(2026, 3, 2, 13, tzinfo=UTC)


def asked(folder: Path, **changes: Any) -> tuple[Question, LoadedState]:
    plan, state = write(folder, state=state_values(**{"now": NOW.isoformat(), **changes}))
    loaded = load_state(Path(state))
    return build_question(load_spot_plan(Path(plan)), loaded, tick_hours=0.1, clock=NOW), loaded


def zone(available: bool, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "us-east-2a", "available": available, **more}]


def test_the_command_keeps_what_its_states_said_and_reads_it_in_the_same_call(
    tmp_path: Path, run_cli: Run
) -> None:
    log = tmp_path / "seen.csv"
    for minutes, up in ((0, True), (6, True), (12, False), (12, False)):  # the last question is asked twice
        now = (NOW + timedelta(minutes=minutes)).isoformat()
        plan, state = write(
            tmp_path, state=state_values(now=now, zones=zone(up, usd_per_hour=1.5 if up else None))
        )
        result = run_cli("advise", plan, "--state", state, "--record", log, "--spot-evidence", log)
        assert result.code == 0, result.stderr
    (trace,) = read_traces(log)
    assert trace.up.tolist() == [True, True, False] and trace.start == NOW
    assert (trace.provider, trace.region, trace.zone, trace.gang) == ("aws", "us-east-2", "us-east-2a", 2)
    assert trace.spot_usd_per_hour[0] == 3.0 and trace.on_demand_usd_per_hour == 8.0  # of both nodes
    assert log.read_text(encoding="utf-8").splitlines()[-1].endswith(",0,,8")  # no price was seen while down


def test_a_pool_that_the_loops_never_found_up_is_expected_less_often(tmp_path: Path) -> None:
    question, loaded = asked(tmp_path, zones=zone(False))
    log, place = tmp_path / "seen.csv", question.job.zones[0]
    (row,) = recorded_rows(question, loaded)
    for day in range(2):  # two jobs, a night between them that nobody watched
        hours = (24 * day + 0.5 * probe for probe in range(24))
        append_rows(log, [{**row, "time": (NOW + timedelta(hours=hour)).isoformat()} for hour in hours])
    before, after = load_hazards().table_for(place), model_from_files([log]).table_for(place)
    assert [trace.hours for trace in read_traces(log)] == pytest.approx([12.0, 12.0])
    assert after.hours_seen - before.hours_seen == pytest.approx(24.0, abs=0.5)
    assert (
        after.availability_ratio < 0.9 * before.availability_ratio
    )  # a tenth of all hours seen: 0.58 after 0.71


def test_a_record_is_written_whole_or_refused_with_the_remedy(tmp_path: Path) -> None:
    question, loaded = asked(tmp_path)
    rows, log = recorded_rows(question, loaded), tmp_path / "seen.csv"
    assert append_rows(log, rows) == 1 and append_rows(log, rows) == 0
    kept = log.read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"already says that 2 instances .* us-east-2a"):
        append_rows(log, [{**rows[0], "available": "0"}])
    other = tmp_path / "notes.csv"
    other.write_text("my,own,notes\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds something else than a record"):
        append_rows(other, rows)
    with pytest.raises(InputError, match="--record"):
        append_rows(tmp_path / "absent" / "seen.csv", rows)
    assert log.read_text(encoding="utf-8") == kept and other.read_text(encoding="utf-8") == "my,own,notes\n"


def test_hours_without_a_moment_cannot_be_recorded(tmp_path: Path) -> None:
    question, loaded = asked(tmp_path, now=5)
    with pytest.raises(InputError, match="--record needs the moment"):
        recorded_rows(question, loaded)


def test_a_record_that_cannot_be_written_does_not_cost_the_answer(tmp_path: Path, run_cli: Run) -> None:
    plan, state = write(tmp_path, state=state_values(now=NOW.isoformat()))
    result = run_cli("advise", plan, "--state", state, "--record", tmp_path / "absent" / "seen.csv")
    assert result.code == 2 and "--record" in result.stderr and "start spot" in result.stdout
