"""`python -m benchmarks.kills --n 500 --seed 1`: writing commands ended at random moments.

Each run is a process of its own (forked, so that it begins with its modules loaded) that is sent SIGKILL, SIGTERM,
SIGHUP or SIGINT between its first and its last moment; one in ten meets a clock that jumps by days and years
(`time.time`, or `datetime.now` too), one in ten has a second process at the same files. Afterwards each file is the old
or the new one, compiled copies included; after all signals but SIGKILL no temporary is left, and after SIGKILL the next
run removes it; the next run succeeds. What is said of today may differ where today jumps: there names and exit codes
are compared. Threads of DuckDB do not survive a fork: commands that use it begin anew.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.file_faults import (
    NAMED,
    ROOT,
    WRITINGS,
    Files,
    Writing,
    files,
    filled,
    fresh,
    inputs_in,
    planner,
    refresh,
    stored_version,
)

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SPAWNED = frozenset({"review", "ledger", "cube"})  # of DuckDB; a process of their own takes a second to begin
SELDOM = 3  # they are drawn once in so many times
ANSWERED_EARLY = frozenset({"commit.json", "proof.json"})  # `planner commit` writes its best answer at Ctrl-C
DAY_S = 86_400.0
ENDED = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
LATEST_S = 300.0  # by the clock, on a busy machine


@dataclass(frozen=True)
class Known:
    """What a command leaves when nothing happens: files before and after, compiled copies, exit code, time in s."""

    old: Files
    good: Files
    copies: Files
    code: int
    lasts_s: float


def started(
    writing: Writing, run: Path, inputs: Path, clock: random.Random | None = None, *, calendar: bool = False
) -> int:
    """Begin a command in a process of its own, by a clock that jumps if given; returns its number."""
    if writing.name not in SPAWNED:
        times = contextlib.nullcontext() if clock is None else odd_times(clock, calendar=calendar)
        return forked(lambda: planner(writing.arguments, run, inputs)[0], times=times)
    words = filled(writing.arguments, run, inputs)
    program = "import sys; from benchmarks.kills import run_at_odd_times as at; sys.exit(at(*sys.argv[1:]))"
    odd = ("-c", program, str(clock.random()), str(calendar)) if clock else ()
    begin = odd or ("-m", "planner")
    return os.posix_spawn(
        sys.executable,
        (sys.executable, *begin, *words),
        {**os.environ, "PYTHONPATH": str(ROOT)},
        file_actions=[(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)],
    )


def run_at_odd_times(seed: str, calendar: str, *words: str) -> int:
    """Run a command in this process by a clock that jumps."""
    import duckdb

    from planner.cli import main

    # In C both take hold of the class of moments when they are loaded or first used: of no other than the real one.
    importlib.import_module("pandas")
    duckdb.execute("SELECT DATE '2026-11-20', TIMESTAMP '2026-11-20'").fetchall()
    with odd_times(random.Random(seed), calendar=calendar == "True"):
        return main(list(words))


def forked(do: Callable[[], int], *, times: contextlib.AbstractContextManager[None] | None = None) -> int:
    """Run in a child of this process; returns its number. Its exit code is what `do` returns, 99 for an exception."""
    # A signal waits until the child can end by it: in `fork` it would raise in a copy of this program.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDED)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        with times or contextlib.nullcontext():
            code = do()
    except KeyboardInterrupt:  # before or after the command's own handler
        code = ENDED[signal.SIGINT]
    finally:
        os._exit(code)


@contextlib.contextmanager
def odd_times(draw: random.Random, *, calendar: bool) -> Iterator[None]:
    """Let `time.time` jump, and `datetime.now` as well if so asked."""
    jumping = _jumping(draw)
    with mock.patch("time.time", jumping), odd_calendar(jumping) if calendar else contextlib.nullcontext():
        yield


class _Calendar(type):
    """The class `datetime`, but that its `now` follows another clock; what it makes are plain moments."""

    clock: Callable[[], float] = time.time

    def __call__(cls, *args: Any, **given: Any) -> Any:
        return datetime(*args, **given)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)

    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.fromtimestamp(cls.clock(), tz)


@contextlib.contextmanager
def odd_calendar(clock: Callable[[], float]) -> Iterator[None]:
    """Put a calendar that follows `clock` in the place of `datetime` in all modules of ours, loaded or not."""
    calendar = _Calendar("datetime", (datetime,), {})
    calendar.clock = clock
    with contextlib.ExitStack() as patched:
        patched.enter_context(mock.patch("datetime.datetime", calendar))
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("planner", "catalogs") and vars(module).get("datetime") is datetime:
                patched.enter_context(mock.patch.object(module, "datetime", calendar))
        yield


def _jumping(draw: random.Random) -> Callable[[], float]:
    real = time.time
    return lambda: real() + draw.choice((0.0, -1.0, 3600.0, -DAY_S, -400 * DAY_S, 4000 * DAY_S))


def copies(run: Path) -> Files:
    """Compiled copies of a run's folder that do not hold the moment of a question; parts of copies too."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted((run / "cache").rglob("*"))
        if path.is_file() and not path.name.startswith("answer-") and path.suffix != ".lock"
    }


