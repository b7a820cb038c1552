"""Refresh: fetch from several providers at once, check every row, store per provider; nobody's failure is shared.

A provider that fails keeps its last good snapshot, a region that fails its last good rows; both are told with
their age. Rows that validation refuses are counted by reason, never stored and never silently dropped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from catalogs.errors import CatalogInputError
from catalogs.providers.base import CredentialsMissing, FetchLog, FetchOptions, Provider, frame_rows
from catalogs.providers.redact import redact
from catalogs.providers.registry import check_names, create_provider
from catalogs.refresh.checking import check_fetched
from catalogs.refresh.last_good import keep_vanished_options, last_good, refuse_emptiness
from catalogs.refresh.quarantine import set_aside
from catalogs.refresh.report import Failure, Outcome, RefreshReport

if TYPE_CHECKING:
    from catalogs.store.history import SaveResult

_log = logging.getLogger(__name__)
_TRANSPORT_LOGS = ("urllib3", "botocore", "google", "azure", "msal", "gpuhunt", "alibabacloud_credentials")
STEEP_FALL_RATIO = 0.5
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
        quarantine: Sequence[Mapping[str, Any]] = (),
    ) -> SaveResult:
        """Store rows; see `catalogs.store.history.save_snapshot`."""
        ...


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
            outcomes = list(
                pool.map(lambda name: _refresh_one(name, make[name], options, logs[name], save), make)
            )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    today = datetime.now(UTC).date().isoformat()
    return RefreshReport(tuple(o for group in outcomes for o in group), time.perf_counter() - began, today)


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
    for identifier in ids:
        mine = _Fetched(
            [row for row in fetched.types if row.get("provider") == identifier],
            [row for row in fetched.offers if row.get("provider") == identifier],
            fetched.regions,
        )
        try:
            outcomes.append(_store(identifier, mine, provider, options, log, save, dict(seconds)))
        except Exception as error:  # noqa: BLE001 - as above
            outcomes.append(_failed(identifier, error, log, seconds))
        # A source of several providers has one log: it is reported once, and its failures count for all.
        log = FetchLog(failures=list(log.failures))
    return outcomes


def _fetch(provider: Provider, options: FetchOptions, log: FetchLog, seconds: dict[str, float]) -> _Fetched:
    with _timed(seconds, "regions"):
        regions = _chosen_regions(provider, options.regions)
    with _timed(seconds, "instance_types"):
        types = frame_rows(provider.fetch_instance_types(regions))
    with _timed(seconds, "offers"):
        purchase_options = options.purchase_options or provider.info.purchase_options
        offers = frame_rows(provider.fetch_offers(regions, purchase_options))
    log.progress("", "", 0)
    return _Fetched(types, offers, regions)


def _chosen_regions(provider: Provider, patterns: Sequence[str]) -> list[str]:
    available = provider.fetch_regions()
    if not patterns:
        return available
    name = provider.info.name
    chosen = [
        region
        for region in available
        if any(fnmatchcase(f"{name}/{region}" if "/" in p else region, p) for p in patterns)
    ]
    if not chosen:
        import difflib

        close = difflib.get_close_matches(patterns[0], available, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"it has {len(available)} regions"
        raise CatalogInputError(f"no region of {name} fits {', '.join(map(repr, patterns))} ({hint})")
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
    refuse_emptiness(name, checked, previous)
    if not options.regions:
        asked_for = options.purchase_options or provider.info.purchase_options
        keep_vanished_options(name, checked, previous, asked_for, log)
    old = previous.offers() if previous else []
    offers, waiting = set_aside(checked.offers, old, checked.refused_offers)
    failed_regions, lost_options = _lost(log, fetched.regions)
    requested = frozenset(options.purchase_options) or (
        provider.info.purchase_options if lost_options else None
    )
    with _timed(seconds, "store"):
        saved = save(
            name,
            checked.instance_types,
            offers,
            merge_regions=sorted(failed_regions),
            regions=fetched.regions if options.regions else None,
            purchase_options=None if requested is None else sorted(requested - lost_options),
            quarantine=[quote.values() for quote in waiting],
        )
    before = previous.n_offers if previous else 0
    if len(checked.offers) < STEEP_FALL_RATIO * before and not options.regions and not requested:
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
        quarantine=waiting,
        seconds=seconds,
        sha256=saved.manifest.sha256,
        **_from_log(log),
    )


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
    logged = _from_log(log)
    logged["failures"] = (Failure.of(error), *logged["failures"])
    return Outcome(
        provider=name,
        status="skipped" if isinstance(error, CredentialsMissing | CatalogInputError) else "failed",
        last_good_as_of=previous.as_of if previous else "",
        seconds=seconds,
        **logged,
    )


def _from_log(log: FetchLog) -> dict[str, Any]:
    return {
        "not_understood": tuple(log.not_understood),
        "failures": tuple(Failure.of(error) for error in list(log.failures)),
        "remarks": tuple(redact(text) for text in log.remarks),
    }


def _default_save() -> Save:
    from catalogs.store.history import save_snapshot

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
    """Silence the SDKs' notes on retries: the outcome reports failures, and the notes may show URLs."""
    logs = [logging.getLogger(name) for name in _TRANSPORT_LOGS]
    levels = [log.level for log in logs]
    try:
        for log in logs:
            log.setLevel(logging.ERROR)
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
