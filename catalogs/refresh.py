"""Refresh: fetch from several providers at once, check every row, store per provider; nobody's failure is shared.

A provider that fails keeps its last good snapshot, a region that fails its last good rows; both are told with
their age. Rows that validation refuses are counted by reason, never stored and never silently dropped.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from catalogs.checking import Checked, check_fetched
from catalogs.errors import CatalogError, CatalogInputError
from catalogs.providers.base import (
    CredentialsMissing,
    FetchLog,
    FetchOptions,
    NotUnderstood,
    Provider,
    ProviderError,
    SchemaChanged,
    frame_rows,
)
from catalogs.providers.registry import check_names, create_provider
from catalogs.redact import redact

if TYPE_CHECKING:
    from catalogs.history import SaveResult

_log = logging.getLogger(__name__)
_TRANSPORT_LOGS = ("urllib3", "botocore", "google", "azure", "msal", "gpuhunt", "alibabacloud_credentials")
STEEP_FALL_RATIO = 0.5
SUDDEN_END_OFFERS = 10
MAX_PROVIDERS_AT_ONCE = 4

OnProgress = Callable[[str, str, str, int], None]  # provider, region, interface, rows
Create = Callable[[str, FetchOptions], Provider]


class Save(Protocol):
    """The store's `save_snapshot`."""

    def __call__(
        self,
        provider: str,
        types_rows: Any,
        offers_rows: Any,
        *,
        merge_regions: Collection[str] = (),
        regions: Collection[str] | None = None,
        purchase_options: Collection[str] | None = None,
    ) -> SaveResult:
        """Store rows; see `catalogs.history.save_snapshot`."""
        ...


@dataclass(frozen=True)
class Failure:
    """Something that could not be fetched.

    Attributes:
        kind: `credentials_missing`, `permission_denied`, `rate_limited`, `schema_changed`, `unreachable`,
            `failed`, `input` (nothing fits what was asked for) or `defect`.
        region: region, "" for all.
        api: interface.
        message: what to do about it, without secrets.
    """

    kind: str
    region: str
    api: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Take a provider's error, a catalog error, or a defect (its place, not its text: that may hold data)."""
        if isinstance(error, ProviderError):
            return cls(error.kind, error.region, error.api, redact(str(error)))
        if isinstance(error, CatalogInputError):
            return cls("input", "", "", redact(str(error)))
        if isinstance(error, CatalogError | OSError):
            return cls("failed", "", "", redact(str(error)))
        return cls(
            "defect", "", "", f"internal error {type(error).__name__} {_place(error)}; please report it"
        )


@dataclass(frozen=True)
class Outcome:
    """What became of one provider.

    Attributes:
        provider: provider id.
        status: `added` (a new snapshot), `unchanged` (the same rows as before), `failed`, or `skipped` (no
            credentials, or no region that was asked for).
        n_instance_types: types stored.
        n_offers: offers stored, those kept from before included.
        n_kept_offers: offers kept from before because their region or interface failed.
        kept_regions: region to the oldest date of the offers kept from before.
        n_without_accelerator: types left out because they have no accelerator.
        refused: reason to number of refused rows.
        refused_examples: a few refused rows in full.
        not_understood: what the provider answered and the reader could not place.
        failures: what could not be fetched.
        remarks: sentences for the reader.
        last_good_as_of: date of the snapshot that stays in use after a failure, "" where there is none.
        seconds: stage to wall time, s.
        sha256: hash of the snapshot in use.
    """

    provider: str
    status: str
    n_instance_types: int = 0
    n_offers: int = 0
    n_kept_offers: int = 0
    kept_regions: Mapping[str, str] = field(default_factory=dict)
    n_without_accelerator: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    refused_examples: tuple[str, ...] = ()
    not_understood: tuple[NotUnderstood, ...] = ()
    failures: tuple[Failure, ...] = ()
    remarks: tuple[str, ...] = ()
    last_good_as_of: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    sha256: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether the provider's prices are those of today, at least in part."""
        return self.status in ("added", "unchanged")

    def age_days(self, today: date) -> int | None:
        """Age of what stays in use after a failure, days; None where nothing is known."""
        if not self.last_good_as_of:
            return None
        return (today - date.fromisoformat(f"{self.last_good_as_of}-01"[:10])).days


@dataclass(frozen=True)
class RefreshReport:
    """Outcomes in the order asked for, and the wall time of all, s."""

    outcomes: tuple[Outcome, ...]
    wall_s: float
    as_of: str

    @property
    def is_good(self) -> bool:
        """Whether something was refreshed and nothing failed but for providers without credentials."""
        return any(o.is_stored for o in self.outcomes) and all(o.status != "failed" for o in self.outcomes)