def ended(child: int) -> int:
    """The exit code of a child, -n where signal n ended it; one that hangs is an error."""
    until = time.monotonic() + LATEST_S
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"does not end within {LATEST_S:g} s")


def known_of(writing: Writing, parent: Path, inputs: Path) -> Known:
    """Run a command once without harm."""
    with fresh(parent, lambda run: _before(writing, run, inputs)) as run:
        old, began = files(run), time.monotonic()
        code = ended(started(writing, run, inputs))
        return Known(old, whole(run), copies(run), code, time.monotonic() - began)


def _before(writing: Writing, run: Path, inputs: Path) -> None:
    if writing.before is not None:
        planner(writing.before, run, inputs)


def whole(run: Path) -> Files:
    """The files of a run; of a sweep's parts, which hold its finished cells, the lines and no numbers of files."""
    found = files(run)
    parts = {name: found.pop(name) for name in sorted(found) if name.startswith("parts/")}
    return found | {f"parts/{line[:80]!r}": line for data in parts.values() for line in data.splitlines()}


def _restore(old: Files, run: Path) -> None:
    for name, data in old.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(data)


def killed(
    writing: Writing, known: Known, parent: Path, inputs: Path, draw: random.Random
) -> tuple[str, str]:
    """One run; how it was disturbed, and what gave way."""
    how = draw.choices(("signal", "clock", "calendar", "two"), (16, 1, 1, 2))[0]
    signalled = how in ("signal", "two")
    number = draw.choice(SIGNALS)
    with fresh(parent, lambda run: _restore(known.old, run)) as run:
        clock = None if signalled else random.Random(draw.random())
        child = started(writing, run, inputs, clock, calendar=how == "calendar")
        second = started(writing, run, inputs) if how == "two" else 0
        if signalled:
            time.sleep(draw.uniform(0.0, 1.05 * known.lasts_s))
            _send(child, number)
        try:
            code = ended(child)
            other = ended(second) if second else known.code
        except TimeoutError as error:
            return how, str(error)
        now, kept = whole(run), copies(run)
        # of two, one finds the other's work, or, of a sweep, the other at work
        refused = 2 if writing.once or writing.name == "sweep" else known.code
        if other == refused:
            other = known.code
        elif second and code == refused:
            code = known.code
        said = _amiss(code, other, number, how, known, now)
        said = said or _torn(kept, known, hard=number is signal.SIGKILL and signalled)
        if not said and signalled and (number is signal.SIGKILL or draw.random() < 0.2):
            is_done = bool(writing.once) and now.get(writing.once) == known.good[writing.once]
            try:
                again = ended(started(writing, run, inputs))
            except TimeoutError as error:
                return how, f"the next run {error}"
            if again != (2 if is_done else known.code) or (whole(run) != known.good and not is_done):
                said = f"the next run ends with {again} and leaves {sorted(files(run))}"
    return (number.name if how == "signal" else how), said


def _send(child: int, number: signal.Signals) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        return


