"""Keep the history small: drop repeated snapshots, thin old ones; never the snapshot in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from catalogs.store.files import remove_directory, writing
from catalogs.store.read import history_directory
from catalogs.store.snapshots import Snapshot, histories, stored_snapshots

COMPACT_AFTER_DAYS = 30
PRUNE_AFTER_DAYS = 365


def compact(
    *,
    older_than_days: int = COMPACT_AFTER_DAYS,
    provider: str | None = None,
    today: date | None = None,
) -> tuple[Snapshot, ...]:
    """Remove old snapshots that hold the same as the one before them: no answer about the past changes.

    The first and the last snapshot of each month stay, and the one in use.

    Args:
        older_than_days: only snapshots older than this.
        provider: only of this provider.
        today: the day ages are counted from; default: today (UTC).

    Returns:
        The snapshots removed.

    Raises:
        CatalogError: when another writer does not end or the directory is not writable.
    """
    return _remove(_repeats, older_than_days, provider, today)


def prune(
    *,
    older_than_days: int = PRUNE_AFTER_DAYS,
    provider: str | None = None,
    today: date | None = None,
) -> tuple[Snapshot, ...]:
    """Remove old snapshots but the first and the last of each month, and the one in use.

    Arguments, result and errors are those of `compact`.
    """
    return _remove(list, older_than_days, provider, today)


def _remove(
    choose: Callable[[Sequence[Snapshot]], list[Snapshot]],
    older_than_days: int,
    provider: str | None,
    today: date | None,
) -> tuple[Snapshot, ...]:
    root = history_directory()
    before = (today or datetime.now(UTC).date()) - timedelta(days=older_than_days)
    removed: list[Snapshot] = []
    for history in histories(root):
        if provider not in (None, history.name):
            continue
        with writing(root, history.name) as directory:
            snapshots = stored_snapshots(directory)
            protected = _month_ends(snapshots) | {_in_use(snapshots)}
            for snapshot in choose(snapshots):
                if snapshot.as_of < before and snapshot.path not in protected:
                    remove_directory(snapshot.path)
                    removed.append(snapshot)
    return tuple(removed)


def _repeats(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    pairs = zip(snapshots[1:], snapshots, strict=False)
    return [
        snapshot
        for snapshot, before in pairs
        if snapshot.content_sha256 and snapshot.content_sha256 == before.content_sha256
    ]


def _month_ends(snapshots: Sequence[Snapshot]) -> set[Path]:
    """First and last snapshot of each month."""
    months: dict[tuple[int, int], list[Path]] = {}
    for snapshot in snapshots:
        months.setdefault((snapshot.as_of.year, snapshot.as_of.month), []).append(snapshot.path)
    return {path for paths in months.values() for path in (paths[0], paths[-1])}


def _in_use(snapshots: Sequence[Snapshot]) -> Path | None:
    """The snapshot in use; without a pointer the one written last, which readers fall back to."""
    current = [snapshot for snapshot in snapshots if snapshot.is_current]
    newest = max(snapshots, key=lambda snapshot: snapshot.sequence, default=None)
    return current[0].path if current else newest.path if newest else None
