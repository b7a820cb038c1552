"""What a signer states of a catalog: its contents by hash, when it was signed and until when it holds.

The statement is `catalog.signed.json` beside the directories of the providers, so that one signature covers all of
them: a provider that was removed, swapped or taken from another day is seen as well as a changed row. The signature
(Ed25519, RFC 8032) is over the very bytes of the statement, which is a text inside the file; nothing is re-encoded.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogs.errors import (
    CatalogInputError,
    ExpiredCatalogError,
    ForeignCatalogError,
    TamperedCatalogError,
    UnsignedCatalogError,
)
from catalogs.store.read import Source

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

STATEMENT = "catalog.signed.json"
KIND, VERSION = "planner-catalog", 1
CONTEXT = b"planner-catalog-statement-v1\0"  # so that no signature of another kind of file can be used here
_MAX_BYTES = 1 << 20
_PEM_END = b"-----END PUBLIC KEY-----"
_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class Statement:
    """A statement whose signature was checked.

    Attributes:
        path: the file it was read from.
        key_id: the first 16 digits of the sha256 of the public key's 32 bytes.
        signed_at, expires_at: moments in UTC.
        providers: what is stated of each provider: the fields of its manifest and sha256 per file.
    """

    path: Path
    key_id: str
    signed_at: datetime
    expires_at: datetime
    providers: Mapping[str, Any]

    def check_contents(self, sources: Sequence[Source]) -> None:
        """Compare what was read with what is stated: every provider, every manifest field, every byte.

        Raises:
            TamperedCatalogError: they differ; names the provider.
        """
        read = {manifest.provider for manifest, _ in sources}
        for name in sorted(read ^ set(self.providers)):
            fault = "is not in the signed statement" if name in read else "was signed and is missing"
            raise TamperedCatalogError(f"tampered catalog: {self.path.parent}: {name} {fault}; {_GET_AGAIN}")
        for source in sources:
            name = source[0].provider
            if described(source) != self.providers[name]:
                raise TamperedCatalogError(
                    f"tampered catalog: {self.path.parent}: {name} is not the snapshot that was signed on "
                    f"{self.signed_at:%Y-%m-%d}; {_GET_AGAIN}"
                )


_GET_AGAIN = "get the catalog again from whoever signs it"


def described(source: Source) -> dict[str, Any]:
    """What a statement says of one provider: its manifest, and the sha256 of the bytes that were read."""
    manifest, files = source
    hashes = {path.name: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    return {**manifest._asdict(), "sources": list(manifest.sources), "files": hashes}


def statement_text(sources: Sequence[Source], signed_at: datetime, expires_at: datetime) -> str:
    """The text that is signed."""
    values = {
        "kind": KIND,
        "version": VERSION,
        "signed_at": signed_at.isoformat(timespec="seconds"),
        "expires_at": expires_at.isoformat(timespec="seconds"),
        "providers": {source[0].provider: described(source) for source in sources},
    }
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def key_id(key: Ed25519PublicKey) -> str:
    """Name of a public key: the first 16 digits of the sha256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def read_public_keys(path: Path) -> dict[str, Ed25519PublicKey]:
    """Read the public keys (PEM, one or more below each other) of a file, by their names.

    Raises:
        CatalogInputError: the file cannot be read or holds something else.
    """
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    keys = {}
    for block in read_bounded(path).split(_PEM_END)[:-1]:
        try:
            key = load_pem_public_key(block.strip() + b"\n" + _PEM_END + b"\n")
        except (ValueError, TypeError, UnsupportedAlgorithm, InternalError) as error:
            raise CatalogInputError(f"{path}: not a public key in PEM: {error}; {_KEYGEN}") from error
        if not isinstance(key, Ed25519PublicKey):
            raise CatalogInputError(f"{path}: a public key of another kind than Ed25519; {_KEYGEN}")
        keys[key_id(key)] = key
    if not keys:
        raise CatalogInputError(f"{path}: holds no public key in PEM; {_KEYGEN}")
    return keys


_KEYGEN = "`planner catalog keygen FILE` writes FILE.pub"


