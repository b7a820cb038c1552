"""Showback: rules name teams, shared cost is split, and the sums of teams are the bill to the cent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.finops.read import open_bill
from planner.finops.read.tag_keys import own_key
from planner.finops.review.inputs import Beside
from planner.finops.showback.divide import divide
from planner.finops.showback.idle import idle_rules
from planner.finops.showback.rules import team_of
from planner.finops.showback.statement import rules_by_tag, team_statement
from planner.finops.usage import Usage
from planner.finops.usage.model import Allocated, UsageFile
from planner.inputs.showback_load import load_showback
from planner.inputs.showback_schema import ShowbackFile
from tests.conftest import CliResult
from tests.draws import draws
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

DAY = date(2026, 10, 1)
RULES = """
version: 1
kind: showback
name: teams
rules:
  - {team: shared, when: {service: [EKS, "*support*"]}}
  - {team: web, when: {account: [Prod-Web], "tag:env": [prod]}}
  - {from_tag: Cost-Team, rename: {ML-Platform: ml}}
split:
  - {team: shared, by: cost}
"""


def rules(folder: Path, text: str = RULES) -> ShowbackFile:
    path = folder / "rules.yaml"
    path.write_text(text)
    return load_showback(path)


def of(**fields: str) -> dict[str, str]:
    empty = dict.fromkeys(
        (
            "provider",
            "service",
            "category",
            "account",
            "account_name",
            "billing_account",
            "region",
            "charge",
            "tags",
        ),
        "",
    )
    return empty | fields


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    file = rules(tmp_path)
    tags = '{"cost_team":"ML-Platform","Env":"prod"}'
    assert team_of(of(service="eks", tags=tags), file) == "shared"
    assert team_of(of(service="Premium Support", tags=tags), file) == "shared"
    assert team_of(of(service="EC2", account_name="prod-web", tags=tags), file) == "web"
    assert team_of(of(service="EC2", account="prod-web", tags='{"env":"dev"}'), file) == "(unassigned)"
    assert team_of(of(service="EC2", tags=tags), file) == "ml"  # cost_team is Cost-Team
    assert team_of(of(service="EC2", tags='{"COSTTEAM":" data "}'), file) == "data"
    assert team_of(of(service="EC2", tags="{broken"), file) == "(unassigned)"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "{from_tag: Cost-Taem}",
            "none carries the tag 'Cost-Taem' (did you mean 'cost_team'?); there are Env, cost_team",
        ),
        ("{team: web, when: {'tag:enw': [prod]}}", "none carries the tag 'enw'"),
        (
            "{team: web, when: {service: [suport]}}",
            "Rule 1 (team: web; service: suport) fits no charge of the month.",
        ),
        ("{team: web, when: {service: [EC2]}}", ""),
        ("{from_tag: costteam}", ""),
    ],
)
def test_a_rule_that_fits_nothing_is_named(tmp_path: Path, rule: str, said: str) -> None:
    """A misspelt key left the whole bill unassigned, and nothing said why."""
    file = rules(tmp_path, f"version: 1\nkind: showback\nrules: [{rule}]\n")
    tags = '{"cost_team":"ml","Env":"prod"}'
    found = idle_rules(
        [of(service="EC2", tags=tags), of(service="S3", tags="{broken"), of(service="S3")], file
    )
    assert len(found) == bool(said)
    assert said in "".join(found)
    assert idle_rules([], file) == []


def test_many_idle_rules_are_counted_and_misspelt_keys_come_first(tmp_path: Path) -> None:
    """A file may have a rule for each account, most of which have no charge in a month."""
    waiting = ", ".join(f"{{team: t{at}, when: {{account: ['{at}']}}}}" for at in range(7))
    file = rules(tmp_path, f"version: 1\nkind: showback\nrules: [{waiting}, {{from_tag: tema}}]\n")
    found = idle_rules([of(service="EC2", tags='{"team":"ml"}')], file)
    assert found[0].startswith("Rule 8 (from_tag: tema) fits no charge") and "Rule 1 (team: t0" in found[1]
    assert (len(found), found[-1]) == (6, "3 more rules fit no charge of the month.")


def test_a_split_of_nothing_is_named(tmp_path: Path) -> None:
    text = RULES.replace("team: shared, by", "team: shraed, by") + "  - {team: (unassigned), by: cost}\n"
    bill = write_bill(
        tmp_path / "bill.csv", [charge(DAY, 5, ServiceName="EKS"), charge(DAY, 7, ServiceName="EC2")]
    )
    shown = review_of(bill, only=("showback",), beside=Beside(showback=rules(tmp_path, text)))
    said = " ".join(section(shown, "showback").sentences)
    assert "(unassigned) has no cost" not in said
    assert "shraed has no cost to split in this month; does a rule or a tag name it so?" in said


@pytest.mark.parametrize("key", ["Cost-Center", "cost_center", "COST CENTER", "cost.center", "costcenter"])
def test_spellings_of_a_key_are_one(key: str) -> None:
    assert own_key(key) == "costcenter"


TEAMS = st.sampled_from(["a", "b", "c", "shared", ""])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "team": TEAMS,
            "service": st.sampled_from(["s1", "s2"]),
            "commitment_id": st.sampled_from(["k1", "k2"]),
            "commitment_status": st.sampled_from([None, None, "Used", "Unused"]),
            "is_allocated": st.sampled_from([0, 0, 1]),
            "effective_cost": st.floats(-1e5, 1e6, allow_nan=False),
        }
    ),
    max_size=12,
)


def row_of(one: dict[str, Any]) -> dict[str, Any]:
    names = (
        "provider",
        "category",
        "sub_account_id",
        "sub_account_name",
        "billing_account_id",
        "region",
        "charge",
    )
    return dict.fromkeys(names) | one | {"tag_text": json.dumps({"team": one["team"]}), "billed_cost": None}


@given(ROWS, st.sampled_from(["cost", "usage", "equal", "weights"]), st.sampled_from(["use", "cost", "keep"]))
@draws(150)
def test_teams_add_up_to_the_bill_to_the_cent(rows: list[dict[str, Any]], by: str, unused: str) -> None:
    weights = {"a": 2.0, "z": 1.0} if by == "weights" else {}
    body = {"version": 1, "kind": "showback", "rules": [{"from_tag": "team"}], "unused_commitments": unused,
            "split": [{"team": "shared", "by": by, "weights": weights}]}  # fmt: skip
    found = divide(
        [row_of(one) for one in rows], ShowbackFile.model_validate(body), {(): {"a": 3.0, "b": 1.0}}
    )
    assert found.of() == round(100 * math.fsum(one["effective_cost"] for one in rows))
    assert sum(found.of(team) for team in found.teams) == found.of()
    if by in ("weights", "usage"):
        assert found.of("shared", "own") == 0


def bill(folder: Path) -> Path:
    rows = [
        charge(DAY, 300, Tags='{"cost_team":"ML-Platform"}'), charge(DAY, 100, Tags='{"cost-team":"data"}'),
        charge(DAY, 40, ServiceName="EKS", Tags=""), charge(DAY, 7.77, Tags=""),
        charge(DAY, 90, Tags='{"cost_team":"ML-Platform"}', CommitmentDiscountId="c1", CommitmentDiscountStatus="Used"),
        charge(DAY, 30, Tags='{"cost-team":"data"}', CommitmentDiscountId="c1", CommitmentDiscountStatus="Used"),
        charge(DAY, 20, Tags="", CommitmentDiscountId="c1", CommitmentDiscountStatus="Unused"),
        charge(DAY, 12, Tags='{"cost_team":"data"}', AllocatedMethodId="m", AllocatedTags='{"cost_team":"ml"}',
               AllocatedResourceId="r"),
        charge(DAY, 5, ChargeCategory="Tax", ServiceName="Tax", Tags=""),
        charge(date(2026, 9, 1), 50, Tags='{"cost_team":"data"}'),
    ]  # fmt: skip
    return write_bill(folder / "bill.csv", rows)


def test_a_review_by_rules(tmp_path: Path) -> None:
    made = review_of(bill(tmp_path), month=DAY, only=("showback",), beside=Beside(showback=rules(tmp_path)))
    rows = {row["team"]: row for row in rows_of(made, "showback", "showback")}
    assert set(rows) == {"ml", "data", "(unassigned)"}
    assert (rows["ml"]["own"], rows["ml"]["unused"], rows["ml"]["allocated"]) == (390, 15, 12)
    assert (rows["data"]["own"], rows["data"]["unused"]) == (130, 5)
    assert sum(row["shared"] for row in rows.values()) == pytest.approx(40)
    assert sum(row["cost"] for row in rows.values()) == pytest.approx(604.77)
    assert figures(made)["showback_difference_money"].value == 0


def test_a_statement(tmp_path: Path) -> None:
    file = rules(tmp_path)
    with open_bill([bill(tmp_path)]) as opened:
        made = {team: team_statement(opened, DAY, file, team) for team in ("ml", "data", "(unassigned)")}
        with pytest.raises(InputError, match=r"did you mean.*data"):
            team_statement(opened, DAY, file, "dat")
    assert sum(round(100 * one.values["total"]) for one in made.values()) == 60477  # type: ignore[call-overload]
    data = made["data"]
    assert (
        data.title.startswith("data: ") and "against" not in data.title
    )  # charges of single days are no month
    assert sum(row["cost"] for row in data.rows) == pytest.approx(data.values["total"])  # type: ignore[misc,call-overload]


def test_a_statement_is_of_the_month_that_a_review_takes(tmp_path: Path) -> None:
    """It took a month of one late charge, and compared with corrections of a month before the bill."""
    late = charge(date(2026, 11, 1), 30), charge(date(2026, 12, 1), 9, ChargeCategory="Tax")
    rows = [charge(date(2026, 9, 9), -5, ChargeClass="Correction"), *each_day(DAY, date(2026, 10, 31)), *late]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = team_statement(opened, None, rules_by_tag("team"), "ml")
    assert made.title == "ml: 3,100.00 USD in October 2026, 100.0 % of the bill's 3,100.00"
    assert made.values["before"] is None


@pytest.mark.parametrize(
    ("days", "said"),
    [(31, ", +13.7 % against the month before"), (17, ""), (0, "")],
)
def test_a_statement_compares_no_month_with_a_part_of_one(days: int, said: str, tmp_path: Path) -> None:
    """17 days of October were "-37.7 % against the month before", and Azure without its September "+127.3 %"."""
    rows = each_day(date(2026, 8, 1), date(2026, 9, 30)) + each_day(DAY, date(2026, 10, days or 31), 110)
    other = {"ProviderName": "Azure"}
    rows += each_day(date(2026, 8, 1), date(2026, 8 if not days else 9, 31 if not days else 30), **other)
    rows += each_day(DAY, date(2026, 10, days or 31), 110, **other)
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = team_statement(opened, DAY, rules_by_tag("team"), "ml")
    total = f"{2 * 110 * (days or 31):,.2f}"
    assert made.title == f"ml: {total} USD in October 2026{said}, 100.0 % of the bill's {total}"
    basis = " ".join(next(part for part in made.sections if part.key == "basis").sentences)
    reason = {31: "", 17: "17 of 31 days of the month have use", 0: "Azure has no use in September"}[days]
    assert ("Not compared with September 2026" in basis) == bool(reason) and reason in basis
    assert (made.values["before"] is None) == bool(reason)


def test_a_statement_of_billed_cost_is_compared_whatever_effective_cost_says(tmp_path: Path) -> None:
    rows = each_day(date(2026, 9, 1), date(2026, 9, 30), EffectiveCost="0")
    rows += each_day(DAY, date(2026, 10, 31), 110, EffectiveCost="0")
    file = rules_by_tag("team").model_copy(update={"cost": "billed"})
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = team_statement(opened, DAY, file, "ml")
    assert ", +13.7 % against the month before" in made.title


def test_a_statement_has_no_share_of_a_bill_below_0(tmp_path: Path) -> None:
    rows = [*each_day(DAY, date(2026, 10, 31)), charge(DAY, -9000, ChargeCategory="Credit", Tags="{}")]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as opened:
        made = team_statement(opened, DAY, rules_by_tag("team"), "ml")
    assert made.title == "ml: 3,100.00 USD in October 2026"


def test_statements_from_the_command_line(tmp_path: Path, run_cli: Callable[..., CliResult]) -> None:
    rules(tmp_path)
    asked = [
        "review",
        "--focus",
        str(bill(tmp_path)),
        "--month",
        "2026-10",
        "--showback",
        str(tmp_path / "rules.yaml"),
    ]
    done = run_cli(*asked, "--statement", "data", "-o", "md")
    assert done.code == 0 and "data: " in done.stdout and "shared: shared" in done.stdout
    page = run_cli(*asked, "--statement", "data", "-o", "html")
    assert page.code == 0 and page.stdout.startswith("<!DOCTYPE html>")
    done = run_cli(*asked[:5], "--tags", "cost_team", "--statement", "ML-Platform")
    assert done.code == 0 and "390.00" in done.stdout  # without rules the first tag names the team
    done = run_cli(*asked, "--statement", "nobody")
    assert (done.code, done.stdout) == (2, "") and "no charge of 2026-10" in done.stderr


FAULTS = {
    "  - {team: a, from_tag: b}": "name either 'team' or 'from_tag'",
    "  - {when: {service: [x]}}": "name either 'team' or 'from_tag'",
    "  - {team: a, when: {servise: [x]}}": "did you mean",
    "  - {team: a, when: {'tag:': [x]}}": "is none of",
    "  - {team: a, when: {service: []}}": "name at least one value",
    "  - {team: a, rename: {x: y}}": "is for rules with 'from_tag'",
    "  - {team: a}\nsplit: [{team: b, by: cost}]": "no rule names the team 'b'",
    "  - {team: a}\nsplit: [{team: a, by: weights}]": "needs 'weights'",
    "  - {team: a}\nsplit: [{team: a, by: cost, weights: {b: 1}}]": "are for 'by: weights'",
    "  - {team: a}\nsplit: [{team: a, by: weights, weights: {b: -1}}]": "split[0].weights.b: must be at least 0",
}


@pytest.mark.parametrize(("text", "said"), FAULTS.items(), ids=range(len(FAULTS)))
def test_faults_of_a_file(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        rules(tmp_path, f"version: 1\nkind: showback\nrules:\n{text}\n")
    assert said in str(error.value) and "rules.yaml:" in str(error.value)


def test_a_split_by_usage_needs_usage(tmp_path: Path) -> None:
    file = rules(tmp_path, RULES.replace("by: cost", "by: usage"))
    with pytest.raises(InputError, match="give the GPU-hours of teams with --usage"):
        review_of(bill(tmp_path), month=DAY, only=("showback",), beside=Beside(showback=file))


def test_credits_of_nobody_leave_no_share_above_the_whole(tmp_path: Path) -> None:
    """It said "105.3 % of 95 USD belongs to a team", and -5.3 % to nobody."""
    rows = [charge(DAY, 100), charge(DAY, -5, ChargeCategory="Credit", Tags="")]
    file = rules(tmp_path, "version: 1\nkind: showback\nrules: [{from_tag: team}]\n")
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows), only=("showback",), beside=Beside(showback=file)
    )
    said = section(made, "showback").sentences[0]
    assert (
        said
        == "100 USD belongs to teams by the rules of showback, -5.00 USD of the bill's 95.00 USD to none."
    )
    assert {row["team"]: row["share"] for row in rows_of(made, "showback", "showback")} == {
        "ml": None, "(unassigned)": None,
    }  # fmt: skip


def test_a_small_credit_of_nobody_is_said(tmp_path: Path) -> None:
    """It said "100.0 % of 99.50 USD belongs to a team" of 100."""
    rows = [charge(DAY, 100), charge(DAY, -0.5, ChargeCategory="Credit", Tags="")]
    file = rules(tmp_path, "version: 1\nkind: showback\nrules: [{from_tag: team}]\n")
    path = write_bill(tmp_path / "bill.csv", rows)
    said = section(review_of(path, only=("showback",), beside=Beside(showback=file)), "showback").sentences[0]
    assert said.startswith("100 USD belongs to teams") and "-0.50 USD of the bill's 99.50 USD to none" in said


def test_a_bill_with_tax_is_told_from_the_spend_without_it(tmp_path: Path) -> None:
    """The month at a glance had 100 USD, the rules divided "107 USD"."""
    rows = [charge(DAY, 100), charge(DAY, 7, ChargeCategory="Tax", Tags="")]
    unused = {
        "CommitmentDiscountId": "c1",
        "CommitmentDiscountStatus": "Unused",
        "PricingCategory": "Committed",
    }
    rows.append(charge(DAY, 5, **unused))
    file = rules(tmp_path, "version: 1\nkind: showback\nrules: [{from_tag: team}]\n")
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows), only=("showback",), beside=Beside(showback=file)
    )
    assert section(made, "showback").sentences == (
        "93.8 % of 112 USD with tax belongs to a team by the rules of showback.",
        "No team used the commitment c1: its unused part is divided by cost.",
    )


TWO_CLUSTERS = """
version: 1
kind: showback
rules:
  - {team: k8s, when: {"tag:cluster": [eks]}}
  - {team: slurm, when: {"tag:cluster": [hpc]}}
  - {from_tag: team}
