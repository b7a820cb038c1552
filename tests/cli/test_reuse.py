"""`planner optimize` asked again: the kept answer is shown to the byte, and no change of its inputs is missed.

Processes of their own, for only those keep answers. Where two took the same seconds to the last digit, one was looked
up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.forked_program import Forks, forks

pytestmark = pytest.mark.catalog("small")
DAY = ("--as-of", "2026-11-22")


@dataclass
class Desk:
    """A folder with a workload, and a cache of its own."""

    folder: Path
    forks: Forks

    def environment(self) -> dict[str, str]:
        """That of the program there."""
        return {
            **os.environ,
            "PLANNER_REUSE_ANSWERS": "",
            "PLANNER_CACHE_DIR": str(self.folder.parent / "cache"),
            "PLANNER_DATA_DIR": str(self.folder.parent / "data"),
            "PYTHONPATH": str(ROOT),
        }

    def start(self, *arguments: str, python: tuple[str, ...] = ("-m", "planner")) -> subprocess.Popen[bytes]:
        """Start the program there, from nothing."""
        return subprocess.Popen(
            [sys.executable, *python, *arguments],
            cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str, stdin: bytes = b"", code: int = 0, before: str = "") -> bytes:
        """What the program writes; `before`: Python to be run in its process first."""
        done = self.forks.run(arguments, cwd=self.folder, env=self.environment(), stdin=stdin, code=before)
        assert done.returncode == code, done.stderr.decode()
        return done.stdout

    def errors(self, *arguments: str) -> bytes:
        """What the program says of a wrong question."""
        done = self.forks.run(arguments, cwd=self.folder, env=self.environment())
        assert done.returncode == 2, done.stderr.decode()
        return done.stderr

    def seconds(self, *arguments: str, workload: str = "w.yaml", **more: Any) -> float:
        """How long the search took whose answer is shown."""
        out = self.run("optimize", workload, *DAY, "-o", "json", *arguments, **more)
        return float(json.loads(out)["proof"]["seconds"])

    def kept(self) -> list[dict[str, Any]]:
        """What lies in the cache."""
        files = (self.folder.parent / "cache").glob("answer-*")
        return [json.loads(file.read_bytes()[32:]) for file in files]


@pytest.fixture(scope="module")
def program(small_catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Forks of one that has answered a question, of other files than any test reads."""
    folder = tmp_path_factory.mktemp("first")
    shutil.copytree(small_catalog, folder / "catalog")
    workload = str(shutil.copy(ROOT / "examples" / "resnet50-imagenet.yaml", folder))
    with forks(("optimize", workload, *DAY), {"PLANNER_CATALOG_DIR": str(folder / "catalog")}) as program:
        yield program


@pytest.fixture
def desk(tmp_path: Path, program: Forks) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    (tmp_path / "cache").mkdir()
    text = (ROOT / "examples" / "resnet50-imagenet.yaml").read_text(encoding="utf-8")
    assert "constraints:" in text.split("\n\n")[-1]
    (folder / "w.yaml").write_text(
        f"{text}  providers: [gcp]\n", encoding="utf-8"
    )  # few offers are soon compared
    time.sleep(0.05)  # nothing is kept of files that changed within the last 20 ms
    return Desk(folder, program)


def test_formats_of_one_answer_are_those_of_a_fresh_one(desk: Desk) -> None:
    asked = ("optimize", "w.yaml", *DAY, "--reproducible")
    desk.run(*asked)
    for shown in (("-o", "table"), ("-o", "json"), ("-o", "yaml"), ("-o", "csv"), ("--details", "cost")):
        assert desk.run(*asked, *shown) == desk.run(*asked, *shown, "--reuse-answers", "0")
    assert len(desk.kept()) == 1
    desk.run(*asked, "-o", "json", "--out", "kept.json")
    desk.run(*asked, "-o", "json", "--out", "fresh.json", "--reuse-answers", "0")
    assert (desk.folder / "kept.json").read_bytes() == (desk.folder / "fresh.json").read_bytes()


