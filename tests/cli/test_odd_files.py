"""Whatever a user may name, a pipe that nobody writes to is left: every argument, option and key that names a file.

`PLANNER_ODD_FILES=pipe,device,sparse,folder` tries other things at all these places, too.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest
import yaml

from planner.cli import root
from planner.files import limited
from planner.workloads.sweeps.cells import digest_of_file
from tests.cli.every_command import every_command
from tests.conftest import ROOT, CliResult
from tests.planned_examples import plan_of

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
KINDS = os.environ.get("PLANNER_ODD_FILES", "pipe").split(",")
EXAMPLES = ROOT / "examples"
BERT = "EX/bert-large.yaml"
DAILY = ("--daily", "EX/daily-costs.csv")
EUROS = ("--in", "EUR")
DAY = ("--as-of", "2026-11-20")
STATE = ("--state", "EX/spot-state.json")
NOT_READ = {
    "--out", "--output", "--certificate", "--write", "--owned", "--table", "--plots", "--results", "--parts",
    "--measurements", "file of catalog keygen", "--folder", "--record", "--spot-evidence of verify",
}  # fmt: skip
PLACES = ("odd", "/dev/zero", "cube", "signed", "no workload in")  # what a message may name
# command and parameter: arguments, FILE the odd file, PLAN a saved plan, BILL a bill
NAMED: dict[tuple[str, str], tuple[str, ...]] = {
    ("init", "more"): ("init", "FILE.yaml"),
    ("init", "--from"): ("init", "--from", "FILE.json"),
    ("init", "--model-config"): ("init", "--model-config", "FILE.json"),
    ("validate", "file"): ("validate", "FILE.yaml"),
    ("optimize", "workload"): ("optimize", "FILE.yaml"),
    ("optimize", "--spot-evidence"): ("optimize", BERT, *DAY, "--spot-evidence", "FILE.csv"),
    ("estimate", "workload"): ("estimate", "FILE.yaml", "--instance-type", "p4d.24xlarge"),
    ("portfolio", "jobs"): ("portfolio", "FILE.yaml"),
    ("calibrate", "workload"): ("calibrate", "FILE.yaml", "EX/daily-costs.csv"),
    ("calibrate", "log"): ("calibrate", BERT, "FILE.csv", "--instance-type", "p4d.24xlarge"),
    ("verify", "answer"): ("verify", "FILE.json"),
    ("verify", "--bill"): ("verify", "COMMIT", "--bill", "FILE.csv"),
    ("verify", "--workload"): ("verify", "PLAN", "--workload", "FILE.yaml"),
    ("export", "plan"): ("export", "FILE.json", "--to", "torchrun"),
    ("explain", "workload"): ("explain", "FILE.yaml"),
    ("frontier", "workload"): ("frontier", "FILE.yaml"),
    ("compare", "workload"): ("compare", "FILE.yaml"),
    ("whatif", "workload"): ("whatif", "FILE.yaml", "--set", "constraints.max_nodes=2"),
    ("sweep", "files"): ("sweep", "FILE.yaml", "--results", "results.csv"),
    ("diff", "files"): ("diff", "PLAN", "FILE.json"),
    ("commit", "question"): ("commit", "FILE.yaml"),
    ("commit", "--from-focus"): ("commit", "--from-focus", "FILE.csv"),
    ("commit", "--map-file"): ("commit", "--from-focus", "BILL", "--map-file", "FILE.csv"),
    ("tco", "file"): ("tco", "FILE.yaml"),
    ("pipeline", "pipeline"): ("pipeline", "FILE.yaml"),
    ("pools", "workload"): ("pools", "FILE.yaml"),
    ("serving", "serving"): ("serving", "FILE.yaml"),
    ("schedule", "schedule"): ("schedule", "FILE.yaml"),
    ("advise", "plan"): ("advise", "FILE.json", *STATE),
    ("advise", "--state"): ("advise", "PLAN", "--state", "FILE.yaml"),
    ("advise", "--workload"): ("advise", "PLAN", *STATE, "--workload", "FILE.yaml"),
    ("advise", "--spot-evidence"): ("advise", "PLAN", *STATE, "--spot-evidence", "FILE.csv"),
    ("track", "plan"): ("track", "FILE.json"),
    ("track", "--log"): ("track", "PLAN", "--log", "FILE.csv"),
    ("track", "--workload"): ("track", "PLAN", "--log", "LOG", "--replan", "--workload", "FILE.yaml"),
    ("track", "--bill"): ("track", "PLAN", "--log", "LOG", "--bill", "FILE.csv"),
    ("diagnose", "log"): ("diagnose", "FILE.csv"),
    ("simulate", "workloads"): ("simulate", "FILE.yaml"),
    ("simulate", "--traces"): ("simulate", BERT, "--traces", "FILE.csv"),
    ("simulate", "--sweep"): ("simulate", "--sweep", "FILE.yaml"),
    ("simulate", "--spot-evidence"): ("simulate", BERT, "--spot-evidence", "FILE.csv"),
    ("forecast", "more"): ("forecast", "FILE.csv"),
    ("forecast", "--focus"): ("forecast", "--focus", "FILE.csv.gz"),
    ("forecast", "--map-file"): ("forecast", "--focus", "BILL", "--map-file", "FILE.csv"),
    ("forecast", "--rates"): ("forecast", "--focus", "BILL", *EUROS, "--rates", "FILE.csv"),
    ("forecast", "--daily"): ("forecast", "--daily", "FILE.csv"),
    ("forecast", "--plans"): ("forecast", *DAILY, "--plans", "FILE.json"),
    ("forecast", "--vintages"): ("forecast", "--focus", "BILL", "--vintages", "FILE.csv"),
    ("budget", "paths"): ("budget", "FILE.yaml", *DAILY),
    ("budget", "--focus"): ("budget", "budgets.yaml", "--focus", "FILE.csv"),
    ("budget", "--map-file"): ("budget", "budgets.yaml", "--focus", "BILL", "--map-file", "FILE.csv"),
    ("budget", "--rates"): ("budget", "budgets.yaml", "--focus", "BILL", *EUROS, "--rates", "FILE.csv"),
    ("budget", "--plans"): ("budget", "EX/budgets.yaml", *DAILY, "--plans", "FILE.json"),
    ("budget", "--daily"): ("budget", "EX/budgets.yaml", "--daily", "FILE.csv"),
    ("review", "more"): ("review", "FILE.csv"),
    ("review", "--focus"): ("review", "--focus", "FILE.parquet"),
    ("review", "--map-file"): ("review", "--focus", "BILL", "--map-file", "FILE.csv"),
    ("review", "--budgets"): ("review", "--focus", "BILL", "--budgets", "FILE.yaml"),
    ("review", "--utilisation"): ("review", "--focus", "BILL", "--utilisation", "FILE.csv"),
    ("review", "--showback"): ("review", "--focus", "BILL", "--showback", "FILE.yaml"),
    ("review", "--usage"): ("review", "--focus", "BILL", "--usage", "FILE.csv"),
    ("review", "--vintages"): ("review", "--focus", "BILL", "--vintages", "FILE.csv"),
    ("review", "--rates"): ("review", "--focus", "BILL", *EUROS, "--rates", "FILE.csv"),
    ("review", "--plans"): ("review", "--focus", "BILL", "--plans", "FILE.json"),
    ("catalog sign", "--key"): ("catalog", "sign", "--key", "FILE.pem", "--out", "signed"),
    ("catalog verify", "directory"): ("catalog", "verify", "FILE", "--key", "FILE.pem"),
    ("catalog verify", "--key"): ("catalog", "verify", "signed", "--key", "FILE.pem"),
    ("review", "--ledger"): ("review", "--focus", "BILL", "--ledger", "FILE.json"),
    ("review", "--cube"): ("review", "--cube", "CUBE"),
}
# a file of the examples, the key in it, what stands there, and the command
KEYS: tuple[tuple[str, tuple[str | int, ...], Any, str], ...] = (
    ("bert-large.yaml", ("prices", "offers"), ["FILE.yaml"], "optimize"),
    ("bert-large.yaml", ("storage", "fio"), "FILE.json", "optimize"),
    ("bert-large.yaml", ("spot", "evidence"), ["FILE.csv"], "optimize"),
    ("bert-large.yaml", ("constraints", "waiting_records"), ["FILE.csv"], "optimize"),
    ("bert-large.yaml", ("model",), {"config": "FILE.json"}, "optimize"),
    ("portfolio.yaml", ("jobs", 0, "workload"), "FILE.yaml", "portfolio"),
    ("portfolio.yaml", ("jobs_csv",), "FILE.csv", "portfolio"),
    ("portfolio.yaml", ("candidates_csv",), "FILE.csv", "portfolio"),
    ("pipeline.yaml", ("tasks", 0), {"name": "prepare", "workload": "FILE.yaml"}, "pipeline"),
    ("serving.yaml", ("speeds_csv",), "FILE.csv", "serving"),
    ("schedule.yaml", ("forecast_csv",), "FILE.csv", "schedule"),
    ("commit.yaml", ("demand", "file"), "FILE.csv", "commit"),
    ("commit.yaml", ("demand",), {"file": "FILE.csv", "format": "focus"}, "commit"),
    ("commit.yaml", ("scenarios",), {"file": "FILE.csv"}, "commit"),
    ("tco-8xh100.yaml", ("workload",), "FILE.yaml", "tco"),
    ("sweep.yaml", ("workloads",), ["FILE.yaml"], "sweep"),
)


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pipe is left at once, and what opens one without asking ends with an error."""

    def late(_number: int, _frame: FrameType | None) -> None:
        pytest.fail("waits for the file for ever")

    monkeypatch.setattr(limited, "PIPE_WAIT_S", 0.01)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, a bill and a log."""
    folder = tmp_path_factory.mktemp("saved")
    plan_of("bert-large").save(folder / "spot.json")
    bill = gzip.decompress((EXAMPLES / "focus" / "bill-2026-10.csv.gz").read_bytes())
    (folder / "bill.csv").write_bytes(b"".join(bill.splitlines(keepends=True)[:400]))
    of_bill = {"break_evens": [], "catalog": [], "bill": {"currency": None, "seed": 1, "expires": []}}
    (folder / "commit.json").write_text(json.dumps(of_bill), "utf-8")
    (folder / "log.csv").write_text("step,time\n" + "".join(f"{n},{n * 2}\n" for n in range(50)), "utf-8")
    return folder


def odd(kind: str, path: Path) -> None:
    """Put something odd there."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    else:
        path.mkdir()