split:
  - {team: k8s, by: usage, clusters: [EKS]}
  - {team: slurm, by: usage, clusters: [hpc]}
"""


@pytest.mark.parametrize("by", ["cost", "equal"])
def test_tax_is_no_cost_to_split_by(tmp_path: Path, by: str) -> None:
    """Tax, which names no team, took 28 of 100 USD of shared cost: it counted as cost of a team without a name."""
    costs = (("platform", 100), ("ml", 60), ("web", 40))
    rows = [charge(DAY, cost, Tags=f'{{"team":"{team}"}}') for team, cost in costs]
    rows.append(charge(DAY, 38, ChargeCategory="Tax", Tags=""))
    split = f"split:\n  - {{team: platform, by: {by}}}\n"
    text = "version: 1\nkind: showback\nrules:\n  - {from_tag: team}\n" + split
    made = review_of(
        write_bill(tmp_path / "bill.csv", rows),
        only=("showback",),
        beside=Beside(showback=rules(tmp_path, text)),
    )
    found = {row["team"]: (row["own"], row["shared"]) for row in rows_of(made, "showback", "showback")}
    parts = (60, 40) if by == "cost" else (50, 50)
    assert found == {"ml": (60, parts[0]), "web": (40, parts[1]), "(unassigned)": (38, 0)}


def two_clusters(folder: Path) -> tuple[Path, Usage]:
    """Of the Kubernetes cluster ml uses a quarter and data the rest; Slurm is ml's alone. Usage is known of October."""
    rows = [
        row
        for cluster, cost in (("eks", 100), ("hpc", 60))
        for row in each_day(date(2026, 9, 1), date(2026, 10, 31), cost, Tags=f'{{"cluster":"{cluster}"}}')
    ]
    hours = (("ml", "eks", 24.0), ("data", "eks", 72.0), ("ml", "hpc", 900.0))
    allocated = tuple(Allocated(DAY, "", team, (), (place,), amount) for team, place, amount in hours)
    return write_bill(folder / "bill.csv", rows), Usage((UsageFile("x", "k", allocated),))


