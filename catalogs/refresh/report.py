"""What became of a refresh: per provider what was stored, kept, refused and could not be fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.providers.base import NotUnderstood, ProviderError
from catalogs.providers.redact import redact
from catalogs.refresh.quarantine import Waiting


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
        quarantine: quotes that wait until a person confirms them.
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
    quarantine: tuple[Waiting, ...] = ()
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
        tried = [outcome for outcome in self.outcomes if outcome.status != "skipped"]
        return any(o.is_stored for o in tried) and not any(o.failures for o in tried)


def _place(error: Exception) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [
        frame for frame in frames if Path(__file__).parents[1].name in Path(frame.filename).parts
    ] or frames
    return f"in {Path(own_frames[-1].filename).name}:{own_frames[-1].lineno}" if own_frames else ""
