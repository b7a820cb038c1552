"""docs/catalog.md agrees with the data dictionary, the flag table and the snapshot."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from catalogs.offers.flags import admit_offers, load_flags
from catalogs.tables.dictionary import replace_dictionary
from catalogs.tables.model import REGIONAL_OFFER_KEY, Catalog


def test_data_dictionary_is_up_to_date(project_root: Path, request: pytest.FixtureRequest) -> None:
    page = project_root / "docs" / "catalog.md"
    wanted = replace_dictionary(page.read_text(encoding="utf-8"))
    if request.config.getoption("--update-golden"):
        page.write_text(wanted, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == wanted, (
        "run pytest --update-golden tests/catalogs/test_docs.py"
    )


def test_flags_are_documented(project_root: Path) -> None:
    text = (project_root / "docs" / "catalog.md").read_text(encoding="utf-8")
    assert [flag for flag in load_flags() if flag not in text] == []


def test_counts_are_those_of_the_snapshot(project_root: Path, bundled: Catalog) -> None:
    text = (project_root / "docs" / "catalog.md").read_text(encoding="utf-8")
    admitted = admit_offers(bundled.offers, allow_flagged=False).mask
    regional = Counter(key[0] for key in set(bundled.offers.keys_of(*REGIONAL_OFFER_KEY)))
    for manifest in bundled.manifests:
        mine = bundled.offers.equals("provider", manifest.provider)
        numbers = (
            manifest.n_instance_types,
            manifest.n_offers,
            regional[manifest.provider],
            (mine & admitted).sum(),
        )
        assert f"| {manifest.provider} | {' | '.join(map(str, numbers))} |" in text
