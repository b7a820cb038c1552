"""`python -m benchmarks.malformed --n 5000`: answers with a value of another kind.

None may end in a traceback.

One random value of a real answer, a whole list or object included, becomes one of another type, size or sign, or goes
missing. `planner verify` must find faults or refuse the file by name; any other exception is printed with its place.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.instances.answers import Saved, saved_answers
from planner.errors import CatalogError, InputError
from planner.judge.document import check_values, join

ODD: tuple[Any, ...] = (
    5, -1, 0, 1.5, 10**17, -(10**17), 1e-300, True, None, "", "x", "1e99", "-3", "Infinity", "NaN", "9" * 40,
    "2026-13-45", "2026-02-30T00:00+00:00", "0001-01-01T00:00+00:00", "9999-12-31T23:59+00:00", [], [1], [None], {},
    {"x": 1}, {"": []}, [[[]]], "\u0000", "a/b/c/d/e/f",
)  # fmt: skip
MISSING = object()
Steps = tuple[Any, ...]


def step_places(value: Any) -> list[Steps]:
    """Keys and positions that lead to every value, lists and objects included, but for the whole."""
    found: list[Steps] = []
    _gather(value, (), found)
    return found


def _gather(value: Any, above: Steps, found: list[Steps]) -> None:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in members:
        at = (*above, key)
        found.append(at)
        if isinstance(item, dict | list):
            _gather(item, at, found)


def broken(answer: Any, path: Steps, value: Any) -> Any:
    """The answer with another value at a path, or without it; what lies beside the path is shared, not copied."""
    made = copy.copy(answer)
    step, *below = path
    if below:
        made[step] = broken(made[step], tuple(below), value)
    elif value is MISSING:
        del made[step]
    else:
        made[step] = value
    return made


def gives_way(saved: Saved, answer: dict[str, Any]) -> str:
    """The exception that no reader should see; nothing where faults are found or the file is refused."""
    from planner.plan.file import as_plan

    try:
        check_values(answer)
        if saved.kind in ("optimize", "fleet"):
            answer = as_plan(Path("answer.json"), answer)
        saved.judge(answer)
    except (InputError, CatalogError):
        return ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {str(error)[:80]}"
    return ""


def saved_certificates(paths: list[Path]) -> list[Saved]:
    """Certificates (`--certificate FILE` of a command), with what `planner verify` says of them."""
    from planner.plan.certificates import check_certificate, summary

    def judge(certificate: dict[str, Any]) -> list[str]:
        return check_certificate(certificate) or [summary(certificate)]

    return [Saved(path.name, "certificate", json.loads(path.read_text()), set(), judge) for path in paths]


def run(answers: list[Saved], count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Break answers `count` times; returns tries by kind, and what gave way."""
    rng, tried, found = random.Random(seed), Counter[str](), []
    where = [(saved, step_places(saved.answer)) for saved in answers]  # two may have one name
    for _ in range(count):
        saved, paths = rng.choice(where)
        path, value = rng.choice(paths), rng.choice((*ODD, MISSING))
        tried[saved.kind] += 1
        error = gives_way(saved, json.loads(json.dumps(broken(saved.answer, path, value))))
        if error:
            shown = "missing" if value is MISSING else json.dumps(value)[:40]
            found.append(f"{saved.name}: {functools.reduce(join, path, '$')} = {shown}: {error}")
            print(found[-1], file=sys.stderr, flush=True)
    return tried, found


def main() -> None:
    """Print what gave way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="broken answers")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--kinds", default="", help="kinds of answer, comma-separated; default all")
    parser.add_argument("--certificates", nargs="+", type=Path, help="break these files instead of answers")
    given = parser.parse_args()
    every = saved_certificates(given.certificates) if given.certificates else saved_answers()
    answers = [saved for saved in every if not given.kinds or saved.kind in given.kinds.split(",")]
    begin = time.process_time()
    tried, found = run(answers, given.n, given.seed)
    for kind in sorted(tried):
        print(f"{kind:20} {tried[kind]:6}")
    print(f"all {sum(tried.values())}, {len(found)} gave way, {time.process_time() - begin:.0f} CPU s")


if __name__ == "__main__":
    main()
