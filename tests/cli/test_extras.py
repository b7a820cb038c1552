"""What the package installs is enough to plan; every other command names the extra that it needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from catalogs.errors import EXTRA_OF, install_command, missing_extra
from catalogs.providers.aws_client import AwsClients
from catalogs.providers.base import CredentialsMissing, FetchOptions
from catalogs.providers.gcp_client import default_login
from tests.architecture.modules import ROOT

_WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from planner.cli import main
sys.exit(main({arguments!r}))
"""
NOT_NEEDED = {*EXTRA_OF, "highspy", "pandas", "scipy"}  # by the main job; pandas and scipy come all the same


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = _WITHOUT.format(missing=NOT_NEEDED, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_optimize_needs_no_cloud_sdk_no_pandas_and_no_scipy() -> None:
    done = _run("optimize", "examples/bert-large.yaml", "--as-of", "2026-11-20", "-o", "html")
    assert (done.returncode, done.stderr) == (0, "")
    assert "<html" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("review", "examples/focus", "--month", "2026-01"), "review"),
        (("forecast", "examples/daily-costs.csv"), "review"),
        (("optimize", "examples/bert-large.yaml", "-o", "xlsx", "--out", "{folder}/a.xlsx"), "workbook"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    done = _run(*(part.format(folder=tmp_path) for part in arguments))
    assert done.returncode == 2
    assert f"ml-training-planner[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_boto3_the_public_lists_of_aws_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "boto3", None)
    options = FetchOptions()
    clients = AwsClients(options)
    assert not clients.has_credentials()
    assert "ml-training-planner[aws]" in options.log.remarks[0]
    with pytest.raises(CredentialsMissing, match=r"ml-training-planner\[aws\]"):
        clients.get("ec2", "us-east-1")


def test_without_the_sdk_of_google_a_key_alone_still_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    monkeypatch.delenv("PLANNER_GCP_API_KEY", raising=False)
    with pytest.raises(CredentialsMissing, match=r"ml-training-planner\[gcp\]"):
        default_login()
    monkeypatch.setenv("PLANNER_GCP_API_KEY", "a-key")
    login = default_login()
    assert (login.credentials, login.api_key) == (None, "a-key")


def test_each_extra_that_is_named_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRA_OF.values()) <= set(project["optional-dependencies"])
    assert project["name"] in install_command("aws")


def test_another_missing_module_is_a_defect_of_ours() -> None:
    assert missing_extra(ModuleNotFoundError("no", name="planner.nothing")) is None
    assert missing_extra(ImportError("no name")) is None
