"""The pinned key: while one is set, a catalog that it did not sign is refused, and so is an older one than was seen.

`PLANNER_CATALOG_KEY` names a file of public keys. The newest moment of signing per key is noted in `catalog-seen.json`
beside the history, so that a mirror cannot bring back the prices of last month before they expire.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from catalogs.errors import CatalogInputError, ReplayedCatalogError, UnsignedCatalogError
from catalogs.store.read import Source, history_directory
from catalogs.store.statement import STATEMENT, Statement, open_statement, read_bounded

VARIABLE = "PLANNER_CATALOG_KEY"
_SEEN = "catalog-seen.json"
_LOCK_TIMEOUT_S = 10.0


def pinned_key() -> Path | None:
    """The file of public keys that catalogs must be signed by; None where none is pinned."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else None


def require_trusted(sources: Sequence[Source], key_file: Path) -> Statement:
    """Refuse what was read of a catalog unless a pinned key signed it, the statement holds and none newer was seen.

    Args:
        sources: what was read, in memory: nothing is read a second time.
        key_file: pinned public keys.

    Raises:
        CatalogTrustError: unsigned, foreign, tampered, expired or replayed, in the words of its class.
        CatalogInputError: the key file, or the note of what was seen, cannot be read.
    """
    roots = {path.parent.parent for _, files in sources for path in files}
    if len(roots) != 1:
        raise UnsignedCatalogError(
            f"unsigned catalog: refreshed and bundled snapshots carry no signature, and {VARIABLE} ({key_file}) asks "
            "for one; name a signed catalog (--catalog-dir, PLANNER_CATALOG_DIR; `planner catalog sign` makes one) or "
            "unset the key"
        )
    statement = open_statement(roots.pop(), key_file)
    statement.check_contents(sources)
    _refuse_older(statement)
    return statement


def seen_file() -> Path:
    """Where the newest moment of signing per key is noted."""
    return history_directory().with_name(_SEEN)


def _refuse_older(statement: Statement) -> None:
    newest = _read_seen().get(statement.key_id)
    if newest is not None and statement.signed_at < newest:
        raise ReplayedCatalogError(
            f"replayed catalog: {statement.path} was signed on {statement.signed_at:%Y-%m-%d %H:%M:%S} UTC, and this "
            f"machine has seen one of {newest:%Y-%m-%d %H:%M:%S} by the same key; get the present catalog, or delete "
            f"{seen_file()} to go back on purpose"
        )
    if newest is None or statement.signed_at > newest:
        _note(statement)


def _read_seen() -> dict[str, datetime]:
    path = seen_file()
    if not path.exists():
        return {}
    try:
        values = json.loads(read_bounded(path))["newest"]
        signed_at = {
            str(name): datetime.fromisoformat(moment).astimezone(UTC) for name, moment in values.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CatalogInputError(
            f"{path}: damaged ({error}): whether an older catalog is replayed is unknown; delete it once the "
            "catalog in use is known to be the present one"
        ) from error
    return signed_at


def _note(statement: Statement) -> None:
    """Note a newer moment of signing; where nothing can be written, say that replays go unseen."""
    from filelock import FileLock, Timeout

    path = seen_file()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=_LOCK_TIMEOUT_S):
            newest = {**_read_seen()}
            moment = max(statement.signed_at, newest.get(statement.key_id, statement.signed_at))
            newest[statement.key_id] = moment
            values = {name: signed.isoformat(timespec="seconds") for name, signed in sorted(newest.items())}
            new.write_text(json.dumps({"version": 1, "newest": values}, indent=1) + "\n", encoding="utf-8")
            new.replace(path)
    except (OSError, NotImplementedError, Timeout) as error:
        import logging

        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        logging.getLogger(__name__).warning(
            f"cannot note in {path} which signed catalog was seen ({error}): an older {STATEMENT} by the same key "
            "would be accepted until it expires"
        )
