"""Which machines count as retired, and from when."""

from __future__ import annotations

import pytest

from catalogs.offers.retirement import retirement_of


@pytest.mark.parametrize(
    ("provider", "instance_type", "day", "retired"),
    [
        ("azure", "Standard_NC24", "2023-09-05", False),
        ("azure", "Standard_NC24", "2023-09-06", True),
        ("azure", "Standard_NC24r_Promo", "2023-09-06", True),
        ("azure", "Standard_NV6_Promo", "2026-11-22", True),
        ("azure", "Standard_NC24ads_A100_v4", "2026-11-22", False),
        ("aws", "p3.16xlarge", "2026-11-22", True),
        ("aws", "p3dn.24xlarge", "2026-11-22", False),
        ("gcp", "Standard_NC24", "2026-11-22", False),
    ],
)
def test_a_machine_is_retired_from_its_day_on(
    provider: str, instance_type: str, day: str, retired: bool
) -> None:
    assert (retirement_of(provider, instance_type, day) is not None) is retired
