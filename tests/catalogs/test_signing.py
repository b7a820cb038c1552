"""Signed catalogs: what a pinned key lets through, and every attack on one named."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalogs.errors import (
    CatalogError,
    CatalogInputError,
    CatalogTrustError,
    ExpiredCatalogError,
    ForeignCatalogError,
    ReplayedCatalogError,
    TamperedCatalogError,
    UnsignedCatalogError,
)
from catalogs.store import signing
from catalogs.store.history import open_snapshot
from catalogs.store.load import load_catalog
from catalogs.store.read import bundled_directory
from catalogs.store.signing import make_key_pair, sign_catalog, verify_catalog
from catalogs.store.statement import CONTEXT, STATEMENT
from catalogs.store.trust import seen_file
from tests.conftest import Run

pytest.importorskip("cryptography")
OLD, NEW = datetime.now(UTC) - timedelta(days=3), datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two small providers of the bundled snapshot."""
    for name in ("lambda", "oci"):
        shutil.copytree(bundled_directory() / name, tmp_path / "source" / name)
    return tmp_path / "source"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_key_pair(tmp_path / "prices.key")
    return tmp_path / "prices.key"


@pytest.fixture
def pinned(keys: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A signed catalog whose key is pinned."""
    monkeypatch.setenv("PLANNER_CATALOG_KEY", f"{keys}.pub")
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    sign_catalog(keys, tmp_path / "signed", 30, directory=source, now=NEW)
    return tmp_path / "signed"


def cheaper(root: Path, provider: str = "lambda") -> None:
    """Divide every price by ten and make the manifest agree, as somebody who knows the format would."""
    offers, manifest = root / provider / "offers.csv.gz", root / provider / "manifest.json"
    lines = gzip.decompress(offers.read_bytes()).decode().splitlines()
    at = lines[0].split(",").index("price_per_hour")
    rows = [line.split(",") for line in lines[1:]]
    for row in rows:
        row[at] = f"0{row[at]}" if row[at].startswith(".") else f"0.{row[at].replace('.', '')}"
    offers.write_bytes(gzip.compress("\n".join([lines[0], *map(",".join, rows)]).encode(), mtime=0))
    values = json.loads(manifest.read_text())
    values["files"]["offers.csv.gz"] = hashlib.sha256(offers.read_bytes()).hexdigest()
    digests = "".join(values["files"][name] for name in sorted(values["files"]))
    values["sha256"] = hashlib.sha256(digests.encode()).hexdigest()
    manifest.write_text(json.dumps(values))


def edit(root: Path, **changes: Any) -> None:
    values = json.loads((root / STATEMENT).read_text())
    (root / STATEMENT).write_text(json.dumps({**values, **changes}))


def test_what_a_pinned_key_signed_is_the_same_catalog(pinned: Path, source: Path, tmp_path: Path) -> None:
    signed = load_catalog(pinned)
    assert not list(tmp_path.glob("cache/*"))  # nobody signs compiled copies: none is read or written
    os.environ.pop("PLANNER_CATALOG_KEY")
    assert signed.sha256 == load_catalog(source).sha256
    assert signed.offers.n_rows == load_catalog(source).offers.n_rows


def test_a_private_key_is_its_owners_alone(keys: Path, source: Path, tmp_path: Path) -> None:
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert b"PRIVATE" not in Path(f"{keys}.pub").read_bytes()
    with pytest.raises(CatalogInputError, match="exists already"):
        make_key_pair(keys)
    keys.chmod(0o640)
    with pytest.raises(CatalogInputError, match="others may read this private key; chmod 600"):
        sign_catalog(keys, tmp_path / "out", 30, directory=source)
    assert not (tmp_path / "out").exists()


def test_what_a_killed_writer_left_is_removed_by_the_next(keys: Path, source: Path, tmp_path: Path) -> None:
    """SIGKILL during `catalog sign` left a folder of prices for ever; one of a process at work stays."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    machine = f"{zlib.crc32(os.uname().nodename.encode()):08x}"
    ends = (f"{machine}-{ended.pid}", f"{machine}-{os.getppid()}", f"0-{ended.pid}", "by-somebody")
    dead, alive, elsewhere, other = (tmp_path / f".new-signed-{end}" for end in ends)
    for folder in (dead, alive, elsewhere, other):
        (folder / "lambda").mkdir(parents=True)
    sign_catalog(keys, tmp_path / "signed", 30, directory=source)
    assert not dead.exists() and alive.exists() and elsewhere.exists() and other.exists()


def test_who_signs_into_a_directory_second_is_told_that_it_exists(
    keys: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, of_another, write = tmp_path / "signed", tmp_path / "other", signing.write_new
    sign_catalog(keys, of_another, 30, directory=source)

    def write_and_lose(*args: Any) -> None:
        write(*args)
        of_another.rename(out)  # another process is a moment quicker

    monkeypatch.setattr(signing, "write_new", write_and_lose)
    with pytest.raises(CatalogInputError, match="exists already"):
        sign_catalog(keys, out, 30, directory=source)
    verify_catalog(out, Path(f"{keys}.pub"))
    assert [path.name for path in tmp_path.glob(".new-*")] == []


def test_a_changed_row_is_refused_even_where_the_manifest_agrees(pinned: Path) -> None:
    cheaper(pinned)
    with pytest.raises(TamperedCatalogError, match="lambda is not the snapshot that was signed"):
        load_catalog(pinned)


def test_a_snapshot_of_another_signed_catalog_is_refused(
    pinned: Path, keys: Path, source: Path, tmp_path: Path
) -> None:
    cheaper(source)
    sign_catalog(keys, tmp_path / "other", 30, directory=source, now=NEW)
    shutil.rmtree(pinned / "lambda")
    shutil.copytree(tmp_path / "other" / "lambda", pinned / "lambda")
    with pytest.raises(TamperedCatalogError, match="lambda is not the snapshot"):
        load_catalog(pinned)


def test_a_provider_more_or_less_is_refused(pinned: Path) -> None:
    shutil.copytree(bundled_directory() / "vastai", pinned / "vastai")
    with pytest.raises(TamperedCatalogError, match="vastai is not in the signed statement"):
        load_catalog(pinned)
    shutil.rmtree(pinned / "vastai")
    shutil.rmtree(pinned / "oci")
    with pytest.raises(TamperedCatalogError, match="oci was signed and is missing"):
        load_catalog(pinned)


def test_an_expired_statement_is_refused_and_so_is_one_of_the_future(
    pinned: Path, keys: Path, source: Path, tmp_path: Path
) -> None:
    public = Path(f"{keys}.pub")
    with pytest.raises(ExpiredCatalogError, match="held until"):
        verify_catalog(pinned, public, NEW + timedelta(days=30))
    assert verify_catalog(pinned, public, NEW + timedelta(days=30, seconds=-2)).expires_at
    with pytest.raises(ExpiredCatalogError, match="in the future; set the clock"):
        verify_catalog(pinned, public, NEW - timedelta(days=1))
    sign_catalog(keys, tmp_path / "stale", 1, directory=source, now=OLD)
    with pytest.raises(ExpiredCatalogError):
        load_catalog(tmp_path / "stale")


def test_another_key_is_refused(pinned: Path, source: Path, tmp_path: Path) -> None:
    make_key_pair(tmp_path / "foreign.key")
    sign_catalog(tmp_path / "foreign.key", tmp_path / "foreign", 30, directory=source)
    with pytest.raises(ForeignCatalogError, match=r"is signed by key [0-9a-f]{16}, and .*prices\.key\.pub"):
        load_catalog(tmp_path / "foreign")
    (name,) = {json.loads((pinned / STATEMENT).read_text())["key_id"]}
    edit(tmp_path / "foreign", key_id=name)  # under the pinned key's name: the signature gives it away
    with pytest.raises(TamperedCatalogError, match="is not one of its statement"):
        load_catalog(tmp_path / "foreign")


def test_one_of_several_pinned_keys_is_enough(pinned: Path, keys: Path, tmp_path: Path) -> None:
    next_public, _ = make_key_pair(tmp_path / "next.key")
    both = tmp_path / "both.pub"
    both.write_bytes(next_public.read_bytes() + Path(f"{keys}.pub").read_bytes())
    assert set(verify_catalog(pinned, both).providers) == {"lambda", "oci"}


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": ""},
        {"signature": "AAAA"},
        {"signature": "not base64"},
        {"signature": None},
        {"statement": 5},
        {"statement": "{}"},
        {"key_id": []},
    ],
)
def test_a_damaged_statement_is_refused(pinned: Path, changes: dict[str, Any]) -> None:
    edit(pinned, **changes)
    with pytest.raises(TamperedCatalogError):
        load_catalog(pinned)


