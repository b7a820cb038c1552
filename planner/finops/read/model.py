"""What reading a bill gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from planner.files import remove_folder
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine

Severity = Literal["info", "warning", "error"]
_SEVERITIES = ("error", "warning", "info")
ALL_TAGS = "SELECT DISTINCT Tags AS tag_text FROM focus WHERE Tags LIKE '{%'"
Progress = Callable[[str, float], None]  # a step's name, and the share of it that is done (0..1)


@record(frozen=True)
class Finding:
    """Something that a reader of the bill must know.

    Attributes:
        severity: `error` makes figures wrong or incomplete, `warning` may, `info` does not.
        code: stable name for programs (`rejected_rows`).
        message: one sentence for people, with the remedy.
        where: file, or `file:line`.
        rows: rows concerned.
        cost: billed cost of these rows in the bill's currency; None where unknown.
        month: first day of the month concerned; None where it is of the whole bill.
        by_month: cost by first day of the month, where several are concerned.
    """

    severity: Severity
    code: str
    message: str
    where: str = ""
    rows: int = 0
    cost: float | None = None
    month: date | None = None
    by_month: tuple[tuple[date, float], ...] = ()

    def cost_in(self, month: date) -> float:
        """The cost that concerns a month: all of it where no month is known."""
        if self.by_month:
            return dict(self.by_month).get(month, 0.0)
        return (self.cost or 0.0) if self.month in (None, month) else 0.0


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by severity, those of one as they come."""
    return tuple(sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity)))


@record(frozen=True)
class Source:
    """One file that was read.

    Attributes:
        path: as given or found.
        rows: rows read.
        focus_version: `1.2`; of an adapted export the version it is mapped to.
        adapter: name of the adapter; empty for FOCUS.
        dataset: `CostAndUsage`, `ContractCommitment`, `InvoiceDetail` or `BillingPeriod`.
        months: first days of the months of its charge periods.
        sha256: of the file's bytes; empty where the file is too large to hash for nothing.
    """

    path: str
    rows: int
    focus_version: str
    adapter: str
    dataset: str
    months: tuple[date, ...]
    sha256: str


@record(frozen=True)
class Consolidated:
    """How a bill of several currencies was put into one.

    Attributes:
        path: file of the rates.
        target: ISO 4217 code of the currency it is in now.
        months: first day of the month, currency, billed cost in it, and in the target currency.
        old: first day of the month, currency and day of the rate, where a rate was more than 45 days old.
    """

    path: str
    target: str
    months: tuple[tuple[date, str, float, float], ...]
    old: tuple[tuple[date, str, date], ...] = ()


@record(frozen=True, eq=False)
class Bill:
    """An open bill; use as a context manager, or call `close`.

    Attributes:
        engine: answers queries over the view `focus`.
        sources: the files.
        findings: what is wrong or notable, worst first.
        currency: ISO 4217; `XXX` where the bill names none.
        months: first days of the months with charges, in order.
        temporary: folder that `close` removes.
        mapping: FOCUS column and column of the files, where the user named columns.
        named: paths as the user named them, or tables of a warehouse; empty for tables that only an open connection
            or a URL leads to.
        connection: `module:function` that led to the warehouse; empty for files.
        tag_texts: query of the texts of tags by which keys are known (`planner.finops.read.tag_texts`).
        unchecked: files of which it is not known yet whether all tags are JSON; those that are none have no value.
        consolidated: the currencies that it was in, where rates put them into one.
        mapping_file: where `mapping` is kept (`--map-file`); empty where it is in no file.
    """

    engine: Engine
    sources: tuple[Source, ...]
    findings: tuple[Finding, ...]
    currency: str
    months: tuple[date, ...]
    temporary: Path | None = None
    mapping: tuple[tuple[str, str], ...] = ()
    named: tuple[str, ...] = ()
    consolidated: Consolidated | None = None
    connection: str = ""
    unchecked: tuple[str, ...] = ()
    tag_texts: str = ALL_TAGS
    mapping_file: str = ""

    def close(self) -> None:
        """Close the engine and remove temporary files."""
        self.engine.close()
        if self.temporary is not None:
            remove_folder(self.temporary)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@record(frozen=True)
class Conversion:
    """What every currency and day of a bill is multiplied with; see `Rates.at`."""

    target: str
    rates: tuple[tuple[str, date, float], ...]
