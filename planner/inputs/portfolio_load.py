"""From jobs.yaml (and the CSV of jobs it names) to a `Portfolio`, or to one error that lists every fault."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.errors import InputError
from planner.files.tables import comma_hint, csv_rows
from planner.inputs.checks import find_faults, start_moment
from planner.inputs.checks_of_jobs import cost_faults, is_over, over_before, tiny_data
from planner.inputs.documents import Document, load_document, load_plain
from planner.inputs.faults import Fault, Source, near
from planner.inputs.load import LoadedWorkload, decode, load_workload, read_limited
from planner.inputs.plain import PORTFOLIO_ROOT, read_section
from planner.inputs.view import as_view
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import Portfolio, PortfolioJob
    from planner.inputs.schema import Workload

MAX_BYTES = 16 * 1024 * 1024
MAX_CSV_BYTES = 256 * 1024 * 1024
MOST_JOBS = 100_000
_CSV_KEYS = (
    *("name", "workload", "count", "must_run", "value_usd", "delay_usd_per_hour", "earliest_start", "deadline"),
    *("data_location", "data_size", "submitted", "team", "priority", "checkpoint_hours", "restart_hours"),
)  # fmt: skip
_NUMBERS: dict[str, Callable[[str], float]] = {
    "count": int, "delay_usd_per_hour": float, "priority": int, "checkpoint_hours": float, "restart_hours": float,
}  # fmt: skip


@record(frozen=True, eq=False)
class LoadedPortfolio:
    """A valid portfolio, a read-only view; `jobs` are its own and its CSV's, `workloads` has that of each (or None)."""

    portfolio: Portfolio
    jobs: tuple[PortfolioJob, ...]
    workloads: tuple[LoadedWorkload | None, ...]
    sha256: str
    path: Path
    source: Source

    def beside(self, name: str) -> Path:
        """Path of a file named in the portfolio."""
        return self.path.parent / name


def load_portfolio(path: Path) -> LoadedPortfolio:
    """Load and validate a portfolio file with the workloads and the jobs CSV it names.

    Raises:
        InputError: lists all faults with their places.
    """
    portfolio, document, inline = _read(path)
    source = document.source
    digest = hashlib.sha256(document.data)
    jobs = portfolio.jobs
    if portfolio.jobs_csv is not None:
        content = _named_file(path, source, portfolio.jobs_csv)
        digest.update(content)
        jobs += tuple(_jobs_of_csv(path.parent / portfolio.jobs_csv, content))
    faults = list(_job_faults(portfolio, jobs))
    workloads, missing = _workloads(path, source, jobs, inline)
    if faults or missing:
        raise source.error([*faults, *missing])
    for loaded in workloads:
        if loaded is not None:
            digest.update(loaded.sha256.encode())
    return LoadedPortfolio(portfolio, jobs, workloads, digest.hexdigest(), path, source)


def _read(path: Path) -> tuple[Portfolio, Document, Mapping[int, str]]:
    """The file as a view, and the text of each job's inline workload, whose hash names it."""
    data = read_limited(path, MAX_BYTES)
    plain = load_plain(path, data, PORTFOLIO_ROOT, _file_faults)
    if plain is not None and all(job.inline is None for job in plain[0].jobs):
        return *plain, {}
    from planner.inputs.portfolio_schema import Portfolio as Model

    portfolio, document = load_document(path, Model, _file_faults, data)
    texts = {
        at: job.inline.model_dump_json() for at, job in enumerate(portfolio.jobs) if job.inline is not None
    }
    return as_view(portfolio), document, texts


def _file_faults(portfolio: Portfolio) -> Iterator[Fault]:
    for at, job in enumerate(portfolio.jobs):
        for fault in find_faults(job.inline) if job.inline is not None else ():
            yield Fault(("jobs", at, "inline", *fault.path), fault.message, fault.did_you_mean, fault.at_key)
    yield from _shared_faults(portfolio)