def test_a_truncated_signature_or_file_is_refused(pinned: Path) -> None:
    content = (pinned / STATEMENT).read_text()
    signature = base64.b64decode(json.loads(content)["signature"])
    edit(pinned, signature=base64.b64encode(signature[:-1]).decode())
    with pytest.raises(TamperedCatalogError, match="is not one of its statement"):
        load_catalog(pinned)
    (pinned / STATEMENT).write_text(content[:-20])
    with pytest.raises(TamperedCatalogError, match="is damaged"):
        load_catalog(pinned)


def test_a_later_end_is_seen(pinned: Path) -> None:
    text = json.loads((pinned / STATEMENT).read_text())["statement"]
    end = json.loads(text)["expires_at"]
    edit(pinned, statement=text.replace(end, end.replace(end[:4], "2999")))
    with pytest.raises(TamperedCatalogError):
        load_catalog(pinned)


def test_a_signature_for_another_purpose_is_none(pinned: Path, keys: Path) -> None:
    from catalogs.store.signing import read_private_key

    text = json.loads((pinned / STATEMENT).read_text())["statement"]
    assert CONTEXT
    edit(pinned, signature=base64.b64encode(read_private_key(keys).sign(text.encode())).decode())
    with pytest.raises(TamperedCatalogError):
        load_catalog(pinned)


