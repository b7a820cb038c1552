"""Patterns of names mean what `fnmatch` says."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from catalogs.patterns import matches

texts = st.text(alphabet="ab-*?[]\n", max_size=6)


@given(texts, texts)
def test_a_pattern_matches_what_fnmatch_says(pattern: str, value: str) -> None:
    assert matches(pattern, value) == fnmatchcase(value, pattern)


@given(st.text(alphabet="ab-", max_size=4), st.sampled_from(["", "*", "?", "[ab]"]))
def test_words_and_prefixes_match_as_they_do_there(stem: str, end: str) -> None:
    for value in (stem, f"{stem}a", f"{stem}-b", stem[:-1], ""):
        assert matches(stem + end, value) == fnmatchcase(value, stem + end)
