"""When commitments of a bill end, as their owner says: bills without contracts do not say it themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

from planner.errors import InputError
from planner.inputs.faults import near

_SHOWN = 4
_YEAR = timedelta(days=365)  # a term that nothing states


def parse_ends(texts: Sequence[str]) -> dict[str, date]:
    """Read `ID=DATE` pairs; an id may contain `=`.

    Raises:
        InputError: a text is not such a pair, or an id has two dates.
    """
    out: dict[str, date] = {}
    for text in texts:
        name, _, day = text.rpartition("=")
        try:
            end = date.fromisoformat(day.strip())
        except ValueError:
            raise InputError(f"--expires {text}: write ID=DATE, such as ri-0001=2027-03-31") from None
        if not name.strip():
            raise InputError(f"--expires {text}: write ID=DATE, with the id of a commitment of the bill")
        if out.setdefault(name.strip(), end) != end:
            raise InputError(f"--expires: {name.strip()} ends on two dates")
    return out


def with_stated(
    known: Mapping[str, tuple[datetime, datetime]], stated: Mapping[str, date], names: Iterable[str]
) -> dict[str, tuple[datetime, datetime]]:
    """Periods of commitments with the ends that their owner states, which come first.

    Args:
        known: first and last moment of each commitment, as the bill says.
        stated: last day by id, or by what ids end in after a slash.
        names: ids of the commitments that the bill shows.

    Raises:
        InputError: a stated id is of none of them, or of several; a date at an end of the calendar.
    """
    out, every = dict(known), sorted(set(names))
    for name, day in stated.items():
        own = [one for one in every if one == name] or [one for one in every if one.endswith(f"/{name}")]
        if len(own) != 1:
            raise InputError(f"--expires {name}={day}: {_which(name, own or every, several=bool(own))}")
        try:
            end = datetime.combine(day, datetime.min.time()) + timedelta(days=1)
            begin = out[own[0]][0] if own[0] in out else end - _YEAR
        except OverflowError:
            raise InputError(f"--expires {name}={day}: no commitment ends then; check the year") from None
        out[own[0]] = (min(begin, end), end)
    return out


def _which(name: str, names: Sequence[str], *, several: bool) -> str:
    listed = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    if several:
        return f"several commitments of the bill are called so: {listed}"
    if not names:
        return "the bill shows no commitment in its last 30 days"
    close = near(name, [*names, *(one.rpartition("/")[2] for one in names)])
    hint = f" (did you mean {close}?)" if close else ""
    return f"no commitment of the bill is called so{hint}; it shows {listed}"
