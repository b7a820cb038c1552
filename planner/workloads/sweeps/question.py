"""The cells of a sweep: every workload, as the file says and under each scenario, on each day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs.documents import kind_of
from planner.inputs.faults import Fault
from planner.inputs.load import load_workload
from planner.inputs.settings import SettingError, with_settings
from planner.inputs.sweep_load import load_sweep
from planner.records import record
from planner.workloads.sweeps.cells import Cell, Source, digest, digest_of_file, forget, source_of

if TYPE_CHECKING:
    from planner.inputs.faults import Source as Written
    from planner.inputs.load import LoadedWorkload

MOST_CELLS = 1_000_000
_ENDINGS = (".yaml", ".yml")
_OF_JOBS = ("", "training", "fleet")
Scenario = tuple[str, tuple[str, ...]]  # its name, and its KEY=VALUE texts
AS_IT_IS: Scenario = ("", ())


@record(frozen=True)
class _Place:
    """Where a cell's question is written; the file is read again when its turn comes."""

    file: Path
    scenario: Scenario
    sha256: str
    source: Source


@record(frozen=True)
class Flags:
    """What all cells share of the options of `planner optimize`.

    Attributes:
        calibrated: correct predictions with the user's own measurements.
        time_limit_s: most seconds of solving one cell's MILP, where it has one.
        gap: relative gap at which a MILP may stop.
    """

    calibrated: bool = True
    time_limit_s: float = 30.0
    gap: float = 1e-3

    def on(self, day: date) -> Options:
        """Options of a cell of that day."""
        now = datetime.combine(day, time(), tzinfo=UTC)
        return Options(
            now, as_of=day, gap=self.gap, time_limit_s=self.time_limit_s, calibrated=self.calibrated
        )


class Cells(Mapping[str, Cell]):
    """Cells by a key that says all that their rows depend on; day by day, then in the order of the files.

    Only places are held: a cell is read from its file when it is asked for.

    Attributes:
        skipped: files of folders that are no workloads.
    """

    def __init__(self, places: Mapping[str, _Place], flags: Flags, skipped: int) -> None:
        self._places = places
        self._flags = flags
        self.skipped = skipped

    def __getitem__(self, key: str) -> Cell:
        place = self._places[key]
        loaded = _loaded(place.file, place.scenario)
        if loaded.sha256 != place.sha256:
            raise InputError(f"{place.file}: was changed during the sweep; start it again")
        day = place.source.as_of
        return Cell(str(place.file), place.scenario[0], loaded, self._flags.on(day), place.source)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def gather_cells(
    files: Sequence[Path],
    scenarios: Sequence[Scenario],
    days: Sequence[date],
    *,
    flags: Flags,
    today: date,
    catalog_dir: Path | None = None,
) -> Cells:
    """Read every file once under every scenario, and find the keys of all cells.

    Args:
        files: workloads, folders of them, or sweep files that name workloads, days and scenarios.
        scenarios: beside each file as it is.
        days: beside those that a sweep file names.
        flags: of all cells.
        today: the day where none is named.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: lists the faults of all files and scenarios.
        CatalogError: there are no prices of a day.
    """
    forget()
    groups, skipped, written = _groups(files, scenarios, days, today)
    sources: dict[date, Source] = {}
    found: dict[tuple[date, int], tuple[str, _Place]] = {}
    faults: list[str] = []
    for number, (file, scenario, day_list) in enumerate(groups):
        try:
            loaded = _loaded(file, scenario)
        except SettingError as error:
            faults.append(_in_words(error, scenario, written))
            continue
        except InputError as error:
            faults.append(str(error))
            continue
        used = [digest_of_file(path) for path in loaded.file_paths()]
        for day in day_list:
            if day not in sources:
                folder = "" if catalog_dir is None else str(catalog_dir)
                sources[day] = source_of(day, folder, calibrated=flags.calibrated)
            own = (str(file), loaded.sha256, *scenario[1], *used, repr(flags), repr(sources[day]))
            found[day, number] = (digest(own)[:32], _Place(file, scenario, loaded.sha256, sources[day]))
            if len(found) > MOST_CELLS:
                raise InputError(f"more than {MOST_CELLS:,} cells: sweep them in parts")
    if faults:
        raise InputError("\n".join(dict.fromkeys(faults)))
    if not found:
        raise InputError(f"no workload in {', '.join(map(str, files))}")
    return Cells({key: place for _, (key, place) in sorted(found.items())}, flags, skipped)


def _groups(
    files: Sequence[Path], scenarios: Sequence[Scenario], days: Sequence[date], today: date
) -> tuple[list[tuple[Path, Scenario, Sequence[date]]], int, dict[Scenario, Written]]:
    """Each workload with its scenarios and days, files of folders that are no workloads, and where scenarios are."""
    groups: list[tuple[Path, Scenario, Sequence[date]]] = []
    written: dict[Scenario, Written] = {}
    skipped = 0
    for file in files:
        if not file.is_dir() and kind_of(file) == "sweep":
            loaded_sweep = load_sweep(file)
            if loaded_sweep.sweep.work_hours:
                raise InputError(
                    f"{file}: has work_hours, which are replayed by: planner simulate --sweep {file}"
                )
            own = tuple(loaded_sweep.sweep.scenarios.items())
            written |= dict.fromkeys(own, loaded_sweep.document.source)
            all_scenarios = (*scenarios, *own)
            named, all_days = loaded_sweep.workloads, (*days, *loaded_sweep.sweep.days)
        else:
            named, all_scenarios, all_days = (file,), tuple(scenarios), tuple(days)
        for path in named:
            workloads, others = _workloads_in(path)
            skipped += others
            groups += [
                (one, scenario, tuple(dict.fromkeys(all_days or (today,))))
                for one in workloads
                for scenario in dict.fromkeys((AS_IT_IS, *all_scenarios))
            ]
    return groups, skipped, written


def _in_words(error: SettingError, scenario: Scenario, written: Mapping[Scenario, Written]) -> str:
    """The error, at its line in the sweep file where the scenario is written in one."""
    if scenario not in written:
        return str(error)
    name, texts = scenario
    faults = [Fault(("scenarios", name, texts.index(typed)), message) for typed, message in error.faults]
    return "\n".join([str(written[scenario].error(faults)), *([error.rest] if error.rest else [])])


def _workloads_in(path: Path) -> tuple[list[Path], int]:
    """The file, or the workloads of a folder and how many other files it has."""
    if not path.is_dir():
        return [path], 0
    files = sorted(one for one in path.iterdir() if one.suffix in _ENDINGS and one.is_file())
    workloads = [one for one in files if kind_of(one) in _OF_JOBS]
    return workloads, len(files) - len(workloads)


def _loaded(file: Path, scenario: Scenario) -> LoadedWorkload:
    # without compiled copies: a sweep would push those of single questions out
    return with_settings(load_workload(file, cache=False), scenario[1])
