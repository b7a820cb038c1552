"""The site of the documents: each page is in its contents, and commands are described as they are."""

from __future__ import annotations

import pytest
import yaml

from planner.cli import COMMANDS
from tests.conftest import ROOT
from tools.docs_site import REFERENCE, command_reference, outward_links


def _pages(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    items = node if isinstance(node, list) else node.values()  # type: ignore[attr-defined]
    return [page for item in items for page in _pages(item)]


def test_each_page_is_in_the_contents_once() -> None:
    contents = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("adr/")}
    assert sorted(_pages(contents)) == sorted({*pages - decisions, REFERENCE})


def test_the_reference_describes_each_command() -> None:
    page = command_reference()
    assert [name for name in COMMANDS if f"## planner {name}\n" not in page] == []
    assert "## planner catalog refresh\n" in page


@pytest.mark.parametrize(
    ("page", "link", "wanted"),
    [
        ("spot/launch.md", "](../../planner/data/x.csv)", "](https://h/blob/main/planner/data/x.csv)"),
        ("spot/launch.md", "](../risk.md#a)", "](../risk.md#a)"),
        ("index.md", "](init.md)", "](init.md)"),
        ("index.md", "](https://example.org/../x)", "](https://example.org/../x)"),
    ],
)
def test_links_that_leave_the_documents_lead_to_the_repository(page: str, link: str, wanted: str) -> None:
    assert outward_links(link, page, "https://h/blob/main") == wanted


def test_without_a_repository_such_links_lead_nowhere_else() -> None:
    assert outward_links("](../README.md)", "index.md", "") == "](#)"
