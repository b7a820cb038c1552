"""`planner optimize --certificate` and `planner verify`: what was proven, re-checked from the file alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_optimize import DAY, example
from tests.conftest import Run

pytestmark = pytest.mark.catalog("small")


def certified(run_cli: Run, name: str, target: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    done = run_cli("optimize", example(name), "-o", "json", "--certificate", str(target), *DAY)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout), json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "kind"), [("embed-images-fleet", "milp"), ("bert-large", "enumeration")])
def test_a_certificate_holds_and_a_changed_one_does_not(
    run_cli: Run, tmp_path: Path, name: str, kind: str
) -> None:
    target = tmp_path / "certificate.json"
    plan, certificate = certified(run_cli, name, target)
    assert certificate["kind"] == kind
    assert certificate["workload_sha256"] == plan["workload_sha256"]
    # hours as billed are never cheaper than what the certificate proves no plan is below
    assert float(plan["total_usd"]) >= certificate["bound"] * 1e-6 * (1 - 1e-9)
    done = run_cli("verify", str(target))
    assert (done.code, done.stderr) == (0, "")
    assert f"the certificate holds; {kind} certificate" in " ".join(done.stdout.split())
    certificate["bound"] = certificate["objective"] + 1
    target.write_text(json.dumps(certificate), encoding="utf-8")
    done = run_cli("verify", str(target))
    assert (done.code, done.stderr) == (5, "")
    assert "the certificate does not hold" in " ".join(done.stdout.split())


def test_a_fleet_certificate_proves_nearly_what_the_solver_claims(run_cli: Run, tmp_path: Path) -> None:
    plan, certificate = certified(run_cli, "embed-images-fleet", tmp_path / "certificate.json")
    assert certificate["gap_ratio"] < 0.02
    assert certificate["gap_solver_ratio"] == plan["proof"]["gap_ratio"]


def test_a_plan_tells_the_two_gaps_apart(run_cli: Run, tmp_path: Path) -> None:
    plan, certificate = certified(run_cli, "hpo-fleet", tmp_path / "certificate.json")
    proof = plan["proof"]
    assert proof["gap_ratio"] <= proof["gap_exact_ratio"] + 1e-12 <= 0.1
    assert (proof["status"] == "optimal") == (proof["gap_ratio"] <= 1e-3)
    # of hours as worked, which the certificate is about, the gap is no larger than of the bill
    assert certificate["gap_ratio"] <= proof["gap_exact_ratio"] + 1e-3


def test_without_a_plan_there_is_nothing_to_certify(run_cli: Run, tmp_path: Path) -> None:
    workload = tmp_path / "poor.yaml"
    text = Path(example("bert-large")).read_text(encoding="utf-8")
    workload.write_text(text.replace("budget_usd: 6_000", "budget_usd: 0.01"), encoding="utf-8")
    target = tmp_path / "certificate.json"
    done = run_cli("optimize", str(workload), "--certificate", str(target), *DAY)
    assert done.code == 3
    assert "no plan to certify" in done.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    "content", ['{"certificate_version": 1}', '{"certificate_version": 1, "kind": "milp"}']
)
def test_what_is_no_certificate_is_said_so(run_cli: Run, tmp_path: Path, content: str) -> None:
    target = tmp_path / "certificate.json"
    target.write_text(content, encoding="utf-8")
    done = run_cli("verify", str(target))
    assert done.code == 5
    assert "Traceback" not in done.stderr