def _shared_faults(portfolio: Portfolio) -> Iterator[Fault]:
    starts = [start_moment(window.start) for window in portfolio.windows]
    if any(later <= earlier for earlier, later in pairwise(starts)):
        yield Fault(("windows",), "each window must start after the one before it")
    names = [window.name for window in portfolio.windows]
    if len(set(names)) < len(names):
        yield Fault(("windows",), "two windows have the same name")
    for at, quota in enumerate(portfolio.quota):
        if quota.window is not None and quota.window not in names:
            yield Fault(("quota", at, "window"), f"no window {quota.window!r}", near(quota.window, names))
    if portfolio.rolling is not None and portfolio.risk is not None:
        yield Fault(("risk",), "a rolling plan uses the expected cost: leave 'risk' or 'rolling' out")
    if portfolio.starts == "windows" and not names:
        yield Fault(("starts",), "needs 'windows': list them, or leave 'starts' out")


def _job_faults(portfolio: Portfolio, jobs: tuple[PortfolioJob, ...]) -> Iterator[Fault]:
    if not jobs:
        yield Fault((), "there are no jobs: list them under 'jobs' or name a file with 'jobs_csv'")
    if (total := sum(job.count for job in jobs)) > MOST_JOBS:
        yield Fault((), f"{total:,} jobs by their 'count' are more than {MOST_JOBS:,}: plan them in parts")
    seen: set[str] = set()
    for at, job in enumerate(jobs):
        path: tuple[str | int, ...] = ("jobs", at) if at < len(portfolio.jobs) else ("jobs_csv",)
        if job.name in seen:
            yield Fault((*path, "name"), f"two jobs are called {job.name!r}")
        seen.add(job.name)
        sources = [key for key in ("workload", "inline", "candidates") if getattr(job, key)]
        if len(sources) > 1 or (not sources and portfolio.candidates_csv is None):
            text = f"job {job.name!r} needs exactly one of workload, inline and candidates"
            yield Fault(path, text + (f", not {' and '.join(sources)}" if sources else ""))
        if job.team is not None and job.team not in portfolio.teams:
            close = near(job.team, list(portfolio.teams))
            yield Fault((*path, "team"), f"job {job.name!r}: no team {job.team!r} under 'teams'", close)
        if job.data is not None and sources and sources[0] != "candidates":
            yield Fault((*path, "data"), "the workload gives the location of its data: remove 'data' here")
        if job.data is not None:
            yield from tiny_data((*path, "data", "size"), job.data.size)
        yield from over_before((*path, "deadline"), job.deadline, portfolio.start)
        if is_over(portfolio, job):
            yield Fault((*path, "earliest_start"), f"job {job.name!r}: is not before its deadline")
        if job.must_run is False and job.value_usd is None:
            yield Fault((*path, "must_run"), "a job that may be left out needs a value_usd")
        yield from cost_faults((*path, "candidates"), job.candidates)


_ONCE = (
    "comes again (recurrence), but jobs that share limits are planned once: remove it from the workload and list its "
    "runs as jobs, or plan it with `planner optimize` and add the plan to a forecast"
)
_BY_COST = (
    "has preferences.objective: {wished}, but jobs that share limits are planned by cost and delay: remove it "
    "from the workload and give the job a delay_usd_per_hour or a deadline"
)