def test_each_cluster_is_shared_by_its_own_hours(tmp_path: Path) -> None:
    """Both were shared by the hours of both: a team that uses Slurm alone paid most of Kubernetes."""
    path, usage = two_clusters(tmp_path)
    beside = Beside(usage=usage, showback=rules(tmp_path, TWO_CLUSTERS))
    made = review_of(path, only=("showback",), beside=beside)
    costs = {row["team"]: row["cost"] for row in rows_of(made, "showback", "showback")}
    assert costs == {"ml": pytest.approx(31 * (25 + 60)), "data": pytest.approx(31 * 75)}
    of_all = TWO_CLUSTERS.replace(", clusters: [EKS]", "").replace(", clusters: [hpc]", "")
    together = review_of(
        path, only=("showback",), beside=Beside(usage=usage, showback=rules(tmp_path, of_all))
    )
    assert (
        "k8s, slurm: each is split by the GPU-hours of all clusters; 'clusters' in its split names its own."
        in section(together, "showback").sentences
    )
    with pytest.raises(InputError, match="clusters: are for 'by: usage'"):
        rules(tmp_path, TWO_CLUSTERS.replace("by: usage", "by: cost"))


def test_a_statement_is_not_compared_with_a_month_without_usage(tmp_path: Path) -> None:
    """A team was "+69.4 % against the month before", of which no usage file told its share."""
    path, usage = two_clusters(tmp_path)
    with open_bill([path]) as opened:
        file = rules(tmp_path, TWO_CLUSTERS)
        made = team_statement(opened, DAY, file, "ml", usage)
        earlier = Usage(
            (
                replace(
                    usage.files[0],
                    allocated=tuple(replace(one, day=date(2026, 9, 2)) for one in usage.files[0].allocated),
                ),
            )
        )
        without = team_statement(opened, DAY, file, "slurm", earlier)
    assert made.title == "ml: 2,635.00 USD in October 2026, 53.1 % of the bill's 4,960.00"
    basis = next(part for part in made.sections if part.key == "basis").sentences
    assert (
        "Not compared with September 2026: "
        "the GPU-hours to split k8s, slurm by are known of one of the two months alone." in basis
    )
    said = next(part for part in without.sections if part.key == "basis").sentences
    assert [one for one in said if one.startswith("Not compared")] == [
        one for one in basis if one.startswith("Not compared")
    ]  # nor a month without them with one that has them
