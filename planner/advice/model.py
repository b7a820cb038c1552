"""What `planner advise` answers: what to do now, what else could be done, and what each costs."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from planner.records import record
from planner.spot.policy.job import Action

if TYPE_CHECKING:
    from planner.advice.question import Question
    from planner.spot.hazards import HazardTable

Status = Literal["running", "late", "missed", "finished"]
Word = Literal["wait", "start spot", "stay", "migrate", "switch to on-demand", "nothing"]


@record(frozen=True)
class Option:
    """Something that can be done now.

    Attributes:
        word: in the words of a launcher.
        action: in those of a policy.
        cost_usd: expected from now to the end, following the policy afterwards; NaN where it was not worked out.
        p_finish: probability to finish by the deadline, with how often on-demand comes when it is asked for.
        finish_hours: expected end, hours from now; NaN if it seldom comes.
        cost_half_usd, more_half_usd: half of the 80 % intervals that drawing so many futures leaves the cost, and what
            it is more than the chosen option's in the same futures; 0 where none was drawn.
    """

    word: Word
    action: Action
    cost_usd: float
    p_finish: float
    finish_hours: float
    cost_half_usd: float = 0.0
    more_half_usd: float = 0.0


@record(frozen=True, eq=False)
class Advice:
    """The answer.

    Attributes:
        status: `late`: on-demand asked for now would end after the deadline; `missed`: the deadline is over.
        chosen, others: what to do, and what else, cheapest first among those that meet the deadline best.
        decided_by: `policy`, `guard` (the policy would have put the deadline at risk) or `state` (nothing to decide).
        why: one sentence.
        work_left_hours, time_left_hours: undisturbed work, and time to the deadline.
        no_return_hours: time until on-demand must be asked for if nothing makes progress before; below 0: it is over.
        p_spot_alone: probability to finish by the deadline without on-demand.
    """

    question: Question
    policy: str
    status: Status
    chosen: Option
    others: tuple[Option, ...]
    decided_by: str
    why: str
    work_left_hours: float
    time_left_hours: float
    no_return_hours: float
    p_spot_alone: float
    tables: dict[str, HazardTable]

    def moment(self, hours: float) -> datetime | None:
        """The moment `hours` from now; None where it is unknown."""
        return self.question.now + timedelta(hours=hours) if math.isfinite(hours) else None
