"""What every test may rely on: no real cloud, no colour, no cache or settings of whoever runs it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from planner.inputs.faults import Source
from solvers.execution.leftover import leave_with
from tests import slow_tests
from tests.draws import register_profiles
from tests.small_catalog import write_small_catalog

register_profiles()
# Going through all objects again and again took a seventh of the suite's CPU time.
gc.set_threshold(50_000, 20, 50)
# Large arrays come and go by the thousand: giving their pages back and taking them again took a twentieth.
with contextlib.suppress(OSError, AttributeError, TypeError):  # the C library of GNU has it
    ctypes.CDLL(None).mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
    ctypes.CDLL(None).mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD

ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AZURE_CLIENT_ID": "testing",
    "AZURE_TENANT_ID": "testing",
    "NO_GCE_CHECK": "true",
    "NO_COLOR": "1",
}
_FOREIGN = (
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CLIENT_SECRET",
    "FORCE_COLOR",
    "COLUMNS",
)


# files whose tests go to one worker, for what each worker would do anew: import the SDKs, parse the source
_TOGETHER = {
    "clouds": (
        "tests/catalogs/providers/",
        "tests/catalogs/test_credentials.py",
        "tests/catalogs/test_quarantine.py",
        "tests/cli/test_live.py",
    ),
    "source": (
        "tests/architecture/test_benchmark_imports.py",
        "tests/architecture/test_caches.py",
        "tests/architecture/test_fuzz_readers.py",
        "tests/architecture/test_house.py",
        "tests/architecture/test_style.py",
    ),
}


@dataclass(frozen=True)
class CliResult:
    """What one run of the program wrote, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def unwrapped(self) -> str:
        """Standard output on one line: where a message is broken depends on the length of a temporary path in it."""
        return " ".join(self.stdout.split())


