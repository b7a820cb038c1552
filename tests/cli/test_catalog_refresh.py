"""`planner catalog refresh` as a user meets it: what is printed where, exit codes, secrets."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from catalogs.providers import registry
from catalogs.providers.base import CredentialsMissing, FetchOptions, Provider, ProviderError, Unreachable
from planner.render.progress import refresh_progress
from tests.conftest import Run
from tests.fakes.provider import FakeProvider, offer_row

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def providers(small_bundle: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeProvider]:
    """The registry's providers are replaced by these; a test fills in."""
    made: dict[str, FakeProvider] = {}

    def create(name: str, options: FetchOptions) -> Provider:
        return made[name].with_options(options)

    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("catalogs.refresh.run.create_provider", create)
    monkeypatch.setattr(registry, "BUILT_IN", {"aws": "", "gcp": ""})
    monkeypatch.setattr(registry, "DEFAULT", ("aws", "gcp"))
    return made


def _gone(name: str) -> FakeProvider:
    hint = f"no credentials; run `{name} login`"
    return FakeProvider(name, boom=CredentialsMissing(hint, provider=name))


def test_the_table_is_on_stdout_and_the_rest_on_stderr(
    run_cli: Run, providers: dict[str, FakeProvider]
) -> None:
    providers.update(aws=FakeProvider(), gcp=_gone("gcp"))
    done = run_cli("catalog", "refresh")
    assert done.code == 0  # without --provider a provider nobody logged in to is left aside
    assert re.search(r"^aws +added +2 +2 +0 +0 ", done.stdout, re.MULTILINE)
    assert re.search(r"^gcp +skipped ", done.stdout, re.MULTILINE)
    assert "warning: gcp: credentials_missing: gcp: no credentials; run `gcp login`" in done.stderr
    assert re.search(r"gcp: the prices of \S+ \(\d+ days old\) stay in use", done.stderr)
    listed = run_cli("catalog", "list", "--provider", "aws", "-o", "json")
    assert json.loads(listed.stdout)["offers"][0]["as_of"] == "2026-11-20"


def test_json_is_the_whole_account(run_cli: Run, providers: dict[str, FakeProvider]) -> None:
    bad = offer_row("aws", "us-east-1", "p4d.24xlarge", zone="use1-az1", price_per_hour="-1")
    error = Unreachable("no answer in time", provider="aws", api="ec2")
    aws = FakeProvider(broken={"us-west-2": error})
    aws.offers.append(bad)
    providers.update(aws=aws)
    done = run_cli("catalog", "refresh", "--provider", "aws", "--json", "-q")
    # one region failed: what came is stored, and the exit code tells
    assert (done.code, done.stderr) == (
        4,
        "error: aws: stored in part: aws us-west-2 ec2: no answer in time\n",
    )
    told = json.loads(done.stdout)
    assert told["schema_version"] == 1 and told["is_good"] is False
    (one,) = told["providers"]
    assert one["status"] == "added" and one["n_refused"] == 1
    assert one["refused"] == {"offers.price_per_hour: ... is below ...": 1}
    assert one["failures"] == [
        {
            "kind": "unreachable",
            "region": "us-west-2",
            "api": "ec2",
            "message": "aws us-west-2 ec2: no answer in time",
        }
    ]
    assert set(one["seconds"]) == {"regions", "instance_types", "offers", "check", "store"}
    assert one["kept_regions"]["us-west-2"] < "2026-11-20"  # from the bundled snapshot


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--provider", "gcp"], 4, "run `gcp login`"),
        (["--provider", "aws", "--region", "us-eats-1"], 2, "did you mean us-east-1"),
        (["--provider", "awx"], 2, "did you mean aws"),
        (["--provider", "lambda"], 2, "it comes with gpuhunt"),
        (["--provider", "gcp", "-q"], 4, "error: gcp: skipped: gcp: no credentials; run `gcp login`"),
        (["--purchase-option", "sport"], 2, "did you mean spot"),
        (["--timeout", "soon"], 2, "write it as 30s"),
        (["--workers", "0"], 2, "1<=x<=64"),
    ],
)
def test_exit_codes(
    run_cli: Run, providers: dict[str, FakeProvider], args: list[str], code: int, says: str
) -> None:
    providers.update(aws=FakeProvider(), gcp=_gone("gcp"))
    done = run_cli("catalog", "refresh", *args)
    assert done.code == code and says in done.stderr and "Traceback" not in done.stderr


def test_a_failure_beside_a_success_is_exit_code_4(run_cli: Run, providers: dict[str, FakeProvider]) -> None:
    down = FakeProvider("gcp", boom=Unreachable("no answer in time", provider="gcp"))
    providers.update(aws=FakeProvider(), gcp=down)
    done = run_cli("catalog", "refresh")
    assert done.code == 4
    assert re.search(r"^aws +added", done.stdout, re.MULTILINE)  # what worked is stored all the same


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_secret_is_shown_or_stored(
    run_cli: Run,
    providers: dict[str, FakeProvider],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    form: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    error: ProviderError = Unreachable(f"GET https://x/?key=abcd1234&sig={SECRET} failed", provider="aws")
    aws = FakeProvider(broken={"us-west-2": error})
    gcp = FakeProvider("gcp", boom=RuntimeError(f"Authorization: Bearer {SECRET}"))
    providers.update(aws=aws, gcp=gcp)
    done = run_cli("catalog", "refresh", "-vv", *(["--json"] if form == "json" else []))
    assert done.code == 4
    said = done.stdout + done.stderr + caplog.text
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET not in said and "abcd1234" not in said and SECRET.encode() not in stored
    assert "Traceback" not in said


def test_progress_is_drawn_for_a_person_only() -> None:
    from rich.console import Console

    with refresh_progress(["aws"]) as tell:
        assert tell is None  # standard error of a test is no terminal
    drawn = io.StringIO()
    with refresh_progress(["aws", "gcp"], console=Console(file=drawn, force_terminal=True, width=90)) as tell:
        assert tell is not None
        tell("aws", "us-east-1", "ec2:DescribeInstanceTypes", 100)
        tell("aws", "us-west-2", "ec2:DescribeInstanceTypes", 23)
    assert "2 regions, 123 rows" in drawn.getvalue() and "gcp        waiting" in drawn.getvalue()
    with refresh_progress(["aws"], quiet=True, console=Console(file=drawn)) as tell:
        assert tell is None
