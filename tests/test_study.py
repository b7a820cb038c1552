"""The savings study: any workload file becomes a row, and figures count what they say they count."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.rows import read_csv
from benchmarks.study import __main__ as study
from benchmarks.study.calibration import calibration
from benchmarks.study.clusters import sky_name
from benchmarks.study.engines import on_lost
from benchmarks.study.record import StudyOptions, study_record
from benchmarks.study.regret import replay, summarized
from benchmarks.study.savings import Pair, figures, interval_of_median, pairs_of
from benchmarks.study.suite import TIMES, Published, find_workloads, of_comments, published
from benchmarks.whole_runs import DERIVED, OTHERS, RUNS

ROOT = Path(__file__).parents[1]

JOB = """# small (language pretraining). Published: 8 x A100 40GB, 1,250.5 h.
# Source (read): someone/somewhere@1234 README.md
# Not said here (approx): packing
version: 1
name: small
model: {preset: bert-base}
training: {samples: 2000000, global_batch: 256, sequence_length: 128}
data: {samples: 200000, size: 1GB, location: aws/us-east-1}
constraints:
  deadline: 48h
  max_nodes: 1
  accelerators: {allow: ["a100-40gb-*"]}
baseline: {provider: aws, region: us-east-1, instance_type: p4d.24xlarge, nodes: 1, purchase_option: on_demand}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One workload that can be planned and two files that cannot be read as one."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "workloads").mkdir()
    (folder / "workloads" / "small.yaml").write_text(JOB, encoding="utf-8")
    unknown = JOB.replace("p4d.24xlarge, nodes", "p4x.24xlarge, nodes").replace(
        "name: small", "name: unknown"
    )
    (folder / "workloads" / "unknown.yaml").write_text(unknown, encoding="utf-8")
    (folder / "workloads" / "broken.yaml").write_text("version: 1\nname: [\n", encoding="utf-8")
    (folder / "workloads" / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x01")
    return folder


@pytest.fixture(scope="module")
def output(suite: Path) -> dict[str, Any]:
    """What the command writes of the suite."""
    assert study.main(["--suite", str(suite), "--json", str(suite / "out.json"), "--workers", "1"]) == 0
    made: dict[str, Any] = json.loads((suite / "out.json").read_text(encoding="utf-8"))
    return made


def test_unreadable_files_are_rows_with_a_reason(output: dict[str, Any]) -> None:
    assert output["statuses"] == {"planned": 2, "refused": 2}
    assert all(record["reason"] for record in output["records"] if record["status"] == "refused")


def test_a_baseline_that_the_catalog_does_not_know_leaves_a_plan_and_a_reason(output: dict[str, Any]) -> None:
    record = next(item for item in output["records"] if item["id"] == "unknown")
    known = next(item for item in output["records"] if item["id"] == "small")
    assert record["arms"]["spot"]["cost_usd"] == known["arms"]["spot"]["cost_usd"]
    assert record["baseline"] is None and "p4x.24xlarge" in record["baseline_fault"]
    assert "/" not in record["baseline_fault"].split(":")[0] and record["arms"]["home"]["status"] == "refused"
    assert output["figures"]["spot"]["against"]["named"]["left_out"]["baseline is not in the catalog"] == [
        "unknown"
    ]


def test_rows_of_two_sources_give_no_verdict() -> None:
    pairs = [Pair(str(at), "vision", "one" if at else "two", 0.5, 1.0) for at in range(9)]
    assert figures(pairs).verdict == "undecided (9 rows of 2 sources)"


def test_a_saving_is_one_less_the_plan_over_the_baseline(output: dict[str, Any]) -> None:
    record = next(item for item in output["records"] if item["id"] == "small")
    assert record["baseline"]["status"] == "ok" and record["baseline"]["nodes"] == 1
    for arm in ("home", "anywhere", "commitments", "spot"):
        figure = output["figures"][arm]["against"]["named"]
        expected = 1.0 - record["arms"][arm]["cost_usd"] / record["baseline"]["cost_usd"]
        assert figure["n"] == 1 and figure["median"] == pytest.approx(expected)


def test_more_freedom_never_costs_more(output: dict[str, Any]) -> None:
    record = next(item for item in output["records"] if item["id"] == "small")
    cost = {name: plan["cost_usd"] for name, plan in record["arms"].items()}
    hair = 1.0 + 1e-9
    assert cost["spot"] <= cost["commitments"] * hair <= cost["anywhere"] * hair**2 <= cost["home"] * hair**3
    assert cost["home"] <= record["baseline"]["cost_usd"] * hair
    assert cost["spot_derived"] <= cost["spot"] * hair
    steps = {item["step"]: item["cost_usd"] for item in record["steps"]}
    assert steps["baseline"] == record["baseline"]["cost_usd"] <= steps["plain layout"] * hair
    assert steps["timing"] == cost["spot"] <= steps["option"] * hair <= steps["type"] * hair**2


def test_a_milp_chooses_each_plan_too_and_agrees(
    suite: Path, output: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    plans = [plan for record in output["records"] for plan in record.get("arms", {}).values()]
    planned = [plan for plan in plans if plan["status"] == "planned"]
    assert planned and {plan["proof"] for plan in planned} == {"exact enumeration and a MILP, which agree"}
    assert output["proofs"] == {"exact enumeration and a MILP, which agree": len(planned)}
    arguments = ["--suite", str(suite), "--records", str(suite / "out.json")]
    assert study.main(arguments) == 0
    assert f"plans by proof: {len(planned)} exact enumeration and a MILP" in capsys.readouterr().out
    alone = study_record(str(suite / "workloads" / "small.yaml"), StudyOptions(solver="enumerate"))
    assert alone["arms"]["spot"]["proof"] == "exact enumeration"
    known = next(item for item in output["records"] if item["id"] == "small")
    assert alone["arms"]["spot"]["cost_usd"] == known["arms"]["spot"]["cost_usd"]


def test_every_price_of_a_plan_has_a_date_and_none_is_derived(output: dict[str, Any]) -> None:
    record = next(item for item in output["records"] if item["id"] == "small")
    for arm in ("home", "anywhere", "commitments", "spot"):
        for line in record["arms"][arm]["lines"]:
            assert line["price_as_of"] and line["price_kind"] in ("firm", "listed", "unplaced", "observed")


def test_the_record_is_the_same_wherever_it_is_made(suite: Path, output: dict[str, Any]) -> None:
    broken = study_record(str(suite / "workloads" / "broken.yaml"), StudyOptions())
    assert broken in output["records"]


def test_comments_say_what_the_index_does_not(suite: Path) -> None:
    told = of_comments(suite / "workloads" / "small.yaml")
    assert (told.kind, told.wall_hours, told.expressible) == ("language pretraining", 1250.5, "approx")
    assert told.cluster == "someone/somewhere" and told.cannot_express == "packing"


def test_the_index_wins_over_comments(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(JOB, encoding="utf-8")
    (tmp_path / "index.csv").write_text(
        "id,class,source,published_wall_h\nsmall,vision,a/b@c d,\n", encoding="utf-8"
    )
    told = published(tmp_path / "small.yaml")
    assert (told.kind, told.wall_hours, told.cluster) == ("vision", None, "a/b")


def test_a_folder_without_workloads_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="no workload"):
        find_workloads(tmp_path)
    assert study.main(["--suite", str(tmp_path)]) == 2
    assert study.main(["--suite", str(tmp_path / "absent")]) == 2
    assert "no workload" in capsys.readouterr().err


def _row(name: str, plan: float, base: float, **more: Any) -> dict[str, Any]:
    cluster = {"status": "ok", "cost_usd": base, "running_hours": 10.0, "price_per_hour": 2.0, "nodes": 3}
    line = {"price_kind": "observed"}
    arm = {
        "status": "planned",
        "cost_usd": plan,
        "cost_p90_usd": 2 * plan,
        "p_meet_deadline": 0.95,
        "lines": [line],
    }
    stated = asdict(Published(kind="vision", source=f"{name}@1", wall_hours=20.0))
    return {
        "id": name, "status": "planned", "published": stated | more.pop("published", {}), "arms": {"spot": arm},
        "deadline_confidence": 0.9, "baseline": cluster, "sky_on_demand": None, "sky_spot": None, "steps": [],
    } | more  # fmt: skip


def test_stand_ins_and_late_baselines_are_left_out_with_a_reason() -> None:
    late = {"status": "late", "cost_usd": 1.0, "running_hours": 1.0}
    rows = [
        _row("a", 4.0, 10.0),
        _row("b", 1.0, 1.0, baseline=late),
        _row("c", 1, 2, published={"expressible": "no"}),
    ]
    pairs, left_out = pairs_of(rows, "spot", "named")
    assert [pair.saving for pair in pairs] == [pytest.approx(0.6)]
    assert sorted(name for names in left_out.values() for name in names) == ["b", "c"]


def test_the_owners_bill_is_hours_times_price_and_may_be_corrected() -> None:
    row = _row("a", 4.0, 10.0)
    (pair,), _ = pairs_of([row], "spot", "owner")
    assert pair.baseline == 2.0 * 3 * 20.0  # no bill stated: price x machines x published hours
    (pair,), _ = pairs_of([row], "spot", "owner_corrected")
    assert pair.plan == 4.0 * 20.0 / 10.0
    suspect = _row("a", 4.0, 10.0, published={"evidence": "suspect: too fast"})
    assert pairs_of([suspect], "spot", "owner")[0] == []


def test_a_saving_that_is_not_sure_enough_does_not_count() -> None:
    unsure, unplaced = _row("a", 4.0, 10.0), _row("b", 4.0, 10.0)
    unsure["arms"]["spot"]["p_meet_deadline"] = 0.89
    unplaced["arms"]["spot"]["lines"] = [{"price_kind": "unplaced"}]
    pairs, left_out = pairs_of([unsure, unplaced, _row("c", 1.0, 2.0)], "spot", "named", counted=True)
    assert [pair.name for pair in pairs] == ["c"] and len(left_out) == 2


@pytest.mark.parametrize(
    ("savings", "verdict"),
    [
        ((0.5, 0.55, 0.6), "holds in the median"), ((0.8, 0.85, 0.9), "more than claimed"),
        ((0.1, 0.2, 0.3), "does not hold"), ((0.1, 0.5, 0.9), "undecided (10% to 90%)"),
        ((0.5, 0.5), "undecided (2 rows)"), ((), "no rows"),
    ],
)  # fmt: skip
def test_the_verdict_needs_the_whole_interval(savings: tuple[float, ...], verdict: str) -> None:
    pairs = [Pair(str(at), "vision", str(at), 1.0 - saving, 1.0) for at, saving in enumerate(savings)]
    assert figures(pairs).verdict == verdict


def test_rows_of_one_source_do_not_narrow_the_interval() -> None:
    values = np.asarray([0.1, 0.9] * 20)
    same = interval_of_median(values, ["one", "two"] * 20)
    apart = interval_of_median(values, [str(at) for at in range(40)])
    assert list(same) == pytest.approx([0.1, 0.9])
    assert apart[1] - apart[0] <= same[1] - same[0]


def test_calibration_leaves_out_suspect_rows() -> None:
    rows = [
        _row("a", 1, 2),
        _row("b", 1, 2, published={"evidence": "suspect"}),
        _row("c", 1, 2, baseline=None),
    ]
    made = calibration(rows)
    assert made["rows"] == {"a": 0.5} and made["all"]["n"] == 1


def test_a_time_multiplied_out_of_a_speed_is_compared_with_the_steps() -> None:
    """Which it is, the source says; the same hours of another source are those of a whole run."""
    cluster = {"status": "ok", "cost_usd": 2.0, "running_hours": 10.0, "step_hours": 8.0}
    of_steps, of_run = (
        _row(name, 1, 2, baseline=cluster, published={"source": source})
        for name, source in (("a", "karpathy/llm.c@1 scripts/run.sh"), ("b", "epoch, row StarCoder"))
    )
    made = calibration([of_steps, of_run])
    assert made["rows"] == {"a": 8.0 / 20.0, "b": 10.0 / 20.0}
    assert made["steps"]["n"] == 1 and made["steps_rows"] == ["a"]
    assert (
        made["as_runs"]["steps"]["median"] == 10.0 / 20.0 and made["as_runs"]["without_stand_ins"]["n"] == 2
    )
    del cluster["step_hours"]  # of a fleet, whose steps are not predicted apart
    assert calibration([of_steps])["rows"] == {}


def test_what_sources_say_of_their_times_agrees_with_the_published_runs() -> None:
    """Kinds of times are read off the source; the benchmark of whole runs has the same kinds of the same sources."""
    stated = {row["source_has"]: row["time_of"] for row in read_csv(TIMES)}
    assert set(stated.values()) == {"steps", "run"}
    assert stated["arXiv 2304.01373"] == "steps"
    kinds = {row["family"]: row["total"] for path in (RUNS, OTHERS) for row in read_csv(path)}
    for source, family in (
        ("arXiv 2304.01373", "pythia"),
        ("row StarCoder", "starcoder"),
        ("row Phi-1", "phi"),
    ):
        assert (stated[source] == "steps") == (kinds[family] in DERIVED), source


def test_skypilot_does_not_tell_forms_apart() -> None:
    assert sky_name("a100-80gb-sxm") == sky_name("a100-80gb-pcie") == "a100-80gb" != sky_name("a100-40gb-sxm")


def test_the_page_says_what_the_figures_say(suite: Path, output: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "study.md"
    again = ["--suite", str(suite), "--records", str(suite / "out.json"), "--doc", str(page), "--json"]
    assert study.main([*again, str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_bytes() == (suite / "out.json").read_bytes()
    text = page.read_text(encoding="utf-8")
    median = output["figures"]["spot"]["against"]["named"]["median"]
    assert f"with spot**: undecided (1 row); median {median:.0%}, " in text
    assert "| broken | unclassified | refused: " in text and "nan" not in text.lower().split()
    for name in ("savings", "waterfall", "classes", "times"):
        picture = (tmp_path / "pictures" / f"study-{name}.svg").read_text(encoding="utf-8")
        assert picture.startswith("<svg") and f"pictures/study-{name}.svg" in text
    assert study.main(["--suite", str(suite), "--records", str(page)]) == 2


def test_a_choice_is_paid_at_its_later_price(tmp_path: Path) -> None:
    head = "provider,instance_type,region,zone,accelerator,accelerator_count,kind,usd_per_hour,observed_at\n"
    cells = [
        ("spot_quoted", "small", "a", 1.0, 11), ("spot_quoted", "small", "b", 2.0, 11),
        ("spot_quoted", "small", "a", 3.0, 18), ("spot_quoted", "small", "b", 1.5, 18),
        ("on_demand", "small", "", 4.0, 1), ("on_demand", "big", "", 10.0, 1), ("on_demand", "big", "", 8.0, 17),
    ]  # fmt: skip
    lines = [f"aws,{name},r,{zone},x,1,{kind},{usd},2024-01-{day:02}" for kind, name, zone, usd, day in cells]
    with gzip.open(tmp_path / "prices_aws.csv.gz", "wt", encoding="utf-8") as file:
        file.write(head + "\n".join(lines) + "\n")
    cluster = {
        "provider": "aws", "instance_type": "big", "region": "r", "nodes": 2, "running_hours": 5.0, "status": "ok",
        "cost_usd": 100.0,
    }  # fmt: skip
    row = _row("one", 1.0, 2.0, baseline=cluster, kind="training", instance_hours={"aws/small": 12.0})
    table, left_out = replay([row, _row("fleet", 1.0, 2.0, baseline=cluster, kind="fleet")], tmp_path)
    assert list(left_out.values()) == [["fleet"]]
    by_quote = table[(table["model"] == "quote") & (table["horizon"] == 7)].iloc[0]
    assert (by_quote["option"], by_quote["promised"], by_quote["paid"]) == ("spot", 12.0, 36.0)
    assert (by_quote["best"], by_quote["owner_then"], by_quote["owner_later"]) == (18.0, 100.0, 80.0)
    figure = next(one for one in summarized(table) if one["model"] == "quote" and one["horizon"] == 7)
    assert figure["surprise_mean"] == pytest.approx(2.0) and figure["kept"] == pytest.approx(1 - 36 / 80)


def test_dask_gives_the_same_bytes(suite: Path, output: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    del output  # made before
    few = tmp_path / "few"
    few.mkdir()
    for name in ("broken.yaml", "bytes.yaml"):
        (few / name).write_bytes((suite / "workloads" / name).read_bytes())
    for engine in ("local", "dask"):
        out = ["--json", str(tmp_path / engine), "--workers", "1", "--engine", engine]
        assert study.main(["--suite", str(few), *out]) == 0
    assert (tmp_path / "local").read_bytes() == (tmp_path / "dask").read_bytes()
    assert study.main(["--suite", str(few), "--address", "x:1"]) == 2


def test_a_workload_whose_workers_die_is_a_row(suite: Path) -> None:
    row = on_lost(str(suite / "workloads" / "small.yaml"), "its workers died")
    assert (row["status"], row["reason"], row["published"]["wall_hours"]) == (
        "failed",
        "its workers died",
        1250.5,
    )


def test_readme_quotes_the_pages_as_they_are() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    medians = re.findall(
        r"^- \*\*(?:on-demand, the owner's|on-demand, any|with spot).*?median (\d+)%", page, re.MULTILINE
    )
    home, anywhere, spot = medians
    times = re.search(r"(\d+ of \d+) baselines are predicted within 1\.5 x", page)
    assert times is not None
    claims = re.search(
        r"^(\d+) claims: ", (ROOT / "docs" / "claims.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert claims is not None
    for figure in (
        f"{claims[1]} other claims",
        f"median {home} % on demand with the owner's provider, {anywhere} % on demand with any, {spot} % with spot",
        f"{times[1]} published times are predicted within 1.5 x",
    ):
        assert figure in readme
