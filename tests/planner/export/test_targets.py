"""Every target of the registry on every kind of launch: goldens, and texts of users that must stay texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.errors import InputError
from planner.export.registry import TARGETS, Options, export
from tests.planner.export.launches import LAUNCHES

CASES = [(target, name) for target in TARGETS for name in LAUNCHES]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_what_a_target_writes(target: str, name: str, check_golden: Callable[[str, str], None]) -> None:
    try:
        files = export(LAUNCHES[name], target, Options())
    except InputError as error:
        check_golden(f"export/{target}/{name}.refused.txt", f"{error}\n")
        return
    assert len({file.path for file in files}) == len(files)
    for file in files:
        check_golden(f"export/{target}/{name}.{file.path.replace('/', '.')}", file.text)
        assert file.text.endswith("\n") and not file.text.endswith("\n\n")


@pytest.mark.parametrize("target", TARGETS)
def test_an_option_that_a_target_does_not_have_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="no such option"):
        export(LAUNCHES["one"], target, Options(values={"no-such": "x"}))
