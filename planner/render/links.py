"""Where a cell that names a file leads to on a page."""

from __future__ import annotations

import os
from urllib.parse import quote, urlsplit

_URL = "/:?#[]@!$&'()*+,;=%"  # what an address may hold as it is


def address(named: str, folder: str) -> str:
    """The address of a local file, from the page's own folder, or of a page on the web; empty where there is none.

    Args:
        named: a path as the command was given it, or a URL. Of URLs only those of https are followed.
        folder: folder that the page is written to; empty: the one that the command runs in.
    """
    parts = urlsplit(named) if "://" in named else None
    if parts is not None:
        return quote(named, safe=_URL) if parts.scheme == "https" and parts.hostname else ""
    if not named or not named.isprintable():
        return ""
    # a colon in a name would be read as a scheme
    return f"./{quote(os.path.relpath(named, folder or os.curdir).replace(os.sep, '/'))}"
