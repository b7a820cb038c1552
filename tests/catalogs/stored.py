"""The catalog of one provider as it is stored now, without the tens of thousands of bundled rows of the others."""

from __future__ import annotations

from catalogs.store.load import assemble, read_sources
from catalogs.tables.model import Catalog


def stored(provider: str) -> Catalog:
    """What `load_catalog` reads and checks of `provider`, parsed anew; without it a catalog of no manifests."""
    return assemble([source for source in read_sources() if source[0].provider == provider], cache=False)
