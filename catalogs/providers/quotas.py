"""The account's own limits, read live and kept for a while: for `optimize --quota live`, never on the default path.

A cache file per set of providers, regions and identity (profile, project, subscription; of keys only a hash) keeps
the second plan of an hour from asking again. Unknown stays unknown: a provider that refuses is reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from catalogs.errors import CatalogError
from catalogs.providers.base import FetchLog, FetchOptions, Provider, QuotaProvider, frame_rows
from catalogs.providers.redact import redact
from catalogs.providers.registry import check_names, create_provider

MAX_AGE_S = 3600.0
_VERSION = 1
# Who is asked for: names are kept as they are, keys and files as a part of a hash only.
_IDENTITY = (
    "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_SUBSCRIPTION_ID", "AZURE_CLIENT_ID", "ALIBABA_CLOUD_PROFILE", "ALIBABA_CLOUD_ACCESS_KEY_ID",
)  # fmt: skip


@dataclass(frozen=True)
class LiveQuota:
    """One limit of the account.

    Attributes:
        provider: provider id.
        region: region id.
        quota: the provider's name of the quota.
        code: its code, "" where it has none.
        unit: `vCPU`, `GPU` or `instances`.
        limit: most that may be used at once, in `unit`.
        as_of: moment it was read, ISO, UTC.
    """

    provider: str
    region: str
    quota: str
    code: str
    unit: str
    limit: float
    as_of: str


@dataclass(frozen=True)
class LiveQuotas:
    """Limits, and what could not be read.

    Attributes:
        quotas: sorted by provider, region and quota.
        failures: provider (and region) to a sentence with the remedy.
        is_cached: whether nobody was asked.
    """

    quotas: tuple[LiveQuota, ...]
    failures: Mapping[str, str]
    is_cached: bool = False

    def limit_of(self, provider: str, region: str, *names: str) -> float | None:
        """The least limit of a quota by one of its names or codes; None where it is not known."""
        limits = [
            quota.limit
            for quota in self.quotas
            if quota.provider == provider
            and quota.region == region
            and {quota.quota, quota.code} & set(names)
        ]
        return min(limits) if limits else None


def fetch_live_quotas(
    providers: Sequence[str],
    regions: Sequence[str] = (),
    *,
    options: FetchOptions | None = None,
    max_age_s: float = MAX_AGE_S,
    create: Callable[[str, FetchOptions], Provider] | None = None,
    cache_dir: Path | None = None,
    now_s: Callable[[], float] = time.time,
) -> LiveQuotas:
    """Read the account's quotas of some providers, or take them from the cache.

    Args:
        providers: provider ids; one that tells no quotas is reported as such.
        regions: region ids or globs, also `provider/region`; empty for all.
        options: time-outs and retries.
        max_age_s: how old a cached answer may be, s; 0 asks again.
        create: makes a provider by its id; default: the registry.
        cache_dir: where answers are kept; default: the planner's cache directory.
        now_s: clock, s since 1970.

    Raises:
        CatalogInputError: when a provider id is not known.
    """
    if create is None:
        check_names(providers)
        create = create_provider
    base_options = options or FetchOptions()
    path = kept_file(providers, regions, cache_dir)
    cached = _load(path, max_age_s, now_s())
    if cached is not None:
        return cached
    quotas: list[LiveQuota] = []
    failures: dict[str, str] = {}
    for name in dict.fromkeys(providers):
        log = FetchLog(on_progress=base_options.log.on_progress)
        try:
            quotas += _of(create(name, replace(base_options, log=log)), regions)
        except CatalogError as error:
            failures[name] = redact(str(error))
        except Exception as error:  # noqa: BLE001 - a defect of one provider must not hide the others
            failures[name] = f"internal error {type(error).__name__}; please report it"
        failures |= {f"{name} {error.region}".strip(): redact(str(error)) for error in log.failures}
    quotas.sort(key=lambda one: (one.provider, one.region, one.quota, one.code))
    answer = LiveQuotas(tuple(quotas), failures)
    if quotas and not failures:
        _save(path, answer, now_s())
    return answer


def _of(provider: Provider, patterns: Sequence[str]) -> list[LiveQuota]:
    name = provider.info.name
    if not isinstance(provider, QuotaProvider):
        raise CatalogError(f"{name} does not report an account's quotas; declare them in the workload")
    available = provider.fetch_regions()
    chosen = [
        region
        for region in available
        if not patterns
        or any(fnmatchcase(f"{name}/{region}" if "/" in text else region, text) for text in patterns)
    ]
    as_of = datetime.now(UTC).isoformat(timespec="seconds")
    return [
        LiveQuota(
            row["provider"], row["region"], row["quota"], row["code"], row["unit"], float(row["limit"]), as_of
        )
        for row in (frame_rows(provider.fetch_quotas(chosen)) if chosen else ())
    ]


def kept_file(providers: Sequence[str], regions: Sequence[str], directory: Path | None) -> Path:
    """Where the answer for some providers and regions is kept; default: the planner's cache directory."""
    if directory is None:
        from catalogs.cache.copies import cache_directory

        directory = cache_directory()
    identity = [os.environ.get(name, "") for name in _IDENTITY]
    key = json.dumps([_VERSION, sorted(set(providers)), sorted(set(regions)), identity])
    return directory / f"quotas-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _load(path: Path, max_age_s: float, now_s: float) -> LiveQuotas | None:
    """A kept answer that is young enough; None for everything else, a damaged file included."""
    try:
        saved = json.loads(path.read_bytes())
        age_s = now_s - float(saved["saved_at_s"])
        if not 0 <= age_s < max_age_s:  # a clock moved backwards makes it of unknown age
            return None
        return LiveQuotas(tuple(LiveQuota(**quota) for quota in saved["quotas"]), {}, is_cached=True)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _save(path: Path, answer: LiveQuotas, now_s: float) -> None:
    """Keep an answer, readable by its owner only; a cache that cannot be written changes nothing."""
    import tempfile

    text = json.dumps({"saved_at_s": now_s, "quotas": [asdict(quota) for quota in answer.quotas]})
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".quotas-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