def words(arguments: tuple[str, ...], saved: Path, folder: Path, kind: str) -> list[str]:
    """The arguments with real paths; every FILE is made."""
    files = {"PLAN": "spot.json", "BILL": "bill.csv", "LOG": "log.csv", "COMMIT": "commit.json"}
    known = {word: saved / name for word, name in files.items()}
    made = []
    for word in arguments:
        if word.startswith("FILE"):
            path = folder / word.replace("FILE", "odd")
            if not path.is_symlink() and not path.exists():
                odd(kind, path)
            made.append(str(path))
        elif word == "CUBE":
            (folder / "cube").mkdir()
            odd(kind, folder / "cube" / "cube-manifest.json")
            made.append(str(folder / "cube"))
        else:
            made.append(str(known.get(word, word.replace("EX", str(EXAMPLES)))))
    return made


def parameters() -> Iterator[tuple[str, str]]:
    """Every parameter of every command that names a file."""
    single = ((name, one) for name, one in every_command(root) if not isinstance(one, click.Group))
    for name, parameter in ((name, parameter) for name, one in single for parameter in one.params):
        files = isinstance(parameter.type, click.Path) or "PATH" in (parameter.metavar or "")
        if files or "FILE" in (parameter.metavar or "") or parameter.name == "plans":
            yield name, max(parameter.opts, key=len)


