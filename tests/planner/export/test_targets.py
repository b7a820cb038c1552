"""Every target of the registry on every kind of launch: goldens, and texts of users that must stay texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.errors import InputError
from planner.export.registry import TARGETS, Options, export
from tests.conftest import ROOT
from tests.planner.export.launches import LAUNCHES

GOLDENS = ROOT / "tests" / "fixtures" / "golden" / "export"
CASES = [(target, name) for target in TARGETS for name in LAUNCHES]


def written(target: str, name: str) -> dict[str, str]:
    """The texts of a launch by the end of their golden's name; the reason where the target refuses it."""
    try:
        files = export(LAUNCHES[name], target, Options())
    except InputError as error:
        return {"refused.txt": f"{error}\n"}
    assert len({file.path for file in files}) == len(files)
    return {file.path.replace("/", "."): file.text for file in files}


@pytest.mark.parametrize(("target", "name"), CASES)
def test_what_a_target_writes(target: str, name: str, check_golden: Callable[[str, str], None]) -> None:
    """A file that is the same as that of the launch `one` has no golden of its own."""
    of_one = written(target, "one")
    for end, text in written(target, name).items():
        same = name != "one" and text == of_one.get(end)
        own = GOLDENS / target / f"{name}.{end}"
        assert not (same and own.exists()), f"{own} is no longer needed, or its target lost what set it apart"
        check_golden(f"export/{target}/{'one' if same else name}.{end}", text)
        assert text.endswith("\n") and not text.endswith("\n\n")


@pytest.mark.parametrize("target", TARGETS)
def test_an_option_that_a_target_does_not_have_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="no such option"):
        export(LAUNCHES["one"], target, Options(values={"no-such": "x"}))
