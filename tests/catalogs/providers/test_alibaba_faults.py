"""Every fault of every interface of Alibaba Cloud: what the user sees, and that yesterday's prices still load."""

from __future__ import annotations

import pytest

from catalogs.providers.base import FetchOptions
from catalogs.refresh.report import Outcome
from catalogs.refresh.run import refresh
from tests.catalogs.providers.test_alibaba import QUICK, provider
from tests.catalogs.stored import stored
from tests.fakes import alibaba as fake
from tests.fakes.http_base import KINDS, LATE_S, LIMIT_S

APIS = (
    "DescribeRegions",
    "DescribeInstanceTypes",
    "DescribeAvailableResource",
    "DescribePrice",
    "DescribeSpotPriceHistory",
)
N_SPOT = 16
N_OFFERS = 58  # on demand 14, spot 16, by the month and by the year 14 each
HARMLESS = ("throttle_then_ok", "http_500_once")

pytestmark = pytest.mark.usefixtures("home")


def _run(faults: dict[str, str] | None = None) -> Outcome:
    with fake.server(faults, slow_s=LATE_S) as server:
        # only a fault that answers late may run into the limit, however busy the machine is
        timeout_s = LIMIT_S if faults and "slow" in faults.values() else QUICK["timeout_s"]
        options = FetchOptions(**{**QUICK, "timeout_s": timeout_s, "retries": 1})  # type: ignore[arg-type]

        def create(name: str, given: FetchOptions):  # type: ignore[no-untyped-def]
            one = provider(server)
            one.options = given
            return one

        report = refresh(["alibaba"], options, create=create)
    return report.outcomes[0]


# Every fault at one interface, one of each kind of error at the others: how a fault is read is the same for all.
ONE_PER_KIND = ("throttle_forever", "connection_reset", "changed_schema", "access_denied")


@pytest.mark.parametrize(
    ("api", "fault"),
    [(api, fault) for number, api in enumerate(APIS) for fault in (ONE_PER_KIND if number else KINDS)],
)
def test_a_fault_is_named_and_yesterday_stays(api: str, fault: str) -> None:
    before = stored("alibaba").sha256["alibaba"]
    outcome = _run({api: fault})
    assert outcome.status == ("skipped" if fault == "expired_credentials" else "failed")
    failure = outcome.failures[0]
    assert failure.kind == KINDS[fault]
    assert (
        "alibaba" in failure.message
        and "LTAI" not in failure.message
        and "everything that was sent" not in str(outcome)
    )
    if fault == "access_denied":
        assert f"ecs:{api}" in failure.message
    if fault == "expired_credentials":
        assert "aliyun configure" in failure.message
    assert outcome.last_good_as_of
    assert stored("alibaba").sha256["alibaba"] == before


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", HARMLESS)
def test_a_passing_fault_is_not_seen(api: str, fault: str) -> None:
    outcome = _run({api: fault})
    assert (outcome.status, outcome.failures, outcome.n_offers) == ("added", (), N_OFFERS)


@pytest.mark.parametrize("api", APIS)
def test_rows_that_come_twice_count_once(api: str) -> None:
    outcome = _run({api: "duplicate_rows"})
    assert (outcome.status, outcome.failures, outcome.n_offers, outcome.refused) == (
        "added",
        (),
        N_OFFERS,
        {},
    )


@pytest.mark.parametrize(
    ("api", "status", "says"),
    [
        ("DescribeRegions", "failed", "not one instance type"),
        ("DescribeInstanceTypes", "failed", "not one instance type"),
        ("DescribeAvailableResource", "failed", "not one price"),
        ("DescribeSpotPriceHistory", "added", "no spot price in the answer"),
    ],
)
def test_an_empty_answer_never_ends_what_was_sold(api: str, status: str, says: str) -> None:
    n_spot = _n_spot()
    outcome = _run({api: "empty_page"})
    assert outcome.status == status and says in outcome.failures[0].message
    assert _n_spot() >= min(n_spot, N_SPOT)


def _n_spot() -> int:
    offers = stored("alibaba").offers
    return int((offers.equals("provider", "alibaba") & offers.equals("purchase_option", "spot")).sum())