def refresh(
    names: Sequence[str],
    options: FetchOptions,
    *,
    on_progress: OnProgress | None = None,
    create: Create | None = None,
    save: Save | None = None,
    max_at_once: int = MAX_PROVIDERS_AT_ONCE,
) -> RefreshReport:
    """Fetch, check and store the prices of some providers.

    Args:
        names: provider ids.
        options: what to fetch and how; `regions` may be globs and `provider/region`.
        on_progress: called from worker threads with (provider, region, interface, rows).
        create: makes a provider by its id; default: the registry.
        save: stores rows; default: the catalog's store.
        max_at_once: most providers at a time.

    Raises:
        CatalogInputError: when a provider id is not known.
    """
    from concurrent.futures import ThreadPoolExecutor

    began = time.perf_counter()
    save = save or _default_save()
    logs = {name: FetchLog(on_progress=_told(name, on_progress)) for name in dict.fromkeys(names)}
    if create is None:
        check_names(names)
        create = create_provider
    make = {name: partial(create, name, replace(options, log=log)) for name, log in logs.items()}
    with (
        _quiet_transport(),
        ThreadPoolExecutor(max_workers=max(1, max_at_once), thread_name_prefix="refresh") as pool,
    ):
        try:
            done = list(
                pool.map(lambda name: _refresh_one(name, make[name], options, logs[name], save), make)
            )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    today = datetime.now(UTC).date().isoformat()
    return RefreshReport(tuple(o for group in done for o in group), time.perf_counter() - began, today)


@dataclass(frozen=True)
class _Fetched:
    types: list[dict[str, str]]
    offers: list[dict[str, str]]
    regions: list[str]


def _refresh_one(
    name: str, make: Callable[[], Provider], options: FetchOptions, log: FetchLog, save: Save
) -> list[Outcome]:
    """Refresh one provider; whatever goes wrong is its outcome."""
    seconds: dict[str, float] = {}
    try:
        provider = make()
        fetched = _fetch(provider, options, log, seconds)
    except Exception as error:  # noqa: BLE001 - a defect of one provider must not hide the others
        _log.debug("%s failed: %s", name, Failure.of(error).message)
        return [_failed(name, error, log, seconds)]
    ids = sorted({row.get("provider", "") for row in fetched.types}) or [name]
    outcomes = []
    for one in ids:
        mine = _Fetched(
            [row for row in fetched.types if row.get("provider") == one],
            [row for row in fetched.offers if row.get("provider") == one],
            fetched.regions,
        )
        try:
            outcomes.append(_store(one, mine, provider, options, log, save, dict(seconds)))
        except Exception as error:  # noqa: BLE001 - as above
            outcomes.append(_failed(one, error, log, seconds))
        # A source of several providers has one log: what it tells is told once, what failed counts for all.
        log = FetchLog(failures=list(log.failures))
    return outcomes


def _fetch(provider: Provider, options: FetchOptions, log: FetchLog, seconds: dict[str, float]) -> _Fetched:
    with _timed(seconds, "regions"):
        regions = _chosen_regions(provider, options.regions)
    with _timed(seconds, "instance_types"):
        types = frame_rows(provider.fetch_instance_types(regions))
    with _timed(seconds, "offers"):
        wanted = options.purchase_options or provider.info.purchase_options
        offers = frame_rows(provider.fetch_offers(regions, wanted))
    log.progress("", "", 0)
    return _Fetched(types, offers, regions)


