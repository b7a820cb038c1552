"""`python -m benchmarks.forgeries --n 10000`: how many random forgeries of answers `planner verify` lets pass.

Answers of the examples and of variants of them are changed at one random place each: a number scaled by 1.001 to 10
or divided by it, a text swapped with another that occurs in such answers, a flag flipped, a line dropped, repeated or
moved, and consistent pairs (every leaf that holds the same figure, or all money) changed together.
Leaves that `planner.judge.stated` names are left alone. Prints, per kind of answer, how many
were caught, and every forgery that passed.

`--every-leaf` draws nothing: every leaf of every answer is changed once (the tests change one leaf of each field).
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.instances.answers import Saved, saved_answers
from planner.errors import InputError
from planner.judge.document import leaves
from planner.judge.findings import general, is_stated

Path_ = tuple[str | int, ...]
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")


@dataclass(frozen=True)
class Forgery:
    """One change: its kind, where it is made, and what the answer became."""

    kind: str
    where: str
    answer: dict[str, Any]


def steps(path: str) -> Path_:
    """A path of `leaves` as keys and positions."""
    found = _STEP.findall(path.removeprefix("$"))
    return tuple(int(position) if position else key for key, position in found)


def at(answer: Any, path: Path_) -> Any:
    """The value at a path."""
    for step in path:
        answer = answer[step]
    return answer


def put(answer: Any, path: Path_, value: Any) -> None:
    """Set the value at a path."""
    at(answer, path[:-1])[path[-1]] = value


def scaled(value: Any, factor: float) -> Any:
    """A number or decimal text times `factor`; zero becomes 1, whole numbers move by one at least."""
    if isinstance(value, str):
        text = format(Decimal(value) * Decimal(repr(round(factor, 6))), "f")
        return "1" if Decimal(value) == 0 else text
    if isinstance(value, int):
        moved = round(value * factor)
        return moved if moved != value else value + 1
    return value * factor if value else 1.0


def is_number(value: Any) -> bool:
    """Whether a leaf is a number, or an amount as decimal text."""
    if isinstance(value, str):
        return bool(_DECIMAL.fullmatch(value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_moment(one: str, other: str) -> bool:
    """Whether two texts are one moment, with seconds and without."""
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


class Forger:
    """Draws forgeries of one answer; `texts` are values seen in other answers, by path without positions."""

    def __init__(self, answer: dict[str, Any], stated: set[str], texts: dict[str, list[str]]) -> None:
        """List the leaves and lists that may be changed."""
        self.answer, self.stated, self.texts = answer, stated, texts
        found = [(path, value) for path, value in leaves(answer) if not is_stated(path, stated)]
        self.numbers = [path for path, value in found if is_number(value)]
        self.words = [path for path, value in found if isinstance(value, str) and not is_number(value)]
        self.flags = [path for path, value in found if isinstance(value, bool)]
        self.empty = [path for path, value in found if value is None]
        self.lists = [path for path in lists(answer) if not self._is_stated(path)]

    def _is_stated(self, path: str) -> bool:
        name = general(path)
        return is_stated(path, self.stated) or any(
            one == name or one.startswith(f"{name}[*]") for one in self.stated
        )

    def draw(self, rng: random.Random) -> Forgery | None:
        """One forgery, None where the kind drawn does not apply."""
        kinds: list[tuple[str, float, Callable[[Any, random.Random], str | None]]] = [
            ("scale", 0.45, self._scale), ("swap", 0.2, self._swap), ("flip", 0.05, self._flip),
            ("list", 0.15, self._list), ("same figure", 0.08, self._together), ("price", 0.07, self._price),
        ]  # fmt: skip
        kind, _, change = rng.choices(kinds, [weight for _, weight, _ in kinds])[0]
        made = copy.deepcopy(self.answer)
        where = change(made, rng)
        if where is None or made == self.answer:
            return None
        return Forgery(kind, where, made)

    def _factor(self, rng: random.Random) -> float:
        factor = float(10 ** rng.uniform(0.000434, 1.0))
        return factor if rng.random() < 0.5 else 1.0 / factor

    def _scale(self, made: Any, rng: random.Random) -> str | None:
        if not self.numbers:
            return None
        path = rng.choice(self.numbers)
        factor = self._factor(rng)
        put(made, steps(path), scaled(at(made, steps(path)), factor))
        return f"{path} x {factor:.6g}"

    def _swap(self, made: Any, rng: random.Random) -> str | None:
        path = rng.choice(self.words)
        own = at(made, steps(path))
        others = [
            text for text in self.texts.get(general(path), []) if text != own and not same_moment(text, own)
        ]
        if not others:
            return None
        other = rng.choice(others)
        put(made, steps(path), other)
        return f"{path} -> {other}"

    def _flip(self, made: Any, rng: random.Random) -> str | None:
        if self.flags and (not self.empty or rng.random() < 0.5):
            path = rng.choice(self.flags)
            put(made, steps(path), not at(made, steps(path)))
        elif self.empty:
            path = rng.choice(self.empty)
            put(made, steps(path), rng.choice([0.5, 1, "x"]))
        else:
            return None
        return path

    def _list(self, made: Any, rng: random.Random) -> str | None:
        if not self.lists:
            return None
        path = rng.choice(self.lists)
        items = at(made, steps(path)) if path != "$" else made
        how, one = rng.choice(("drop", "repeat", "move")), rng.randrange(len(items))
        if how == "drop":
            del items[one]
        elif how == "repeat":
            items.insert(one, copy.deepcopy(items[one]))
        else:
            items.insert(rng.randrange(len(items)), items.pop(one))
        return f"{path}[{one}] {how}"

    def _together(self, made: Any, rng: random.Random) -> str | None:
        """Every leaf with the figure of one, scaled alike."""
        if not self.numbers:
            return None
        value = at(self.answer, steps(rng.choice(self.numbers)))
        if value in (0, 1, "0", "1"):
            return None
        same = [path for path in self.numbers if at(self.answer, steps(path)) == value]
        factor = self._factor(rng)
        for path in same:
            put(made, steps(path), scaled(at(made, steps(path)), factor))
        return f"{', '.join(same)} x {factor:.6g}"

    def _price(self, made: Any, rng: random.Random) -> str | None:
        """All money of the answer by one factor: lines, sums and totals stay consistent."""
        factor = self._factor(rng)
        money = [
            path
            for path in self.numbers
            if re.search(r"usd|amount|unit_price|price_per", path.rsplit(".", 1)[-1])
        ]
        money = [path for path in money if "usd_per_currency" not in path]
        for path in money:
            put(made, steps(path), scaled(at(made, steps(path)), factor))
        return f"all money x {factor:.6g}" if money else None


def lists(value: Any, path: str = "$") -> Iterator[str]:
    """Paths of all lists that are not empty."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from lists(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        yield path
        for position, item in enumerate(value):
            yield from lists(item, f"{path}[{position}]")


