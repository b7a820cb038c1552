"""The table of network faults at every provider's interfaces; `python -m benchmarks.network_faults` runs all of it."""

from __future__ import annotations

import pytest

from tests.catalogs.providers.network_faults import FAULTS
from tests.catalogs.providers.network_harness import INTERFACES, NEEDED, opened, outcome

WHOLE = "azure retail"  # plain HTTP, which the public lists of three providers share
EVERY = 6  # of the others: each SDK sees another sixth of the table


def test_the_table_has_each_fault_once() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 60


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning"
)  # of the SDKs' own modules
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_fault_ends_in_the_answer_or_in_an_error_of_its_kind(interface: str) -> None:
    if interface in NEEDED:
        pytest.importorskip(NEEDED[interface])
    at = list(INTERFACES).index(interface)
    chosen = FAULTS if interface == WHOLE else FAULTS[at::EVERY]
    with opened(interface) as asked:
        amiss = {fault.name: said for fault in chosen if (said := outcome(asked, fault))}
        assert amiss == {}
        assert outcome(asked, FAULTS[-1].__class__("none", None, frozenset({"fine"}))) == ""  # type: ignore[arg-type]
