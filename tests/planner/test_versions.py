"""Files that older versions wrote are read; files of later versions are refused by name (tests/fixtures/versions)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalogs.errors import CatalogError, ExpiredCatalogError
from catalogs.offers.static import load_static
from catalogs.store.load import load_catalog, read_sources
from catalogs.store.statement import open_statement
from planner.calibration.store import load as load_calibration
from planner.errors import InputError
from planner.finops.cube import open_cube, read_cube
from planner.finops.ledger.book import open_book
from planner.inputs.budget_load import load_budgets
from planner.inputs.commit_load import load_commit
from planner.inputs.load import load_workload
from planner.inputs.pipeline_load import load_pipeline
from planner.inputs.portfolio_load import load_portfolio
from planner.inputs.schedule_load import load_schedule
from planner.inputs.serving_load import load_serving
from planner.inputs.showback_load import load_showback
from planner.inputs.state_load import load_state
from planner.inputs.sweep_load import load_sweep
from planner.inputs.tco_load import load_tco
from planner.plan.certificates import check_certificate
from planner.plan.file import load_plan
from planner.plan.ids import CostId
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.plan.upgrade import OLDEST_VERSION, SCHEMA_VERSION
from planner.render import render_answer
from planner.render.formats import ANSWER_FORMATS
from tests.conftest import ROOT

OLD = ROOT / "tests" / "fixtures" / "versions"
TOTALS = {"plan.v1": "265.109651206104", "plan.v2": "265.109651206104", "fleet-plan.v1": "28.987624068358"}
READERS: dict[str, Callable[[Path], Any]] = {
    "workload.v1.yaml": load_workload,
    "workload-phases.v1.yaml": load_workload,
    "workload-fleet.v1.yaml": load_workload,
    "portfolio.v1.yaml": load_portfolio,
    "pipeline.v1.yaml": load_pipeline,
    "commit.v1.yaml": load_commit,
    "schedule.v1.yaml": load_schedule,
    "serving.v1.yaml": load_serving,
    "budget.v1.yaml": load_budgets,
    "showback.v1.yaml": load_showback,
    "tco.v1.yaml": load_tco,
    "sweep.v1.yaml": load_sweep,
    "state.v1.json": load_state,
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_saved_plan_is_read_shown_and_saved_anew(name: str) -> None:
    plan = load_plan(OLD / f"{name}.json")
    assert plan.total_usd == Decimal(TOTALS[name]) and plan.launch is not None
    assert plan.launch.checkpoints.restart_s is None  # it was not stated then: unknown, not invented
    assert plan.schema_version == SCHEMA_VERSION
    again = Plan.from_dict(json.loads(str(render_answer(plan_answer(plan), "json"))))
    assert again == plan
    for output in set(ANSWER_FORMATS) - {"xlsx"}:
        assert render_answer(plan_answer(plan), output)


def test_what_plans_of_version_2_say_since_they_were_first_written_is_read() -> None:
    """Phases, remedies as numbers, and what a commitment that ends in mid-run costs after its end."""
    phases = load_plan(OLD / "phases-plan.v2.json")
    assert phases.phase_step_times_s is not None and phases.phase_layouts is not None
    assert len(phases.phase_step_times_s) == len(phases.phase_layouts) == 2
    (remedy,) = load_plan(OLD / "infeasible.v2.json").relaxations
    assert [(one.constraint, one.limit, one.enough) for one in remedy.changes] == [
        ("deadline", 1 / 6, 2.8),
        ("budget", 1.0, 33.86),
    ]
    fleet = load_plan(OLD / "later-fleet-plan.v2.json")
    assert CostId.AFTER_END in {cost.id for line in fleet.lines for cost in line.costs}
    for name in ("phases-plan", "infeasible", "later-fleet-plan"):
        values = json.loads((OLD / f"{name}.v2.json").read_text())
        again = json.loads(str(render_answer(plan_answer(load_plan(OLD / f"{name}.v2.json")), "json")))
        assert again == {**values, **{key: again[key] for key in again.keys() - values.keys()}}


def test_every_version_of_a_plan_has_a_file() -> None:
    versions = {json.loads((OLD / f"{name}.json").read_text())["schema_version"] for name in TOTALS}
    assert versions == set(range(OLDEST_VERSION, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, "2", None])
def test_a_plan_of_another_version_is_refused_by_name(version: object, tmp_path: Path) -> None:
    values = {**json.loads((OLD / "plan.v2.json").read_text()), "schema_version": version}
    (tmp_path / "plan.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"schema_version: .*this planner reads 1 to 2"):
        load_plan(tmp_path / "plan.json")


def test_every_schema_of_a_file_that_is_read_has_a_file() -> None:
    schemas = {path.stem for path in (ROOT / "planner" / "data" / "schemas").glob("*.json")}
    answers = {"estimate.v1"}  # written, never read
    assert schemas - answers <= {path.stem for path in OLD.iterdir()}


@pytest.mark.parametrize("name", READERS)
def test_what_a_user_wrote_for_version_1_is_read(name: str) -> None:
    assert READERS[name](OLD / name)


@pytest.mark.parametrize("name", READERS)
def test_what_is_written_for_a_later_version_is_refused_by_name(name: str, tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "later")
    path = tmp_path / "later" / name
    text = path.read_text()
    later = text.replace("version: 1", "version: 99", 1).replace('"version": 1', '"version": 99', 1)
    assert later != text
    path.write_text(later)
    with pytest.raises(InputError, match="version"):
        READERS[name](path)


def test_a_snapshot_of_version_1_is_read_and_a_later_one_refused(tmp_path: Path) -> None:
    read = load_catalog(OLD / "snapshot.v1", cache=False)
    assert (
        read.offers.n_rows == json.loads((OLD / "snapshot.v1/lambda/manifest.json").read_text())["n_offers"]
    )
    shutil.copytree(OLD / "snapshot.v1", tmp_path / "later")
    manifest = tmp_path / "later" / "lambda" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema_version": 2}))
    with pytest.raises(CatalogError, match="has schema version 2, this planner reads version 1"):
        load_catalog(tmp_path / "later")


def test_a_list_of_machines_is_read() -> None:
    assert load_static(OLD / "machines.v1.yaml")


@pytest.mark.parametrize(
    ("name", "key", "read"),
    [("calibration.v1.json", "schema_version", load_calibration), ("ledger.v1.json", "version", open_book)],
)
def test_what_the_program_keeps_is_read_and_a_later_version_refused(
    name: str, key: str, read: Callable[[Path], Any], tmp_path: Path
) -> None:
    assert read(OLD / name)
    (tmp_path / name).write_text(json.dumps({**json.loads((OLD / name).read_text()), key: 99}))
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


def test_a_certificate_of_version_1_holds_and_a_later_one_is_refused() -> None:
    certificate = json.loads((OLD / "certificate.v1.json").read_text())
    assert check_certificate(certificate) == []
    assert (
        "certificate_version is 2, this planner reads 1"
        in check_certificate({**certificate, "certificate_version": 2})[0]
    )


def test_a_cube_of_version_1_is_opened_and_a_later_one_refused(tmp_path: Path) -> None:
    with open_cube([OLD / "cube.v1"]) as bill:
        assert bill.months == (date(2026, 10, 1),)
    shutil.copytree(OLD / "cube.v1", tmp_path / "later")
    manifest = tmp_path / "later" / "cube-manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema_version": 2}))
    with pytest.raises(InputError, match="was written by another version"):
        read_cube(tmp_path / "later")


def test_a_statement_of_version_1_holds_for_its_catalog() -> None:
    pytest.importorskip("cryptography")
    now = datetime(2027, 1, 1, tzinfo=UTC)
    statement = open_statement(OLD / "signed.v1", OLD / "signed.v1" / "prices.pub", now)
    statement.check_contents(read_sources(OLD / "snapshot.v1"))
    with pytest.raises(ExpiredCatalogError):
        open_statement(OLD / "signed.v1", OLD / "signed.v1" / "prices.pub", datetime(2046, 1, 1, tzinfo=UTC))


def test_the_workload_of_the_migration_page_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    path = tmp_path / "as-before.yaml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    workload = load_workload(path).workload
    assert workload.preferences.prices == "quoted" and workload.constraints.allow_derived
    assert {limit.accelerators for limit in workload.constraints.obtainable} == {512}
