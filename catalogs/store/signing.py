"""Making key pairs, and publishing a catalog with a signed statement beside it."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import shutil
import stat
import zlib
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.store.files import write_directory, write_new
from catalogs.store.load import parse_sources, read_sources
from catalogs.store.read import MANIFEST, Source, read_manifest
from catalogs.store.statement import (
    CONTEXT,
    STATEMENT,
    Statement,
    key_id,
    open_statement,
    read_bounded,
    statement_text,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PRIVATE = 0o600
MAX_DAYS = 3650
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_key_pair(path: Path) -> tuple[Path, str]:
    """Write a new private key to `path` (PKCS 8 in PEM, mode 0600) and its public key beside it.

    Returns:
        The file of the public key (`path` with `.pub` added), and the key's name.

    Raises:
        CatalogInputError: one of the files exists already, or cannot be written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key, public = Ed25519PrivateKey.generate(), path.with_name(f"{path.name}.pub")
    if public.exists():
        raise CatalogInputError(f"{public}: exists already; choose another name, no key is replaced")
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        write_new(path, secret, PRIVATE)
        write_new(
            public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644
        )
    except FileExistsError as error:
        raise CatalogInputError(
            f"{error.filename}: exists already; choose another name, no key is replaced"
        ) from error
    except OSError as error:
        raise CatalogInputError(f"{path}: cannot be written: {error.strerror}") from error
    return public, key_id(key.public_key())


def sign_catalog(
    key_file: Path,
    out: Path,
    days: int,
    *,
    directory: Path | None = None,
    as_of: date | None = None,
    now: datetime | None = None,
) -> Statement:
    """Write a copy of the catalog in use to a new directory, with a statement signed by a private key.

    Args:
        key_file: private key that `make_key_pair` wrote.
        out: the directory to make; appears whole or not at all.
        days: how long the statement holds.
        directory: snapshot directory to publish; default: what `load_catalog` would use.
        as_of: as of `load_catalog`.
        now: moment of signing; default: the clock.

    Raises:
        CatalogInputError: the key is wrong or others may read it, `out` exists, or the days make no sense.
        CatalogError: the catalog cannot be read, or `out` cannot be written.
    """
    if not 1 <= days <= MAX_DAYS:
        raise CatalogInputError(f"a statement holds 1 to {MAX_DAYS} days, not {days}")
    if out.exists():
        raise _existing(out)
    key = read_private_key(key_file)
    signed_at = (now or datetime.now(UTC)).replace(microsecond=0)
    sources = read_sources(directory, as_of)
    parse_sources(sources)  # nothing is signed that no reader could read
    text = statement_text(sources, signed_at, signed_at + timedelta(days=days))
    values = {
        "statement": text,
        "key_id": key_id(key.public_key()),
        "signature": base64.b64encode(key.sign(CONTEXT + text.encode())).decode(),
    }
    _write(out, sources, (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode())
    public = json.loads(text)
    return Statement(
        out / STATEMENT, values["key_id"], signed_at, signed_at + timedelta(days=days), public["providers"]
    )


def verify_catalog(directory: Path, key_file: Path, now: datetime | None = None) -> Statement:
    """Check the statement of a catalog and every byte that it states.

    Args:
        directory: the signed catalog.
        key_file: public keys, one of which must have signed it.
        now: the moment to judge by; default: the clock.

    Raises:
        CatalogTrustError: unsigned, foreign, tampered or expired.
        CatalogError: a snapshot does not fit its manifest, or cannot be read.
    """
    statement = open_statement(directory, key_file, now)
    sources = read_sources(directory)
    statement.check_contents(sources)
    parse_sources(sources)
    return statement


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key that only its owner may read.

    Raises:
        CatalogInputError: it cannot be read, is no Ed25519 key in PEM, or others may read it.
    """
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = read_bounded(path)
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & _OTHERS:
        raise CatalogInputError(
            f"{path}: others may read this private key; chmod 600 {path}, or make a new one"
        )
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError) as error:
        raise CatalogInputError(
            f"{path}: not a private key in PEM without a password; `planner catalog keygen FILE` writes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CatalogInputError(f"{path}: a private key of another kind than Ed25519")
    return key


def _write(out: Path, sources: Sequence[Source], statement: bytes) -> None:
    temporary = out.with_name(f"{_stem(out)}{os.getpid()}")
    _remove_left(out)
    try:
        temporary.mkdir(parents=True)
        for source in sources:
            write_directory(temporary, source[0].provider, _published(source))
        write_new(temporary / STATEMENT, statement, 0o644)
        temporary.rename(out)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):  # another process made it in the meantime
            raise _existing(out) from error
        raise CatalogError(f"cannot write the signed catalog to {out}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _existing(out: Path) -> CatalogInputError:
    return CatalogInputError(
        f"{out}: exists already; choose another directory, a signed one is never changed"
    )


def _remove_left(out: Path) -> None:
    """Remove what killed writers of this directory, on this machine, left half made beside it."""
    stem = _stem(out)
    with contextlib.suppress(OSError):  # whether the folder can be written shows in a moment
        for path in list(out.parent.iterdir()):
            process = path.name.removeprefix(stem)
            left = path.name.startswith(stem) and process.isdecimal()
            if left and (int(process) == os.getpid() or not _is_running(int(process))):
                shutil.rmtree(path, ignore_errors=True)


def _stem(out: Path) -> str:
    """What begins the names of half-made directories: a process on another machine is none of this one's."""
    machine = zlib.crc32(os.uname().nodename.encode() if hasattr(os, "uname") else b"")
    return f".new-{out.name}-{machine:08x}-"


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _published(source: Source) -> dict[str, bytes]:
    """The files of one provider; of the manifest only what readers of a named directory use."""
    manifest, files = source
    folder = next(iter(files)).parent
    values = {**manifest._asdict(), "files": read_manifest(folder / MANIFEST)["files"]}
    text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    return {**{path.name: data for path, data in files.items()}, MANIFEST: text.encode()}