def test_every_file_that_a_command_may_name_is_tried() -> None:
    unknown = {
        (command, parameter)
        for command, parameter in parameters()
        if (command, parameter) not in NAMED and not {parameter, f"{parameter} of {command}"} & NOT_READ
    }
    assert not unknown, "add the parameter to NAMED, or to NOT_READ where nothing is read from it"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", NAMED, ids=" ".join)
def test_what_is_no_file_is_refused(
    named: tuple[str, str],
    kind: str,
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., CliResult],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "budgets.yaml").write_text(
        "version: 1\nkind: budget\nbudgets: [{name: all, amount: 10, period: month}]\n", "utf-8"
    )
    done = run_cli(*words(NAMED[named], saved, tmp_path, kind))
    assert done.code == 2, done.stderr
    assert any(name in done.stderr for name in PLACES), done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("example", "at", "value", "command"), KEYS, ids=[str(key[1][-1]) for key in KEYS])
def test_what_is_no_file_is_refused_where_a_key_names_it(
    example: str,
    at: tuple[str | int, ...],
    value: Any,
    command: str,
    kind: str,
    saved: Path,
    tmp_path: Path,
    run_cli: Callable[..., CliResult],
) -> None:
    document = yaml.safe_load((EXAMPLES / example).read_text(encoding="utf-8"))
    part = document
    for step in at[:-1]:
        part = part.setdefault(step, {}) if isinstance(part, dict) else part[step]
    part[at[-1]] = yaml.safe_load(yaml.dump(value).replace("FILE", "odd"))  # beside the file
    for other in EXAMPLES.glob("*.yaml"):
        (tmp_path / other.name).symlink_to(other)
    path = tmp_path / "asked.yaml"
    path.write_text(yaml.dump(document), encoding="utf-8")
    name = next(word for word in ("FILE.yaml", "FILE.json", "FILE.csv") if word in str(value))
    words((name,), saved, tmp_path, kind)
    more = ("--results", str(tmp_path / "results.csv")) if command == "sweep" else ()
    done = run_cli(command, str(path), *more)
    assert done.code == 2 and any(name in done.stderr for name in PLACES), done.stderr


def test_a_sweep_leaves_records_that_are_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "odd.csv")
    assert digest_of_file(tmp_path / "odd.csv") == ""