def test_a_question_of_now_is_asked_again_without_numpy(desk: Desk) -> None:
    first, _ = desk.start("optimize", "w.yaml").communicate()
    process = desk.start("optimize", "w.yaml", python=("-X", "importtime", "-m", "planner"))
    out, said = process.communicate()
    assert out == first
    names = {line.rpartition(b"|")[2].strip().decode() for line in said.splitlines()}
    assert "planner.plan.report" in names
    unused = ("numpy", "yaml", "pydantic", "planner.candidates", "planner.inputs.load", "planner.job")
    assert names.isdisjoint(unused)


# the program at a minute past eleven
AT = """
from datetime import UTC, datetime
import planner.asked.options as options
options.utc_now = lambda: datetime(2026, 11, 22, 11, {}, tzinfo=UTC)
"""


def test_a_session_of_commands_asks_the_same_minute(desk: Desk) -> None:
    def ask(minute: int, *shown: str) -> str:
        return desk.run("optimize", "w.yaml", *shown, before=AT.format(minute)).decode()

    first = json.loads(ask(6, "-o", "json"))
    assert first["created_at"].startswith("2026-11-22T11:06")
    assert json.loads(ask(11, "-o", "json")) == first
    page = ask(11, "-o", "html")  # worked out, for its sliders
    assert "11:06" in page
    assert "11:11" not in page
    assert json.loads(ask(12, "-o", "json"))["created_at"].startswith("2026-11-22T11:12")
    assert json.loads(ask(11, "-o", "json"))["created_at"].startswith("2026-11-22T11:11"), "a clock set back"


def test_what_does_not_fit_is_kept_with_its_exit_code(desk: Desk) -> None:
    asked = ("optimize", "w.yaml", *DAY, "--set", "constraints.deadline=10min", "-o", "json")
    assert desk.run(*asked, code=3) == desk.run(*asked, code=3)


def _edit(folder: Path) -> None:
    file = folder / "w.yaml"
    text = file.read_text()
    file.write_text(text.replace("epochs: 90", "epochs: 91"))
    assert file.stat().st_size == len(text.encode()), "no longer than before"


def _calibrate(folder: Path) -> None:
    (folder.parent / "data" / "calibrations").mkdir(parents=True)


def _set(folder: Path) -> None:
    (folder / "planner.toml").write_text("max_results = 3\n")


@pytest.mark.parametrize("change", [_edit, _calibrate, _set])
def test_a_change_asks_anew(desk: Desk, change: Callable[[Path], None]) -> None:
    first = desk.seconds()
    assert desk.seconds() == first
    change(desk.folder)
    second = desk.seconds()
    assert second != first
    time.sleep(0.05)
    third = desk.seconds()
    assert desk.seconds() == third


def test_prices_that_were_refreshed_are_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_CATALOG_DIR")  # a folder that is named is used alone
    first = desk.seconds()
    assert desk.seconds() == first
    (desk.folder.parent / "data" / "catalog" / "aws").mkdir(parents=True)
    assert desk.seconds() != first


def test_files_that_the_workload_names_are_read_again(desk: Desk) -> None:
    for name in ("onprem-comparison.yaml", "onprem-machines.yaml"):
        shutil.copy(ROOT / "examples" / name, desk.folder)
    time.sleep(0.05)
    first = desk.seconds(workload="onprem-comparison.yaml")
    assert desk.seconds(workload="onprem-comparison.yaml") == first
    with (desk.folder / "onprem-machines.yaml").open("a") as file:
        file.write("# another price\n")
    assert desk.seconds(workload="onprem-comparison.yaml") != first


def test_the_clock_and_other_options(desk: Desk) -> None:
    first = desk.seconds()
    assert desk.seconds("--reuse-answers", "1h") == first
    assert json.loads(desk.run("optimize", "w.yaml", "--reuse-answers", "9" * 30 + "h", "-o", "json"))[
        "lines"
    ]
    assert b"is not a duration" in desk.errors("optimize", "w.yaml", "--reuse-answers", "soon")
    assert desk.seconds("--reuse-answers", "0") != first
    assert desk.seconds("--max-results", "3") != first
    assert desk.seconds("--no-calibration") != first
    assert desk.seconds() == first


def test_standard_input_is_read_each_time(desk: Desk) -> None:
    text = (desk.folder / "w.yaml").read_bytes()
    assert desk.seconds(workload="-", stdin=text) != desk.seconds(workload="-", stdin=text)
    assert desk.kept() == []