def _amiss(code: int, other: int, number: signal.Signals, how: str, known: Known, now: Files) -> str:
    allowed = {known.code, -number, ENDED.get(number, known.code)}
    if how in ("clock", "calendar"):
        allowed = {known.code} if how == "clock" else {known.code, *NAMED}
    if code not in allowed or other != known.code:
        return f"exit codes {code} and {other}"
    if code == ENDED[signal.SIGINT] and now.keys() == known.good.keys() and now.keys() >= ANSWERED_EARLY:
        return _cut_short(now)
    # What SIGKILL leaves is removed by the next run.
    hard = number is signal.SIGKILL and how in ("signal", "two")
    strange = [
        name
        for name in now
        if now[name] not in (known.old.get(name), known.good.get(name))
        and not (hard and _is_temporary(name))
        and not (how == "calendar" and name in known.good)
    ]
    if strange:
        return f"neither old nor new, or left behind: {', '.join(strange)}"
    lost = [name for name in known.old if name not in now]
    if lost:
        return f"lost: {', '.join(lost)}"
    return (
        "says that it is done, and is not"
        if code == known.code and hard is False and now != known.good and how != "calendar"
        else ""
    )


def _cut_short(now: Files) -> str:
    """Answers that are not whole; the best one that is known when Ctrl-C comes is another than a full search's."""
    torn = [name for name in sorted(ANSWERED_EARLY) if not now[name].endswith(b"}\n")]
    return f"cut short: {', '.join(torn)}" if torn else ""


def _torn(kept: Files, known: Known, *, hard: bool) -> str:
    """Compiled copies that are not those of a run to which nothing happened."""
    torn = [name for name, data in kept.items() if data != known.copies.get(name)]
    torn = [name for name in torn if not (hard and name.endswith(".tmp"))]
    return f"compiled copies cut short, or left behind: {', '.join(torn)}" if torn else ""


def _is_temporary(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts) or name.startswith("tmp/")


def killed_refresh(lasts_s: float, parent: Path, draw: random.Random) -> tuple[str, str]:
    """A refresh of the prices, ended at random: the old or the new version is in use, and the next one succeeds."""
    number = draw.choice(SIGNALS)
    with fresh(parent, lambda _: refresh(1)) as run:
        child = forked(lambda: refresh(2))
        second = forked(lambda: refresh(2)) if draw.random() < 0.2 else 0
        time.sleep(draw.uniform(0.0, 1.05 * lasts_s))
        _send(child, number)
        try:
            ended(child)
            if second and ended(second):
                return "two", "the second process fails"
            version = stored_version(run)
            if version not in (1, 2) or (second and version != 2):
                return number.name, f"version {version}"
            if ended(forked(lambda: refresh(3))) or stored_version(run) != 3:
                return number.name, "the next refresh fails"
        except (TimeoutError, ValueError) as error:
            return number.name, str(error)
        left = [
            path.name for path in (run / "data" / "catalog" / "aws").iterdir() if path.name.startswith(".")
        ]
    return ("two" if second else number.name), f"left behind: {left}" if left else ""


def main() -> int:
    """Run; exit code 1 where something gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="end earlier than --n says")
    asked = parser.parse_args()
    draw, tried, amiss = random.Random(asked.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        inputs = inputs_in(parent / "inputs")
        for one in WRITINGS:  # loads the modules, so that a child does not
            if one.name not in SPAWNED:
                with fresh(parent, lambda run, one=one: _before(one, run, inputs)) as run:
                    planner(one.arguments, run, inputs)
        known = {one.name: known_of(one, parent, inputs) for one in WRITINGS}
        with fresh(parent, lambda _: refresh(1)):
            began = time.monotonic()
            refresh(2)
            refresh_s = time.monotonic() - began
        shares = [1 if one.name in SPAWNED else SELDOM for one in WRITINGS] + [SELDOM]
        until = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
        for number in range(asked.n):
            if until is not None and time.monotonic() > until:
                break
            kind = draw.choices([*WRITINGS, None], shares)[0]
            if kind is None:
                how, said = killed_refresh(refresh_s, parent, draw)
            else:
                how, said = killed(kind, known[kind.name], parent, inputs, draw)
            command = kind.name if kind else "refresh"
            tried[f"{command} {how}"] += 1
            if said:
                amiss += 1
                print(f"  {asked.seed}/{number} {command} {how}: {said}", flush=True)
    for what, count in sorted(tried.items()):
        print(f"{what:24} {count:4}")
    times = os.times()
    cpu_s = times.user + times.system + times.children_user + times.children_system
    print(f"{sum(tried.values())} runs, {amiss} amiss, {cpu_s:.0f} CPU s")
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
