"""Kept answers of public lists: an unchanged one is not sent again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


class EtagStore:
    """One kept answer: `<hash of the URL>.json` with its tag, `.body` with its bytes."""

    def __init__(self, directory: Path | None, url: str, params: Mapping[str, str] | None) -> None:
        assert directory is not None
        name = hashlib.sha256(json.dumps([url, sorted((params or {}).items())]).encode()).hexdigest()[:32]
        self.path = directory / f"{name}.etag"

    def load(self) -> tuple[str, bytes] | None:
        """Return tag and body; None where there is none or it was damaged."""
        try:
            head, _, body = self.path.read_bytes().partition(b"\n")
            meta = json.loads(head)
            if hashlib.sha256(body).hexdigest() == meta["sha256"]:
                return str(meta["etag"]), body
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return None

    def save(self, etag: str, body: bytes) -> None:
        """Keep an answer; a cache that cannot be written changes nothing."""
        head = json.dumps({"etag": etag, "sha256": hashlib.sha256(body).hexdigest()}).encode()
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(head + b"\n" + body)
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
