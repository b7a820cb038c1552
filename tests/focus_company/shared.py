"""One small company for all tests of a session; nobody may change its files."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from tests.focus_company import Truth, make_company


@lru_cache(maxsize=1)
def small_company() -> Truth:
    """Three months, FOCUS 1.4, Parquet."""
    # no random underscore in the name: Markdown escapes some of them, and goldens name the folder "bill"
    folder = Path(tempfile.gettempdir()) / f"planner-company-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return make_company(3, rows_per_month=4000, out=folder)
