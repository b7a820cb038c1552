"""Every fault of the table of network faults at every provider's interfaces."""

from __future__ import annotations

import pytest

from tests.catalogs.providers.network_faults import FAULTS
from tests.catalogs.providers.network_harness import INTERFACES, NEEDED, opened, outcome


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
    with opened(interface) as asked:
        amiss = {fault.name: said for fault in FAULTS if (said := outcome(asked, fault))}
        assert amiss == {}
        assert outcome(asked, FAULTS[-1].__class__("none", None, frozenset({"fine"}))) == ""  # type: ignore[arg-type]
