"""Which names a pattern fits: globs of regions, machines and accelerators."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(pattern: str, value: str) -> bool:
    """Whether `value` matches the glob `pattern`, as `fnmatch.fnmatchcase` says it.

    >>> matches("us-*", "us-east-1"), matches("us-*", "eu-north-1"), matches("*", "")
    (True, False, True)
    """
    if pattern in ("*", value):
        return "[" not in pattern or fnmatchcase(value, pattern)
    if pattern[:1] not in ("*", "?", "[", value[:1]):  # most of all that are asked
        return False
    stem = pattern.removesuffix("*")
    if "*" in stem or "?" in stem or "[" in stem:
        return fnmatchcase(value, pattern)
    # the usual case, a plain word or prefix: no regular expression to compile
    return stem != pattern and value.startswith(stem)
