"""`python -m tools.supply_chain`: licences, bandit, pip-audit and a bill of materials of the environment that runs it.

Each check ends as `ok`, `FAILED` or `NOT RUN` with its reason. Exit code 1 where one failed; what could not run fails
nothing, since neither a missing index nor a missing network is a fault of the code, but it is said.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools.supply_chain.packages import (
    HERE,
    ROOT,
    UNKNOWN,
    closure,
    is_allowed,
    licence_of,
    normal,
    shipped,
)

PROGRAMS = ("bandit>=1.8", "pip-audit>=2.7", "cyclonedx-bom>=5")
CODE = ("planner", "catalogs", "solvers", "tools")
_INSTALL_S, _ASK_S = 300.0, 120.0
_SCAN_S = 1800.0  # bandit takes a minute of CPU time, and may have a small share of a busy machine


@dataclass(frozen=True)
class Outcome:
    """How a check ended, and the lines that say why."""

    status: Literal["ok", "FAILED", "NOT RUN"]
    lines: tuple[str, ...]


class NotRunError(Exception):
    """A check could not run here; the message says why."""


def check_licences(accept: Callable[[str], bool] = is_allowed) -> Outcome:
    """Every package that a user may install, with all that it brings, has a licence that lets them."""
    there = closure(shipped())
    missing = sorted(name for name in shipped() if normal(name) not in there)
    licences = {name: licence_of(name, one) for name, one in sorted(there.items())}
    wrong = [f"{name}: {text}" for name, text in licences.items() if text == UNKNOWN or not accept(text)]
    if wrong:
        return Outcome(
            "FAILED", (*wrong, "allow it in tools/supply_chain/packages.py, or state it in licences.csv")
        )
    gap = (f"not installed here, so not looked at: {', '.join(missing)}",) if missing else ()
    return Outcome("ok", (f"{len(licences)} packages, {len(set(licences.values()))} licences", *gap))


def check_bandit(results: Sequence[Mapping[str, Any]]) -> Outcome:
    """Findings of bandit that `accepted.csv` does not name, and rows of it that fit none any more.

    Args:
        results: `results` of bandit's JSON.
    """
    with (HERE / "accepted.csv").open(encoding="utf-8", newline="") as file:
        accepted = [(row["check"], row["path"]) for row in csv.DictReader(file)]
    used: set[tuple[str, str]] = set()
    new = []
    for one in results:
        path = str(one["filename"]).removeprefix("./")
        fits = [row for row in accepted if row[0] == one["test_id"] and path.startswith(row[1])]
        used.update(fits)
        if not fits:
            new.append(f"{path}:{one['line_number']}: {one['test_id']} {one['issue_text']}")
    idle = [
        f"accepted.csv: {check} {path}: nothing fits it"
        for check, path in accepted
        if (check, path) not in used
    ]
    if new or idle:
        return Outcome("FAILED", (*new, *idle))
    return Outcome("ok", (f"{len(results)} findings, each accepted with its reason",))


def check_audit(dependencies: Sequence[Mapping[str, Any]], own: str = "ml-training-planner") -> Outcome:
    """Known faults by pip-audit; where the index answered for no package, that nobody could be asked.

    Args:
        dependencies: `dependencies` of pip-audit's JSON.
        own: the project itself, which no index needs to know.
    """
    others = [one for one in dependencies if one["name"] != own]
    asked = [one for one in others if "skip_reason" not in one]
    if not asked:
        return Outcome(
            "NOT RUN", (f"could not ask: the index knows no faults of any of {len(others)} packages",)
        )
    faults = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for one in asked
        for fault in one["vulns"]
    ]
    said = f"{len(asked)} packages asked about, {len(others) - len(asked)} could not be asked about"
    return Outcome("FAILED", (*faults, said)) if faults else Outcome("ok", (said,))


def only_shipped(
    bill: dict[str, Any], names: frozenset[str], own: str = "ml-training-planner"
) -> dict[str, Any]:
    """A CycloneDX bill without components that only tests need.

    Args:
        bill: as `cyclonedx-py environment` writes it.
        names: normalised names of packages to keep.
        own: the project itself, the root of the bill.
    """
    kept = [one for one in bill["components"] if normal(one["name"]) in names - {own}]
    root = bill.get("metadata", {}).get("component", {}).get("bom-ref")
    refs = {one["bom-ref"] for one in kept} | {root}
    arrows = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in refs]}
        for one in bill.get("dependencies", ())
        if one["ref"] in refs
    ]
    return {**bill, "components": kept, "dependencies": arrows}


def _call(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - programs of the environment made here, arguments from this file
            command, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotRunError(f"{Path(command[0]).name}: {error}") from error


def _tool(environment: Path, name: str) -> str:
    """Path of a program in the environment of the tools, which is made if it is not there."""
    program = environment / "bin" / name
    if not program.exists():
        steps = [
            [sys.executable, "-m", "venv", str(environment)],
            [str(environment / "bin" / "python"), "-m", "pip", "install", "-q", *PROGRAMS],
        ]
        for step in steps:
            done = _call(step, _INSTALL_S)
            if done.returncode:
                raise NotRunError(f"could not install {', '.join(PROGRAMS)}: {_last(done.stderr)}")
    return str(program)


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:300]


def _json(done: subprocess.CompletedProcess[str], program: str) -> Any:
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise NotRunError(f"{program} gave no answer: {_last(done.stderr or done.stdout)}") from error


def _bandit(environment: Path) -> Outcome:
    done = _call([_tool(environment, "bandit"), "-q", "-f", "json", "-r", *CODE], _SCAN_S)
    answer = _json(done, "bandit")
    if answer["errors"]:
        return Outcome("FAILED", tuple(f"{one['filename']}: {one['reason']}" for one in answer["errors"]))
    return check_bandit(answer["results"])


def _audit(environment: Path) -> Outcome:
    program = _tool(environment, "pip-audit")
    paths = [argument for path in sys.path if path.endswith("site-packages") for argument in ("--path", path)]
    said = ""
    for service in ("pypi", "osv"):
        try:
            done = _call([program, "-f", "json", "--progress-spinner", "off", "-s", service, *paths], _ASK_S)
            outcome = check_audit(_json(done, f"pip-audit ({service})")["dependencies"])
        except NotRunError as error:
            said = f"{said}could not ask {service}: {error}; "
            continue
        if outcome.status != "NOT RUN":
            return outcome
        said = f"{said}{service}: {outcome.lines[0]}; "
    raise NotRunError(said.removesuffix("; "))


def _bill_of_materials(environment: Path, out: Path) -> Outcome:
    program = _tool(environment, "cyclonedx-py")
    command = [
        program,
        "environment",
        "--output-reproducible",
        "--pyproject",
        "pyproject.toml",
        "-o",
        "-",
        sys.executable,
    ]
    bill = only_shipped(_json(_call(command, _INSTALL_S), "cyclonedx-py"), frozenset(closure(shipped())))
    out.mkdir(parents=True, exist_ok=True)
    path = out / "sbom.cdx.json"
    path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return Outcome("ok", (f"{path}: CycloneDX {bill['specVersion']}, {len(bill['components'])} components",))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every check; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--environment", type=Path, default=ROOT / ".venv-supply-chain", help="environment of the tools"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the bill of materials")
    given = parser.parse_args(arguments)
    checks: dict[str, Callable[[], Outcome]] = {
        "licences": check_licences,
        "bandit": lambda: _bandit(given.environment),
        "pip-audit": lambda: _audit(given.environment),
        "bill of materials": lambda: _bill_of_materials(given.environment, given.out),
    }
    failed = False
    for name, check in checks.items():
        try:
            outcome = check()
        except NotRunError as error:
            outcome = Outcome("NOT RUN", (str(error),))
        failed |= outcome.status == "FAILED"
        print(f"{name}: {outcome.status}", *(f"  {line}" for line in outcome.lines), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
