"""The tools of `planner mcp`: questions about the files of one folder and the catalog, answered as text.

Nothing is written except the program's caches, nothing is fetched, and no file outside the folder is read, whether an
argument, a workload or a symbolic link names it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from planner.api.plans import estimate as find_estimate
from planner.api.plans import optimize as find_plan
from planner.api.questions import compare as find_comparison
from planner.asked.given import day_of
from planner.errors import InputError
from planner.inputs.load import MAX_BYTES, load_workload, parse_workload
from planner.inputs.settings import with_settings
from planner.render import render_answer

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload
    from planner.render.presentable import Presentable

Form = Literal["markdown", "json"]
Over = Literal["region", "type", "option", "provider"]
MOST_CHARACTERS = 400_000  # of an answer
MOST_OFFERS = 100
_MOST_FILES = 10_000  # of a bill
_NETWORK = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})
_TEXT_NAME = "workload.yaml"  # of a workload that is given as text, in messages


class Assistant:
    """The tools, each a method with plain arguments; the assistant reads their docstrings.

    Attributes:
        folder: the only files that are read are below it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._one_by_one = threading.Lock()  # questions may come at once; planning shares caches

    @property
    def tools(self) -> tuple[Callable[..., str], ...]:
        """The tools in the order in which they are shown."""
        return (self.optimize, self.estimate, self.compare, self.price, self.review)

    def optimize(
        self, workload: str, settings: Sequence[str] = (), as_of: str | None = None, form: Form = "markdown"
    ) -> str:
        """Find the cheapest cloud machines that train a workload within its limits: type, number, place, option.

        The answer has the cost with its interval, the time, the risk, the proof and the best alternatives. If nothing
        fits, it says which limit to change, and to what.

        Args:
            workload: the YAML of a workload file, or the name of such a file below the working directory.
            settings: overrides of the file's values, such as `constraints.deadline=10d`.
            as_of: plan as on this day with the prices known then, such as `2026-11-20`; default: now.
            form: `markdown` to read, `json` for every figure with its unit in the key.
        """
        with self._one_by_one:
            return _text(find_plan(self._workload(workload, settings), as_of=as_of), form)

    def estimate(
        self,
        workload: str,
        instance_types: Sequence[str] = (),
        nodes: int | None = None,
        layout: str | None = None,
        settings: Sequence[str] = (),
        as_of: str | None = None,
        form: Form = "markdown",
    ) -> str:
        """Predict speed, memory and cost of a workload on named machines; prices are quotes for the machines alone.

        Args:
            workload: as for `optimize`.
            instance_types: in the provider's spelling, such as `p4d.24xlarge`; default: the plan's.
            nodes: machines; default: 1, or the plan's.
            layout: parts of the parallel layout to fix, such as `tp=8,pp=2,zero=1`.
            settings: as for `optimize`.
            as_of: as for `optimize`.
            form: as for `optimize`.
        """
        with self._one_by_one:
            loaded = self._workload(workload, settings)
            estimates = find_estimate(
                loaded, tuple(instance_types) or None, nodes=nodes, layout=layout, as_of=as_of
            )
            return _text(estimates, form)

    def compare(
        self,
        workload: str,
        instance_types: Sequence[str] = (),
        over: Over | None = None,
        settings: Sequence[str] = (),
        as_of: str | None = None,
        form: Form = "markdown",
    ) -> str:
        """Compare machines, or all regions, types, options or providers, for one workload: the best plan within each.

        Args:
            workload: as for `optimize`; one job, no fleet.
            instance_types: to compare, in the provider's spelling.
            over: instead, compare all of these that can run the job.
            settings: as for `optimize`.
            as_of: as for `optimize`.
            form: as for `optimize`.
        """
        if bool(instance_types) == (over is not None):
            raise InputError("give either instance_types or over")
        with self._one_by_one:
            loaded = self._workload(workload, settings)
            return _text(find_comparison(loaded, pick=tuple(instance_types), over=over, as_of=as_of), form)

    def price(
        self,
        accelerator: str | None = None,
        instance_type: str | None = None,
        provider: str | None = None,
        region: str | None = None,
        purchase_option: str | None = None,
        as_of: str | None = None,
        max_results: int = 10,
        form: Form = "markdown",
    ) -> str:
        """Look up list and spot prices of machines, cheapest first, with the date of each.

        Args:
            accelerator: canonical id or glob, such as `h100-*`.
            instance_type: name or glob, such as `p5*`.
            provider: such as `aws`.
            region: `provider/region` or glob, such as `aws/eu-*`.
            purchase_option: such as `on_demand` or `spot`.
            as_of: prices as known on this day; default: the newest.
            max_results: offers, at most 100.
            form: `markdown` to read, `json` with the source of each price and its cost per accelerator and hour.
        """
        from catalogs.offers.query import SORT_KEYS, OfferQuery, query_offers
        from catalogs.store.load import load_catalog
        from planner.catalog.offers import offers_answer

        if not 1 <= max_results <= MOST_OFFERS:
            raise InputError(f"max_results {max_results}: must be 1 to {MOST_OFFERS}")
        query = OfferQuery(
            accelerators=_one(accelerator), instance_types=_one(instance_type), providers=_one(provider),
            regions=_one(region), purchase_options=_one(purchase_option),
        )  # fmt: skip
        with self._one_by_one:
            query_result = query_offers(load_catalog(as_of=day_of(as_of)), query)
        if query_result.unmatched:
            field, text, near = query_result.unmatched[0]
            hint = f" (did you mean {', '.join(near)}?)" if near else ""
            raise InputError(f"the catalog has no {field} {text!r}{hint}")
        table = query_result.offers.take(range(min(max_results, query_result.offers.n_rows)))
        title = f"Offers, cheapest first: {table.n_rows} of {query_result.offers.n_rows}"
        answer = offers_answer(table, SORT_KEYS[query.sort], title)
        return str(render_answer(answer, "json" if form == "json" else "md"))

    def review(self, bill: Sequence[str], month: str | None = None, form: Form = "markdown") -> str:
        """Give the verdict on one month of a cloud bill: spend against last month, budget and forecast, and what to do.

        Args:
            bill: files or folders below the working directory (FOCUS 1.0 to 1.4, or exports of the large clouds).
            month: such as `2026-10`; default: the newest with use beyond its first day.
            form: `markdown`: the verdict in brief; `json`: the whole review.
        """
        from planner.api.bills import review as review_bill

        paths = [self._inside(name) for name in bill]
        for path in paths:
            self._check_folder(path)
        with self._one_by_one:
            review = review_bill(paths, month=month)
            if form == "json":
                return _text(review, form)
            sections = review.report().brief
        lines = (f"- **{section.title}**: {' '.join(section.sentences)}" for section in sections)
        return "\n".join([f"# {review.verdict}", "", *lines, ""])

    def _workload(self, given: str, settings: Sequence[str]) -> LoadedWorkload:
        """A workload by name or text, with no file in it that lies outside the folder."""
        if "\n" in given:
            if len(given.encode()) > MAX_BYTES:
                raise InputError(f"workload: is larger than {MAX_BYTES:,} bytes")
            loaded = parse_workload(given, self.folder / _TEXT_NAME)
        else:
            loaded = load_workload(self._inside(given), cache=False)
        changed = with_settings(loaded, tuple(settings))
        for path in changed.file_paths():
            self._inside(str(path))
        return changed

    def _inside(self, name: str) -> Path:
        """The path of a name, which must lie in the folder, links followed."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise InputError(f"{name}: is outside {self.folder}; only files below it can be read")
        return path

    def _check_folder(self, path: Path) -> None:
        for number, file in enumerate(_files_below(path)):
            if number >= _MOST_FILES:
                raise InputError(f"{path}: holds more than {_MOST_FILES:,} files; name those of the bill")
            self._inside(str(file))


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from path.rglob("*")


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _text(answer: Presentable, form: Form) -> str:
    """The answer as text.

    Raises:
        InputError: it is too long for a conversation.
    """
    text = answer.render("json" if form == "json" else "md")
    assert isinstance(text, str)
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"the answer has {len(text):,} characters, more than {MOST_CHARACTERS:,}: ask for less"
        )
    return text


def refuse_network(event: str, _: tuple[object, ...]) -> None:
    """An audit hook (`sys.addaudithook`) that ends every attempt to reach a network.

    Raises:
        PermissionError: this is one.
    """
    if event in _NETWORK:
        raise PermissionError(f"planner mcp has no network ({event})")