def test_standard_input_that_the_workload_names_is_read_each_time(desk: Desk) -> None:
    text = (ROOT / "examples" / "llama-3-8b.yaml").read_text()
    assert "preset: llama-3-8b" in text
    (desk.folder / "w.yaml").write_text(text.replace("preset: llama-3-8b", "config: '-'"))
    sizes = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    }  # fmt: skip
    large, small = (json.dumps({**sizes, "num_hidden_layers": layers}).encode() for layers in (32, 8))
    time.sleep(0.05)
    assert desk.seconds(stdin=large) != desk.seconds(stdin=small)
    assert desk.kept() == []


def test_own_prices_that_lie_up_behind_a_link_are_read_again(desk: Desk) -> None:
    """The folder of the workload is a link, and the prices lie beside what it leads to."""
    real = desk.folder.parent / "real" / "job"
    real.mkdir(parents=True)
    text = (ROOT / "examples" / "onprem-comparison.yaml").read_text()
    (real / "w.yaml").write_text(text.replace("onprem-machines.yaml", "../onprem-machines.yaml"))
    shutil.copy(ROOT / "examples" / "onprem-machines.yaml", real.parent)
    (desk.folder / "job").symlink_to(real)
    time.sleep(0.05)
    first = desk.seconds(workload="job/w.yaml")
    assert desk.seconds(workload="job/w.yaml") == first
    with (real.parent / "onprem-machines.yaml").open("a") as file:
        file.write("# another price\n")
    assert desk.seconds(workload="job/w.yaml") != first


def test_a_duration_beyond_the_calendar_is_no_error(desk: Desk) -> None:
    desk.run("optimize", "w.yaml", "--reuse-answers", "99999999999999999999h")


def test_two_programs_at_once(desk: Desk) -> None:
    asked = ("optimize", "w.yaml", *DAY, "-o", "json")
    both = [desk.start(*asked) for _ in range(2)]
    answers = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert desk.start(*asked).communicate()[0] in answers


def test_commands_run_by_another_process_keep_nothing(desk: Desk) -> None:
    code = "import sys; from planner.cli import main; sys.exit(main(sys.argv[1:]))"
    process = desk.start("optimize", "w.yaml", *DAY, python=("-c", code))
    process.communicate()
    assert process.returncode == 0
    assert desk.kept() == []


# Python reports what is opened and listed; what is only looked for is seen here by the function that all looks end in.
LOOKED = """
import os, sys
seen, look = set(), os.stat
def stat(path, *more, **named):
    if not isinstance(path, int):
        seen.add(os.path.abspath(os.fsdecode(path)))
    return look(path, *more, **named)
import planner.workloads.kept as kept
keep = kept.KeptAnswer.keep
def watched(self, *more):
    os.stat = look
    keep(self, *more)
    print(*sorted(seen), sep="\\n", file=sys.stderr)
kept.KeptAnswer.keep = watched
asked = kept.KeptAnswer.__init__
def begun(self, *more):
    asked(self, *more)
    os.stat = stat
kept.KeptAnswer.__init__ = begun
from planner.cli import main
sys.argv = ["planner", *sys.argv[1:]]
sys.exit(main())
"""


def test_nothing_is_looked_for_that_is_not_noted(desk: Desk) -> None:
    process = desk.start("optimize", "w.yaml", *DAY, python=("-c", LOOKED))
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    (answer,) = desk.kept()
    of_python = (sys.prefix, sys.base_prefix, str(Path(os.__file__).parent), str(ROOT / "planner"))
    known = (*of_python, str(ROOT / "catalogs"), str(ROOT / "solvers"), str(desk.folder.parent / "cache"))
    looked = {path for path in said.decode().splitlines() if path.startswith("/")}
    noted: dict[str, str] = answer["read"]
    unknown = {path for path in looked if not path.startswith(known) and path not in noted}
    unknown.discard(str(ROOT))  # where modules are looked for
    assert {
        path for path in unknown if not noted.get(str(Path(path).parent), "").startswith("folder")
    } == set()
    assert str(desk.folder.parent / "data" / "calibrations") in looked & noted.keys()
