"""`python -m tools.supply_chain.table` writes docs/dependencies.md: why each dependency is there and what it costs.

Sizes and times are measured in the environment that runs it; `--path DIR` adds a folder of packages that it lacks.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from tools.supply_chain.packages import ROOT, closure, declared, licence_of, normal, reviewed, shipped

PAGE = ROOT / "docs" / "dependencies.md"
UNKNOWN = "unknown"
_RUNS = 3


@functools.cache
def _locked() -> dict[str, dict[str, Any]]:
    """Packages of the lock file, by normalised name."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    return {normal(package["name"]): package for package in lock["package"]}


def locked_release(name: str) -> tuple[str, str]:
    """Locked version of a package and the day of its first file."""
    package = _locked().get(normal(name), {})
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
    days = sorted(str(file["upload-time"])[:10] for file in files if "upload-time" in file)
    return str(package.get("version", UNKNOWN)), days[0] if days else UNKNOWN


def size_mb(one: metadata.Distribution) -> float:
    """Size of a package's installed files, MB (10^6 bytes); compiled copies of modules are not counted."""
    paths = [one.locate_file(file) for file in one.files or () if not str(file).endswith(".pyc")]
    return sum(os.stat(str(path)).st_size for path in paths if os.path.exists(str(path))) / 1e6  # noqa: PTH110, PTH116


def import_ms(module: str) -> float:
    """Least CPU time of three imports, each in a new process, milliseconds."""
    code = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    command = [sys.executable, "-c", code]
    times = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603 - names of a table here
        for _ in range(_RUNS)
    ]
    return 1e3 * min(times)


def known_columns(name: str) -> tuple[str, str, str, str, str]:
    """What differs on no machine: name, who gets it, why, the locked version and its day."""
    row = reviewed("dependencies.csv")[normal(name)]
    extras = ", ".join(extra for extra in declared()[name] if extra != "test") or "test"
    return name, extras, row["why"], *locked_release(name)


def rows() -> dict[str, list[str]]:
    """Cells of the page as it is, by package."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")
    ]
    return {row[0]: row for row in cells if row[0] != "package"}


def _measured(name: str, before: Sequence[str], only: Sequence[str]) -> Sequence[str]:
    """Licence, size alone, size with what it brings, time of import; those of before where it is not measured."""
    if only and before and name not in only:
        return before
    try:
        one = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return before or (UNKNOWN,) * 4
    whole = sum(size_mb(part) for part in closure([name]).values())
    module = reviewed("dependencies.csv")[normal(name)]["module"]
    spent = f"{import_ms(module):,.0f}" if module else UNKNOWN
    return licence_of(name, one), f"{size_mb(one):,.1f}", f"{whole:,.1f}", spent


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_HEAD = """\
# Dependencies

Why each is there, what it costs, its licence, and when the locked version was released. `pyproject.toml` says
what is asked for, `uv.lock` what is locked; `tests/tools/test_supply_chain.py` compares this page with both. What is
installed by default and what by an extra is decided in [ADR 12](adr/0012-extras.md).

Written by `python -m tools.supply_chain.table` on {day} ({machine}): size of the installed files
without compiled copies, alone and with everything that it brings (shared packages count in each row); CPU time of
`import` in a new process, the least of three, with what it imports itself. Packages that are not installed where
the page is written keep the figures of the page before.

| package | for | why | licence | MB | MB with its own | import, ms | locked | released |
|---|---|---|---|---:|---:|---:|---|---|
"""
_TESTS = """
## For tests only

No user installs these, so their licences need not be permissive; programs among them are started, not linked.

| package | why | licence | locked | released |
|---|---|---|---|---|
"""


def page(only: Sequence[str] = ()) -> str:
    """The page, measured here and now; where `only` names packages, the others keep their figures."""
    users, before = shipped(), rows()
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    text = _HEAD.format(day=datetime.now(UTC).date(), machine=machine)
    for name in users:
        shown, extras, why, version, day = known_columns(name)
        measured = _measured(name, before.get(name, ())[3:7], only)
        text += _line([shown, extras, why, *measured, version, day]) + "\n"
    text += _TESTS
    for name in declared():
        if name not in users:
            shown, _, why, version, day = known_columns(name)
            text += (
                _line([shown, why, _measured(name, before.get(name, ())[2:3], only)[0], version, day]) + "\n"
            )
    return text


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--path", default="", help="a site-packages folder with packages that are missing here"
    )
    parser.add_argument("only", nargs="*", metavar="PACKAGE", help="measure these alone")
    given = parser.parse_args()
    if given.path:
        sys.path.append(given.path)
        os.environ["PYTHONPATH"] = given.path
    PAGE.write_text(page(given.only), encoding="utf-8")


if __name__ == "__main__":
    main()