def texts_of(answers: list[Saved]) -> dict[str, list[str]]:
    """Texts by path without positions, over all answers."""
    found: dict[str, set[str]] = {}
    for saved in answers:
        for path, value in leaves(saved.answer):
            if isinstance(value, str):
                found.setdefault(general(path), set()).add(value)
    return {path: sorted(values) for path, values in found.items()}


def passes(saved: Saved, answer: dict[str, Any]) -> bool:
    """Whether the judge lets an answer pass."""
    try:
        return not saved.judge(answer)
    except InputError:
        return False


def run(answers: list[Saved], count: int, seed: int) -> tuple[Counter[str], Counter[str], list[str]]:
    """Forge `count` times; returns how many per kind of answer were tried and caught, and those that passed."""
    rng, texts = random.Random(seed), texts_of(answers)
    forgers = [(saved, Forger(saved.answer, saved.stated, texts)) for saved in answers]
    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    through: list[str] = []
    while sum(tried.values()) < count:
        saved, forger = rng.choice(forgers)
        forgery = forger.draw(rng)
        if forgery is None:
            continue
        tried[saved.kind] += 1
        if sum(tried.values()) % 500 == 0:
            print(f"{sum(tried.values())} tried, {len(through)} passed", file=sys.stderr, flush=True)
        if passes(saved, json.loads(json.dumps(forgery.answer))):
            through.append(f"{saved.name}: {forgery.kind}: {forgery.where}")
            print(
                f"passed: {through[-1][:200]}", file=sys.stderr, flush=True
            )  # known though it be interrupted
        else:
            caught[saved.kind] += 1
    return tried, caught, through


def every_leaf(answers: list[Saved]) -> list[str]:
    """Change every leaf of the answers once; returns those whose change no fault names."""
    from tests.planner.judge.tampering import changes_of, uncaught  # the tests' own check, on all leaves

    texts, through = texts_of(answers), list[str]()
    for saved in answers:
        changes = changes_of(saved, texts)
        passed = uncaught(saved, changes)
        print(f"{saved.name:40} {len(changes) - len(passed):6} of {len(changes):6} leaves caught", flush=True)
        through += [f"{saved.name}: {where}" for where in passed]
    return through


def main() -> None:
    """Print the table and what passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="forgeries")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--kinds", default="", help="kinds of answer, comma-separated; default all")
    parser.add_argument("--every-leaf", action="store_true", help="change every leaf once, draw nothing")
    parser.add_argument("--show", type=int, default=40, help="most forgeries listed that passed")
    given = parser.parse_args()
    answers = [s for s in saved_answers() if not given.kinds or s.kind in given.kinds.split(",")]
    for saved in answers:
        faults = saved.judge(saved.answer)
        if faults:
            raise SystemExit(f"{saved.name} does not hold as it is: {faults[:3]}")
    begin = time.process_time()
    if given.every_leaf:
        through = every_leaf(answers)
        print(f"{time.process_time() - begin:.0f} CPU s")
    else:
        tried, caught, through = run(answers, given.n, given.seed)
        for kind in sorted(tried):
            print(f"{kind:20} {caught[kind]:6} of {tried[kind]:6} caught")
        seconds = time.process_time() - begin
        print(f"{'all':20} {sum(caught.values()):6} of {sum(tried.values()):6} caught, {seconds:.0f} CPU s")
    for line in through[: given.show]:
        print(f"  passed: {line[:200]}")


if __name__ == "__main__":
    main()


__all__ = ["Forger", "Path", "Saved", "run", "saved_answers"]
