"""Where the workers of a fleet read their data from and what each line pays for it, chosen and priced anew.

The way of an offer is the cheapest of a fleet of that offer alone, with as many workers as do all work in time. Workers
of one place share the copy of the data set, a file system and the packing of small files, until the last of them ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from planner.judge import stored
from planner.judge.fleet_workers import Worker, limit_hours
from planner.judge.money import Charge
from planner.judge.storage import Need, Option, packing
from planner.records import record

if TYPE_CHECKING:
    from planner.judge.bench import Bench


@record(frozen=True)
class _Line:
    """A line's workers, the way that their offer takes, what that was judged by, and what the workers here ask."""

    worker: Worker
    judged: Need
    here: Need
    way: Option

    @property
    def stay(self) -> float:
        """Hours from the start until the workers end, in the mean of them."""
        return self.worker.lead + self.worker.hours


def _line(bench: Bench, worker: Worker, planned: Worker, work: float) -> _Line:
    judge, offer = bench.storage, worker.buy.offer
    hours = work / planned.units_per_hour
    room = (limit_hours(bench, work) - planned.lead) / planned.caution
    alone = max(ceil(hours / room - 1e-9), 1)
    step_s, part = float(worker.run.shape["step_time_s"]), min(room / hours, 1.0)
    judged = judge.need(worker.buy.nodes, step_s, (alone, part))
    local_need = judge.need(worker.buy.nodes, step_s, (worker.count, part))
    return _Line(worker, judged, local_need, judge.best(offer, judged, worker.lead + hours / alone))


def charges(
    bench: Bench,
    workers: Sequence[Worker],
    work: float,
    planned: Sequence[Worker] | None = None,
    part: float = 1.0,
) -> list[list[Charge]]:
    """What each line pays for its data; what a place shares is on its first line.

    `planned`: the workers by which the ways were chosen, where others are charged; `part`: of all `work`, what the
    workers do, where others that share nothing with them do the rest.
    """
    if not bench.storage.active:
        return [[] for _ in workers]
    pairs, seen = zip(workers, planned or workers, strict=True), set[tuple[tuple[str, str], str]]()
    lines = [_line(bench, worker, chosen, work) for worker, chosen in pairs]
    out = []
    for line in lines:
        key = line.worker.buy.offer.place, line.way.service
        out.append(_charges(bench, line, _share(line, lines) * part, lines, first=key not in seen))
        seen.add(key)
    return out


def _charges(bench: Bench, line: _Line, share: float, lines: Sequence[_Line], *, first: bool) -> list[Charge]:
    judge, offer = bench.storage, line.worker.buy.offer
    mine = _here(bench, line)
    if line.way.kind == "file_system":
        same = [
            other_line
            for other_line in lines
            if (other_line.worker.buy.offer.place, other_line.way.service) == (offer.place, line.way.service)
        ]
        together = _shared(bench, line, same)
        most = max(other_line.worker.end for other_line in same)
        return judge.charges(offer, together, most) if first else []
    reads = mine.reads * (share if _follows(bench, mine) else 1.0)
    out = judge.read_charges(offer, reads)
    if mine.packing_hours and first:
        out.append(packing(mine))
    return out + judge.monthly_charges(mine, line.stay)


def _follows(bench: Bench, option: Option) -> bool:
    """Whether requests follow the work done: of streams, and of data that are read once."""
    return option.kind != "file_system" and (option.kind == "object" or not bench.storage.repeats)


def _share(line: _Line, lines: Sequence[_Line]) -> float:
    return line.worker.units / sum(other_line.worker.units for other_line in lines)


def _here(bench: Bench, line: _Line) -> Option:
    """The way of a line for the workers that it has."""
    every = bench.storage.options(line.worker.buy.offer, line.here)
    return next(option for option in every if option.service == line.way.service)


def _shared(bench: Bench, line: _Line, same: Sequence[_Line]) -> Option:
    """One file system for all workers of a place that read from it."""
    offer = line.worker.buy.offer
    storage_services = bench.goods.tariffs.storage_services(*offer.place)
    service = next(one for one in storage_services if one.name == line.way.service)
    whole = sum(one.here.nodes * one.here.mb_s for one in same)
    option = bench.storage.file_system(replace(line.here, nodes=1, mb_s=whole), service)
    assert option is not None
    return option


def storage(
    bench: Bench, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]], work: float,
    planned: Sequence[Worker] | None = None, part: float = 1.0,
) -> list[dict[str, Any]]:  # fmt: skip
    """What the plan must say of where things lie, line by line; `planned` and `part` as in `charges`."""
    out: list[dict[str, Any]] = []
    pairs = zip(workers, planned or workers, strict=True)
    by_worker = [_line(bench, *pair, work) for pair in pairs] if bench.storage.active else []
    for at, (worker, (paid, _)) in enumerate(zip(workers, lines, strict=True)):
        if by_worker:
            share = _share(by_worker[at], by_worker) * part
            out.append(_data(bench, by_worker[at], share) | {"line": at})
        stay = worker.count, worker.lead + worker.hours
        out += stored.kept(bench, worker.buy.offer, stay, paid, at)
    return out


def _data(bench: Bench, line: _Line, share: float) -> dict[str, Any]:
    judge, offer = bench.storage, line.worker.buy.offer
    figure = judge.per_read(offer)
    price = 0.0 if figure is None else float(figure.value) / 1000.0
    local_options = {option.service: option for option in judge.options(offer, line.here)}
    every = []
    for option in judge.options(offer, line.judged):
        mine, (name, figures) = local_options[option.service], option.why
        if "requests" in figures:
            figures = figures | {"requests": mine.reads * share}
        reads = mine.reads * (share if _follows(bench, mine) else 1.0)
        usd = mine.usd(price, line.worker.end if option.kind == "file_system" else line.stay)
        usd -= (mine.reads - reads) * price
        every.append(
            (
                replace(
                    option,
                    gib=mine.gib,
                    mb_s=mine.mb_s,
                    monthly=mine.monthly,
                    reads=ceil(reads),
                    why=(name, figures),
                ),
                usd,
            )
        )
    return stored.data(bench, offer, line.judged, every, line.way)
