"""The table of dependencies is true, and each check of the supply chain can fail and can say that it did not run."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tools.supply_chain import __main__ as checks
from tools.supply_chain.packages import (
    UNKNOWN,
    closure,
    declared,
    is_allowed,
    licence_of,
    normal,
    reviewed,
    shipped,
)
from tools.supply_chain.table import known_columns, rows


def test_each_dependency_has_a_row_and_no_row_is_left_over() -> None:
    assert set(rows()) == set(declared())
    assert set(reviewed("dependencies.csv")) == set(map(normal, declared()))
    assert all(row["why"] for row in reviewed("dependencies.csv").values())


def test_a_row_says_what_is_declared_and_locked() -> None:
    remedy = "python -m tools.supply_chain.table"
    for name, row in rows().items():
        _, extras, why, version, day = known_columns(name)
        assert row[-2:] == [version, day] and UNKNOWN not in (version, day), remedy
        assert row[1:3] == [extras, why] if name in shipped() else row[1] == why, remedy


def test_a_row_states_the_licence_of_the_metadata() -> None:
    there = {normal(one.metadata["Name"]): one for one in metadata.distributions()}
    shown = rows()
    seen = {name: licence_of(name, there[normal(name)]) for name in shown if normal(name) in there}
    assert len(seen) > 30
    assert {name: row for name, row in seen.items() if row not in shown[name]} == {}


def test_everything_that_a_user_may_install_has_a_licence_that_lets_them() -> None:
    assert checks.check_licences().status == "ok"
    refused = checks.check_licences(lambda text: text != "MPL-2.0")
    assert refused.status == "FAILED" and any("MPL-2.0" in line for line in refused.lines)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0", True),
        ("Apache-2.0 AND GPL-3.0", False),
        ("(MIT OR GPL-3.0) AND BSD-3-Clause", False),
        ("(MIT OR ISC) AND BSD-3-Clause", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        (UNKNOWN, False),
        ("", False),
    ],
)
def test_which_licences_are_allowed(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed


def test_a_closure_follows_extras_and_leaves_out_what_is_not_there() -> None:
    assert {"pandas", "numpy", "python-dateutil"} <= set(closure(["pandas", "no-such-package"]))
    assert "hypothesis" not in closure(shipped())


def _finding(check: str, path: str) -> dict[str, Any]:
    return {"test_id": check, "filename": f"./{path}", "line_number": 3, "issue_text": "bad"}


def test_a_new_finding_of_bandit_fails_and_so_does_an_idle_exception() -> None:
    accepted = [line.split(",")[:2] for line in (checks.HERE / "accepted.csv").read_text().splitlines()[1:]]
    known = [_finding(check, path or "planner/x.py") for check, path in accepted]
    assert checks.check_bandit(known).status == "ok"
    new = checks.check_bandit([*known, _finding("B608", "planner/job/x.py")])
    assert new.status == "FAILED" and new.lines == ("planner/job/x.py:3: B608 bad",)
    assert "nothing fits it" in checks.check_bandit(known[1:]).lines[0]


def test_an_audit_says_when_nobody_could_be_asked() -> None:
    skipped = {"name": "numpy", "skip_reason": "not on the index"}
    own = {"name": "ml-training-planner", "version": "0.1.0", "vulns": []}
    assert checks.check_audit([skipped, own]).status == "NOT RUN"
    good = {"name": "scipy", "version": "1", "vulns": []}
    assert checks.check_audit([skipped, good]) == checks.Outcome(
        "ok", ("1 packages asked about, 1 could not be asked about",)
    )
    bad = {"name": "x", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    failed = checks.check_audit([good, bad])
    assert failed.status == "FAILED" and failed.lines[0] == "x 1: CVE-1, mended in 2"


def test_the_bill_of_materials_leaves_out_what_only_tests_need() -> None:
    components = [{"name": name, "bom-ref": name} for name in ("numpy", "pytest", "ml-training-planner")]
    arrows = [{"ref": "root", "dependsOn": ["numpy", "pytest"]}, {"ref": "pytest"}, {"ref": "numpy"}]
    bill = {
        "metadata": {"component": {"bom-ref": "root"}},
        "components": components,
        "dependencies": arrows,
    }
    kept = checks.only_shipped(bill, frozenset({"numpy"}))
    assert [one["name"] for one in kept["components"]] == ["numpy"]
    assert kept["dependencies"] == [
        {"ref": "root", "dependsOn": ["numpy"]},
        {"ref": "numpy", "dependsOn": []},
    ]
    assert json.dumps(kept)


def test_without_its_programs_a_check_says_that_it_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "PROGRAMS", ("./no-such-folder",))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/false")
    monkeypatch.setattr(checks.sys, "executable", "/bin/true")  # makes no environment
    assert checks.main(["--environment", str(tmp_path), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "licences: ok" in said
    for name in ("bandit", "pip-audit", "bill of materials"):
        assert f"{name}: NOT RUN" in said
    assert not (tmp_path / "sbom.cdx.json").exists()