def _workloads(
    path: Path, source: Source, jobs: tuple[PortfolioJob, ...], inline: Mapping[int, str]
) -> tuple[tuple[LoadedWorkload | None, ...], list[Fault]]:
    """The workload of each job; files named by several jobs are read once."""
    by_file: dict[str, LoadedWorkload] = {}
    out: list[LoadedWorkload | None] = []
    faults: list[Fault] = []
    for at, job in enumerate(jobs):
        if job.inline is not None:
            digest = hashlib.sha256(inline[at].encode()).hexdigest()
            out.append(LoadedWorkload(job.inline, digest, path, source, ("jobs", at, "inline")))
            continue
        if job.workload is None:
            out.append(None)
            continue
        file = path.parent / job.workload
        if job.workload not in by_file:
            if not file.is_file():
                faults.append(Fault(("jobs", at, "workload"), f"no such file: {job.workload}"))
                out.append(None)
                continue
            by_file[job.workload] = load_workload(file, cache=False)
        out.append(by_file[job.workload])
    for at, loaded in enumerate(out):
        if loaded is not None and _is_unsuitable(loaded.workload):
            text = (
                "needs kind: training with a model; plan fleets, tasks and batch inference by themselves (`planner "
                "optimize`) and give what they come to as the job's `candidates`"
            )
            if loaded.workload.commitments:
                text = "has `commitments` of its own: write them once in the portfolio, where all jobs share them"
            faults.append(Fault(("jobs", at), f"job {jobs[at].name!r} {text}"))
        if loaded is not None and loaded.workload.recurrence is not None:
            faults.append(Fault(("jobs", at), f"job {jobs[at].name!r} {_ONCE}"))
        if loaded is not None and loaded.workload.preferences.objective != "cost":
            inside = ("workload",) if jobs[at].inline is None else ("inline", "preferences", "objective")
            words = _BY_COST.format(wished=loaded.workload.preferences.objective)
            faults.append(Fault(("jobs", at, *inside), f"job {jobs[at].name!r} {words}"))
    return tuple(out), faults


def _is_unsuitable(workload: Workload) -> bool:
    whole = workload.model is not None and workload.training is not None
    return workload.kind != "training" or not whole or bool(workload.commitments)


def _named_file(path: Path, source: Source, name: str) -> bytes:
    file = path.parent / name
    if not file.is_file():
        raise source.error([Fault(("jobs_csv",), f"no such file: {name}")])
    return read_limited(file, MAX_CSV_BYTES)


def _jobs_of_csv(file: Path, content: bytes) -> Iterator[PortfolioJob]:
    """Jobs of a CSV file; errors name the file and the line."""
    reader = csv_rows(decode(content, str(file)), file)
    unknown = [name for name in reader.fieldnames or () if name not in _CSV_KEYS]
    if unknown or "name" not in (reader.fieldnames or ()):
        hint = near(unknown[0], _CSV_KEYS) if unknown else "name"
        problem = f"unknown column '{unknown[0]}'" if unknown else "there is no column 'name'"
        raise InputError(f"{file}:1: {problem} (did you mean '{hint}'?); known: {', '.join(_CSV_KEYS)}")
    for row in reader:
        try:
            yield _job(_job_values(row))
        except ValueError as error:
            raise InputError(f"{file}:{reader.line_num}: {error}") from None


def _job(values: dict[str, Any]) -> PortfolioJob:
    """The job of a row.

    Raises:
        ValueError: it is none; names the key.
    """
    plain = read_section("PortfolioJob", values)
    if plain is not None:
        return cast("PortfolioJob", plain)
    from pydantic import ValidationError

    from planner.inputs.messages import pydantic_faults
    from planner.inputs.portfolio_schema import PortfolioJob as Model

    try:
        return cast("PortfolioJob", as_view(Model.model_validate(values)))
    except ValidationError as error:
        fault = pydantic_faults(error.errors(include_url=False), Model)[0]
        raise ValueError(f"{'.'.join(map(str, fault.path))}: {fault.message}") from None


def _number(key: str, text: str) -> float:
    """Read a number of a row.

    Raises:
        ValueError: it is none; names the column.
    """
    try:
        return _NUMBERS[key](text)
    except ValueError:
        expected = "a whole number" if _NUMBERS[key] is int else "a number"
        raise ValueError(f"{key}: must be {expected}, got {text[:60]!r}{comma_hint(text)}") from None


def _job_values(row: dict[str, str | None]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in row.items():
        if key is None or text is None:
            raise ValueError("the number of cells differs from the header's")
        if not text.strip():
            continue
        if key in _NUMBERS:
            values[key] = _number(key, text)
        elif key == "must_run":
            if text.strip().lower() not in ("true", "false"):
                raise ValueError(f"must_run: must be true or false, got {text!r}")
            values[key] = text.strip().lower() == "true"
        else:
            values[key] = text.strip()
    data = {key: values.pop(f"data_{key}") for key in ("location", "size") if f"data_{key}" in values}
    return values | ({"data": data} if data else {})
