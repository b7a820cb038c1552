"""What a start imports: help needs click alone, a single training job numpy but no heavier library.

Milliseconds differ from machine to machine and are measured by `python -m benchmarks.startup`; what must not come
back is held here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.modules import ROOT

SDKS = {"boto3", "botocore", "google", "azure"}
HEAVY = {"pandas", "scipy", "matplotlib", "plotly", "highspy", "pint", *SDKS}
NOT_FOR_HELP = {
    *HEAVY,
    "numpy",
    "pydantic",
    "rich",
    "yaml",
    "requests",
    "platformdirs",
    "catalogs",
    "solvers",
}


def _modules(*args: str, **more: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "planner", *args],
        cwd=ROOT,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def _packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, base_environment: dict[str, str]
) -> dict[str, tuple[set[str], set[str]]]:
    """Modules of a first and of a second run on the same file, by format."""
    made = {}
    # without an option: click itself needs difflib for "-o"
    for fmt, option in (("table", ()), ("json", ("-o", "json"))):
        cache = str(tmp_path_factory.mktemp("cache"))
        arguments = ("optimize", "examples/llama-3-8b.yaml", *option)
        environment = base_environment | {"PLANNER_CACHE_DIR": cache}
        made[fmt] = _modules(*arguments, **environment), _modules(*arguments, **environment)
    return made


@pytest.mark.parametrize("args", [("--help",), ("--version",)])
def test_help_imports_click_and_nothing_heavier(args: tuple[str, ...]) -> None:
    imported = _packages(_modules(*args))
    assert "click" in imported
    assert imported & NOT_FOR_HELP == set()


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_a_second_run_on_the_same_file_needs_neither_pydantic_nor_yaml(
    fmt: str, runs: dict[str, tuple[set[str], set[str]]]
) -> None:
    first, again = map(_packages, runs[fmt])
    assert "yaml" in first, "a first run reads the file itself"
    assert "pydantic" not in first, "a valid file needs no models"
    assert "numpy" in again
    assert again & {*HEAVY, "rich", "requests", "pydantic", "pydantic_core", "yaml"} == set()


# Modules that a plan of one job has no use for; each took milliseconds until it was imported where it is used.
IDLE = {
    *("difflib", "statistics", "platformdirs", "importlib.metadata", "email.message", "numpy.polynomial"),
    *(
        "planner.fleet.answer",
        "planner.job.milp",
        "planner.units",
        "planner.inputs.schema",
        "planner.inputs.yaml12",
    ),
    *(
        "planner.render.json",
        "planner.render.csv",
        "planner.render.md",
        "catalogs.offers.query",
        "catalogs.offers.overlays",
    ),
}


def test_a_second_run_imports_nothing_that_it_does_not_use(
    runs: dict[str, tuple[set[str], set[str]]],
) -> None:
    modules = runs["table"][1]
    assert "planner.workloads.answer" in modules
    assert modules & IDLE == set()


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_a_single_training_job_needs_no_heavy_library(
    fmt: str, runs: dict[str, tuple[set[str], set[str]]]
) -> None:
    for modules in runs[fmt]:
        assert "numpy" in modules
        assert _packages(modules) & {*HEAVY, "rich", "requests"} == set()


@pytest.mark.parametrize("option", [(), ("-o", "json")], ids=["table", "json"])
def test_an_answer_shown_again_needs_no_numpy(
    option: tuple[str, ...], tmp_path: Path, base_environment: dict[str, str]
) -> None:
    """Where nothing changed, the saved plan is read and shown: no offers, nothing to compute."""
    kept = {"PLANNER_CACHE_DIR": str(tmp_path), "PLANNER_REUSE_ANSWERS": ""}
    arguments = ("optimize", "examples/bert-large.yaml", *option)
    first, again = (_modules(*arguments, **base_environment | kept) for _ in range(2))
    assert "planner.workloads.answer" in first and "planner.workloads.answer" not in again
    assert _packages(again) & {*HEAVY, "numpy", "solvers", "rich", "requests", "pydantic", "yaml"} == set()


ENDING = """
import atexit, sys, threading, time
from planner import cli
from planner.commands import optimize
class Held:
    def __del__(self): print("taken down")
held = Held()
cli._main = lambda args: (atexit.register(print, "exit function"), LATE, 3)[-1]
sys.exit(cli.main(ARGS))
"""


@pytest.mark.parametrize(
    ("late", "args", "said"),
    [
        ("None", "None", "exit function\n"),
        ("None", "[]", "exit function\ntaken down\n"),
        (
            "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()",
            "None",
            "thread\nexit function\n",
        ),
        ("sys.modules.update(duckdb=sys)", "None", "exit function\ntaken down\n"),
    ],
    ids=["program", "library", "thread", "files"],
)
def test_the_program_ends_after_its_exit_functions_and_takes_no_object_down(
    late: str, args: str, said: str
) -> None:
    code = ENDING.replace("LATE", late).replace("ARGS", args)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, said, "")