Run = Callable[..., CliResult]
"""What the fixture `run_cli` gives: the command as a user types it, and what came of it."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let processes started within be ended by Ctrl-C, whatever this process was started with.

    A shell starts a background job with SIGINT ignored, and every process that the job starts inherits that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import test modules from the last on in every second worker.

    Each worker imports all of them, and where they are not compiled yet each compiled all: now the two of a pair meet
    halfway. What cannot be imported is told by the collection that follows.
    """
    if int(getattr(session.config, "workerinput", {}).get("workerid", "gw0")[2:]) % 2:
        paths = {Path(argument.partition("::")[0]).resolve() for argument in session.config.args}
        files = {file for path in paths for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
        for file in sorted(files, reverse=True):
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what lives as long as the session: modules and thousands of tests."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    """Keep pytest's own exit code, whatever a test said a program's would be while a solver is left at work."""
    leave_with(int(exitstatus))


def pytest_configure(config: pytest.Config) -> None:
    """Hand out files in the order of their folders, not those of many tests first, and keep what is compiled.

    The dearest files hold few tests (a law on hundreds of plans each): they came last, and a core waited for one.
    """
    slow_tests.draw_part(config)
    config.pluginmanager.register(slow_tests, "slow-tests")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if os.environ.get("PYTHONDONTWRITEBYTECODE") and hasattr(config, "cache"):
        # It is for the checkout: each process of the tests would compile its imports anew, 25 CPU s in a worker.
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(config.cache.mkdir("bytecode"))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
        del os.environ["PYTHONDONTWRITEBYTECODE"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by file, or by what takes seconds to make ready."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ByFile(LoadFileScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            together = (name for name, places in _TOGETHER.items() if nodeid.startswith(places))
            return next(together, None) or super()._split_scope(nodeid)

        def add_node_collection(self, node: Any, collection: Any) -> None:
            super().add_node_collection(node, collection)
            if node in self.registered_collections:  # each test is looked for in it once
                self.registered_collections[node] = _Indexed(collection)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):  # else it is counted again after every test
                del self.assigned_work[node][scope]

    return ByFile(config, log)


class _Indexed(list[str]):
    """Names of tests whose positions are known."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._at = {name: at for at, name in enumerate(names)}

    def index(self, name: str, *_: Any) -> int:
        return self._at[name]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`, which writes the expected texts instead of comparing with them."""
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")
    slow_tests.add_option(parser)


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file under tests/fixtures/golden: `check_golden("render/x.txt", text)`."""
    folder = ROOT / "tests" / "fixtures" / "golden"

    def check(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        assert path.is_file(), f"no golden file {name}; read the text, then run pytest --update-golden"
        assert text == path.read_bytes().decode()  # bytes: line ends must not be translated

    return check


@pytest.fixture(scope="session", autouse=True)
def base_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of the program under test; the caches live as long as the test session."""
    home = tmp_path_factory.mktemp("home")
    places = {
        "PLANNER_CACHE_DIR": str(home / "cache"),
        "PLANNER_DATA_DIR": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PLANNER_REUSE_ANSWERS": "0",  # each test asks anew
    }
    kept = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
    kept.pop("PYTEST_CURRENT_TEST", None)
    if kept.get("PYTHONDONTWRITEBYTECODE"):
        # it is for the checkout: each program under test would compile three hundred modules anew
        places |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    base = {**kept, **_ENVIRONMENT, **places}
    with _environment(base):
        yield base


def _is_foreign(name: str) -> bool:
    return name in _FOREIGN or name.startswith("PLANNER_")


@contextlib.contextmanager
def _environment(base: dict[str, str]) -> Iterator[None]:
    """Set what differs from `base`, take away what would reach the planner beside it, and put it back at the end."""
    now = dict(os.environ)
    foreign = [name for name in now if name not in base and _is_foreign(name)]
    changed = {name: value for name, value in base.items() if now.get(name) != value}
    for name in foreign:
        del os.environ[name]
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in (*foreign, *changed):
            if name in now:
                os.environ[name] = now[name]
            else:
                os.environ.pop(name, None)


def _of_all_workers(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder that all workers of this run have, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session", autouse=True)
def _read_once(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[set[Path]]:
    """Let tests share what is long to work out, and wait for no disk; the snapshots that are read and checked once.

    Questions about what to buy share what the performance model said (`RememberedShapes`), and all workers the plans
    of `tests.planned_examples`. One fixture, for each costs every test some of its own time.
    """
    from tests.planned_examples import share
    from tests.remembered_shapes import RememberedShapes
    from tests.remembered_snapshots import remembered_snapshots
    from tests.shared_duckdb import shared_duckdb

    share(_of_all_workers(tmp_path_factory, request) / "planned")
    remembered = RememberedShapes()
    with contextlib.ExitStack() as stack:
        # a test ends no machine, so none can tell what lies on its disk: four thousand files, each 5 to 20 ms. A handle
        # that is closed is a fault all the same.
        stack.enter_context(mock.patch("os.fsync", os.fstat))
        for asking in ("candidates.sizes", "calibration.correction"):
            stack.enter_context(mock.patch(f"planner.{asking}.estimate_shapes", remembered))
        stack.enter_context(shared_duckdb(tmp_path_factory.mktemp("duckdb")))
        yield stack.enter_context(remembered_snapshots())


@pytest.fixture
def own_duckdb() -> Iterator[None]:
    """Let each bill of this test have a DuckDB of its own."""
    from tests.shared_duckdb import own_duckdb

    with own_duckdb():
        yield


@pytest.fixture(scope="session")
def small_catalog(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, _read_once: set[Path]
) -> Path:
    """A small part of the bundled catalog, on which tests with the mark `catalog("small")` plan."""
    root = _of_all_workers(tmp_path_factory, request) / "small-catalog"
    if not root.exists():
        written = write_small_catalog(tmp_path_factory.mktemp("small") / "catalog")
        with contextlib.suppress(OSError):  # another worker was first
            written.rename(root)
    _read_once.add(root)
    return root


@pytest.fixture(scope="session")
def _small_data(small_catalog: Path, tmp_path_factory: pytest.TempPathFactory, _read_once: set[Path]) -> Path:
    data = tmp_path_factory.mktemp("small-bundle")
    _read_once.add(Path(shutil.copytree(small_catalog, data / "snapshot")))
    return data


@pytest.fixture
def small_bundle(_small_data: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ship a fifth of the bundled rows with the package, but not in tests that compare with all of them (`bundled`).

    Every refresh reads, merges and stores them, and every catalog with a history has them beside it.
    """
    if "bundled" in request.fixturenames:
        return
    monkeypatch.setattr("catalogs.store.read.DATA_DIRECTORY", _small_data)


def _plans_on_a_part(node: pytest.Item | pytest.Module) -> bool:
    """Whether the mark nearest to a test or module says `catalog("small")`."""
    mark = node.get_closest_marker("catalog")
    return mark is not None and mark.args == ("small",)


@pytest.fixture(scope="module", autouse=True)
def _catalog_of_the_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the module's own fixtures plan on the catalog of its mark."""
    with pytest.MonkeyPatch.context() as patch:
        if _plans_on_a_part(request.node):
            patch.setenv("PLANNER_CATALOG_DIR", str(request.getfixturevalue("small_catalog")))
        yield


@pytest.fixture(autouse=True)
def _sealed_environment(base_environment: dict[str, str], request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test the base environment, whatever its module set, and the catalog of its mark."""
    base = base_environment
    if _plans_on_a_part(request.node):
        base = {**base, "PLANNER_CATALOG_DIR": str(request.getfixturevalue("small_catalog"))}
    with _environment(base):
        yield


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The checkout's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The measured data kept beside the checkout; tests that need it are skipped where it is absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("needs the ../shared data beside the checkout, which is not here")
    return path


@pytest.fixture
def run_cli() -> Run:
    """Run the program in this process: `run_cli("optimize", "w.yaml")`; quick, and a debugger sees inside."""

    def run(*args: str) -> CliResult:
        from planner.cli import main

        with _captured() as (out, err):
            code = main([str(arg) for arg in args])
        return CliResult(code, out.getvalue(), err.getvalue())

    return run


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


@pytest.fixture(scope="session")
def _last_answers() -> dict[bytes, object]:
    return {}


class _Keys(pickle.Pickler):
    """Equal bytes for equal questions, whether a file is read for the first time or from its compiled copy."""

    def persistent_id(self, value: object) -> object:
        """A text that was read, without the places of its values; sets in the order of their values."""
        if isinstance(value, Source):
            return value.name, value.text
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else None


def _key_of(question: object) -> bytes:
    written = io.BytesIO()
    keys = _Keys(written)
    keys.fast = True  # a value that occurs twice is written twice, be it one object or two
    keys.dump(question)
    return written.getvalue()


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch, _last_answers: dict[bytes, object]) -> Callable[..., None]:
    """Let one answer be written in many formats: `asked_once("planner.job.frontier.frontier")`.

    In this test that function answers what it was asked before, by it or a test before it, without a search; modules
    that have imported it by name are named behind it. For tests that look at one answer from many sides: in formats,
    or fact by fact.
    """

    def remember(name: str, *modules: str) -> None:
        module, _, attribute = name.rpartition(".")
        ask = getattr(importlib.import_module(module), attribute)

        def answer(*args: object, **given: object) -> object:
            catalog = os.environ.get("PLANNER_CATALOG_DIR")
            said = {k: v for k, v in given.items() if k not in ("progress", "stage") and v is not None}
            key = _key_of((name, catalog, args, said))
            if key not in _last_answers:
                while len(_last_answers) > 5:  # answers are large
                    del _last_answers[next(iter(_last_answers))]
                _last_answers[key] = ask(*args, **given)
            return _last_answers[key]

        for place in (module, *modules):
            monkeypatch.setattr(f"{place}.{attribute}", answer)

    return remember


@pytest.fixture
def run_process(base_environment: dict[str, str], tmp_path: Path) -> Callable[..., CliResult]:
    """Run the program in a process of its own: `run_process("--help")`; for start-up, pipes and exit codes.

    It starts in the checkout's root unless `cwd` says otherwise, in the test's environment; `env` adds to that.
    """

    def run(
        *args: str,
        cwd: Path = ROOT,
        env: dict[str, str] | None = None,
        timeout_s: float = 600,
        python: bool = False,
    ) -> CliResult:
        command = [sys.executable, *([] if python else ["-m", "planner"]), *map(str, args)]
        path = os.pathsep.join([str(ROOT), base_environment.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        done = subprocess.run(  # nothing is expanded by a shell
            command,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        out, err = (raw.decode("utf-8", "backslashreplace") for raw in (done.stdout, done.stderr))
        return CliResult(done.returncode, out, err)

    return run


@pytest.fixture(scope="module")
def one_bill() -> Iterator[None]:
    """Each bill is opened once, by whatever command of the module: what is reviewed of it is not kept."""
    from tests.one_bill import opened_once

    with opened_once():
        yield