def open_statement(root: Path, key_file: Path, now: datetime | None = None) -> Statement:
    """Read the statement of the catalog in `root` and check its signature and its dates.

    Args:
        root: directory of the catalog.
        key_file: public keys, one of which must have signed it.
        now: the moment to judge by; default: the clock.

    Raises:
        UnsignedCatalogError: there is no statement.
        ForeignCatalogError: another key signed it.
        TamperedCatalogError: the signature is wrong, or the file damaged.
        ExpiredCatalogError: it no longer holds, or is dated in the future.
        CatalogInputError: the key file is wrong.
    """
    keys, path = read_public_keys(key_file), root / STATEMENT
    if not path.exists():
        raise UnsignedCatalogError(
            f"unsigned catalog: {root} has no {STATEMENT}, and {key_file} is required to have signed it; use a "
            "signed catalog (`planner catalog sign` makes one, --catalog-dir names it) or drop the key"
        )
    content = read_bounded(path)
    text, name, signature = _parts(path, content)
    if name not in keys:
        raise ForeignCatalogError(
            f"foreign catalog: {path} is signed by key {name[:200]}, and {key_file} holds {', '.join(sorted(keys))}; "
            "get a catalog of the pinned signer, or pin the new key after asking its owner"
        )
    _check_signature(path, keys[name], text, signature)
    statement = _parse(path, name, text)
    _check_dates(statement, now or datetime.now(UTC))
    return statement


def _parts(path: Path, content: bytes) -> tuple[str, str, bytes]:
    """Statement, name of the key and signature, as the file has them."""
    try:
        values = json.loads(content.decode("utf-8"))
        text, name = values["statement"], values["key_id"]
        signature = base64.b64decode(values["signature"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise TamperedCatalogError(f"tampered catalog: {path} is damaged ({error}); {_GET_AGAIN}") from error
    if not isinstance(text, str) or not isinstance(name, str):
        raise TamperedCatalogError(f"tampered catalog: {path} is damaged; {_GET_AGAIN}")
    return text, name[:64], signature


def _check_signature(path: Path, key: Ed25519PublicKey, text: str, signature: bytes) -> None:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, CONTEXT + text.encode("utf-8"))
    except (InvalidSignature, UnicodeEncodeError) as error:
        raise TamperedCatalogError(
            f"tampered catalog: the signature in {path} is not one of its statement; {_GET_AGAIN}"
        ) from error


def _parse(path: Path, name: str, text: str) -> Statement:
    """Read a statement whose signature is right: only a signer of another version can have written something else."""
    try:
        values = json.loads(text)
        if (values["kind"], values["version"]) != (KIND, VERSION):
            raise ValueError(f"version {values['version']!r} of {values['kind']!r}")
        signed_at, expires_at = (datetime.fromisoformat(values[key]) for key in ("signed_at", "expires_at"))
        if signed_at.tzinfo is None or expires_at.tzinfo is None or not isinstance(values["providers"], dict):
            raise ValueError("a moment without a time zone, or no providers")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CatalogInputError(
            f"{path}: a statement that this planner cannot read ({error}); update the planner"
        ) from error
    return Statement(path, name, signed_at, expires_at, values["providers"])


def _check_dates(statement: Statement, now: datetime) -> None:
    if now >= statement.expires_at:
        raise ExpiredCatalogError(
            f"expired catalog: the statement in {statement.path} held until {statement.expires_at:%Y-%m-%d %H:%M} UTC; "
            "get the present one from whoever signs it"
        )
    if now + _CLOCK_SKEW < statement.signed_at:
        raise ExpiredCatalogError(
            f"expired catalog: {statement.path} was signed on {statement.signed_at:%Y-%m-%d %H:%M} UTC, which is in "
            "the future; set the clock of this machine"
        )


def read_bounded(path: Path) -> bytes:
    """Read a key or a statement.

    Raises:
        CatalogInputError: no such file, no regular file, or larger than 1 MiB.
    """
    try:
        if not path.is_file():
            raise CatalogInputError(f"{path}: no such file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise CatalogInputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise CatalogInputError(f"{path}: larger than {_MAX_BYTES >> 20} MiB")
    return content