def test_an_older_catalog_is_refused_once_a_newer_was_seen(
    pinned: Path, keys: Path, source: Path, tmp_path: Path
) -> None:
    sign_catalog(keys, tmp_path / "old", 30, directory=source, now=OLD)
    load_catalog(tmp_path / "old")
    load_catalog(pinned)
    with pytest.raises(ReplayedCatalogError, match="this machine has seen one of"):
        load_catalog(tmp_path / "old")
    load_catalog(pinned)
    seen_file().write_text('{"newest": 5}')
    with pytest.raises(CatalogInputError, match="damaged"):
        load_catalog(pinned)
    seen_file().unlink()
    load_catalog(tmp_path / "old")


def test_unsigned_catalogs_are_refused_while_a_key_is_pinned(pinned: Path, source: Path) -> None:
    for ask in (
        lambda: load_catalog(source),
        lambda: load_catalog(),
        lambda: open_snapshot("bundled"),
        lambda: open_snapshot("aws@bundled"),
    ):
        with pytest.raises(UnsignedCatalogError):
            ask()


def test_rows_do_not_enter_the_cache_under_the_hash_of_another_snapshot(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    true = json.loads((source / "lambda" / "manifest.json").read_text())["sha256"]
    cheaper(source)
    manifest = source / "lambda" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "sha256": true}))
    with pytest.raises(CatalogError, match="its sha256 is not that of its files"):
        load_catalog(source)


def test_the_commands_make_check_and_refuse(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Run
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    key, signed = tmp_path / "k", tmp_path / "signed"
    assert run_cli("catalog", "keygen", str(key)).code == 0
    made = run_cli("catalog", "--catalog-dir", str(source), "sign", "--key", str(key), "--out", str(signed))
    assert made.code == 0 and "lambda, oci signed by key" in made.stdout
    shown = run_cli("catalog", "verify", str(signed), "--key", f"{key}.pub", "-o", "json")
    assert [one["provider"] for one in json.loads(shown.stdout)["providers"]] == ["lambda", "oci"]
    monkeypatch.setenv("PLANNER_CATALOG_KEY", f"{key}.pub")
    assert run_cli("catalog", "--catalog-dir", str(signed), "list").code == 0
    cheaper(signed)
    for command in (
        ["--catalog-dir", str(signed), "list"],
        ["--catalog-dir", str(source), "list"],
        ["list"],
        ["verify", str(signed), "--key", f"{key}.pub"],
    ):
        refused = run_cli("catalog", *command)
        assert refused.code == 2 and " catalog: " in refused.stderr, refused
    assert issubclass(UnsignedCatalogError, CatalogTrustError)


def test_a_checkout_cannot_replace_the_pinned_key(tmp_path: Path) -> None:
    from planner.config import load_settings

    (tmp_path / "planner.toml").write_text('catalog_key = "attacker.pub"\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('catalog_key = "team.pub"\n')
    settings = {one.name: one for one in load_settings(directory=tmp_path, environ={}, user_file=mine)}
    assert settings["catalog_key"].value == str(tmp_path / "team.pub")
    mine.write_text("")
    settings = {one.name: one for one in load_settings(directory=tmp_path, environ={}, user_file=mine)}
    assert settings["catalog_key"].value == str(tmp_path / "attacker.pub")