def _chosen_regions(provider: Provider, patterns: Sequence[str]) -> list[str]:
    known = provider.fetch_regions()
    if not patterns:
        return known
    name = provider.info.name
    chosen = [
        region
        for region in known
        if any(fnmatchcase(f"{name}/{region}" if "/" in p else region, p) for p in patterns)
    ]
    if not chosen:
        import difflib

        close = difflib.get_close_matches(patterns[0], known, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"it has {len(known)} regions"
        raise CatalogInputError(f"no region of {name} fits {', '.join(patterns)} ({hint})")
    return chosen


def _store(
    name: str,
    fetched: _Fetched,
    provider: Provider,
    options: FetchOptions,
    log: FetchLog,
    save: Save,
    seconds: dict[str, float],
) -> Outcome:
    with _timed(seconds, "check"):
        checked = check_fetched(fetched.types, fetched.offers, fetched.regions)
    previous = last_good(name)
    _refuse_emptiness(name, checked, previous)
    if not options.regions:
        asked_for = options.purchase_options or provider.info.purchase_options
        _keep_vanished_options(name, checked, previous, asked_for, log)
    failed_regions, lost_options = _lost(log, fetched.regions)
    asked = frozenset(options.purchase_options) or (provider.info.purchase_options if lost_options else None)
    with _timed(seconds, "store"):
        saved = save(
            name,
            checked.instance_types,
            checked.offers,
            merge_regions=sorted(failed_regions),
            regions=fetched.regions if options.regions else None,
            purchase_options=None if asked is None else sorted(asked - lost_options),
        )
    before = previous.n_offers if previous else 0
    if len(checked.offers) < STEEP_FALL_RATIO * before and not options.regions and not asked:
        log.remark(f"{name}: {len(checked.offers)} offers fetched where {before} were known before")
    return Outcome(
        provider=name,
        status=saved.status,
        n_instance_types=saved.manifest.n_instance_types,
        n_offers=saved.manifest.n_offers,
        n_kept_offers=saved.n_kept_offers,
        kept_regions=dict(saved.kept_regions),
        n_without_accelerator=checked.n_without_accelerator,
        refused=checked.refused,
        refused_examples=tuple(redact(text) for text in checked.examples),
        seconds=seconds,
        sha256=saved.manifest.sha256,
        **_from_log(log),
    )


def _refuse_emptiness(name: str, checked: Checked, previous: LastGood | None) -> None:
    """An answer without a single usable row is a fault of the answer, not the end of the provider."""
    if not checked.instance_types:
        raise SchemaChanged(
            "not one instance type in the answer passes the checks" + _first(checked),
            where="instance_types",
            provider=name,
        )
    if not checked.offers and previous and previous.n_offers:
        raise SchemaChanged(
            "not one price in the answer passes the checks" + _first(checked), where="offers", provider=name
        )


def _keep_vanished_options(
    name: str, checked: Checked, previous: LastGood | None, asked: Collection[str], log: FetchLog
) -> None:
    """A purchase option that had many prices and now has none anywhere is an empty answer, not its end."""
    found = {row["purchase_option"] for row in checked.offers}
    lost = {option for error in log.failures for option in error.purchase_options}
    before = previous.n_by_option() if previous else {}
    for option, number in sorted(before.items()):
        if number >= SUDDEN_END_OFFERS and option in asked and option not in found | lost:
            words = f"not one {option} price in the answer, {number} before: the old ones are kept"
            log.failed(SchemaChanged(words, where="offers", provider=name), {option})


def _first(checked: Checked) -> str:
    return f", first: {checked.examples[0]}" if checked.examples else " (it is empty)"


def _lost(log: FetchLog, regions: Sequence[str]) -> tuple[set[str], frozenset[str]]:
    """Regions and purchase options whose last good rows must be kept."""
    failed: set[str] = set()
    options: set[str] = set()
    for error in list(log.failures):
        if error.purchase_options and not error.region:
            options |= error.purchase_options
        else:
            failed |= {error.region} if error.region else set(regions)
    return failed, frozenset(options)


def _failed(name: str, error: Exception, log: FetchLog, seconds: Mapping[str, float]) -> Outcome:
    previous = last_good(name)
    rest = _from_log(log)
    rest["failures"] = (Failure.of(error), *rest["failures"])
    return Outcome(
        provider=name,
        status="skipped" if isinstance(error, CredentialsMissing | CatalogInputError) else "failed",
        last_good_as_of=previous.as_of if previous else "",
        seconds=seconds,
        **rest,
    )


def _from_log(log: FetchLog) -> dict[str, Any]:
    return {
        "not_understood": tuple(log.not_understood),
        "failures": tuple(Failure.of(error) for error in list(log.failures)),
        "remarks": tuple(redact(text) for text in log.remarks),
    }


@dataclass(frozen=True)
class LastGood:
    """The snapshot in use of a provider: date and number of its offers, and where it lies."""

    as_of: str
    n_offers: int
    path: Path

    def n_by_option(self) -> Mapping[str, int]:
        """Number of its offers per purchase option, derived and declared ones left out."""
        from catalogs.snapshots import source_rows
        from catalogs.store import read_provider

        _, offers = source_rows(read_provider(self.path))
        return Counter(row["purchase_option"] for row in offers if row["basis"] in ("list", "observed"))


def last_good(provider: str) -> LastGood | None:
    """The snapshot in use of a provider; None where there is none."""
    from catalogs.history import list_snapshots

    try:
        found = list_snapshots(provider)
    except (CatalogError, OSError):
        return None
    if not found:
        return None
    current = next((one for one in found if one.is_current), found[-1])
    return LastGood(current.manifest.newest_as_of, current.manifest.n_offers, current.path)


def _default_save() -> Save:
    from catalogs.history import save_snapshot

    return save_snapshot


def _told(name: str, on_progress: OnProgress | None) -> Callable[[str, str, int], None] | None:
    if on_progress is None:
        return None
    tell = on_progress
    return lambda region, api, rows: tell(name, region, api, rows)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = round(seconds.get(stage, 0.0) + time.perf_counter() - began, 3)


@contextmanager
def _quiet_transport() -> Iterator[None]:
    """Silence the SDKs' notes on each retry: the outcome tells what came of them, and they may show URLs."""
    logs = [logging.getLogger(name) for name in _TRANSPORT_LOGS]
    levels = [log.level for log in logs]
    try:
        for log in logs:
            log.setLevel(logging.ERROR)
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _place(error: Exception) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame for frame in frames if f"{Path(__file__).parent.name}" in Path(frame.filename).parts
    ] or frames
    return f"in {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
