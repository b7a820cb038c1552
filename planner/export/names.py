"""Names, tags and labels within the rules of each target; what must be changed gets a short hash, so names stay apart.

Rules: ../docs/export.md lists them with their sources.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from planner.records import record

RUN_TAG = "planner_run_id"
"""Key of the tag that joins a bill to its plan (`planner review --run-tag`)."""
_HASH = 6


@record(frozen=True)
class NameRule:
    """What a target takes as a name.

    Attributes:
        refused: pattern of one character that may not occur anywhere.
        most: longest, in characters.
        lower: whether upper case is refused.
        first, last: pattern of the characters that it may start and end with.
        replacement: what a refused character becomes.
        prefix: put before a name that starts otherwise.
        reserved: pattern of names that the target keeps for itself.
    """

    refused: str
    most: int
    lower: bool = False
    first: str = "."
    last: str = "."
    replacement: str = "-"
    prefix: str = "x"
    reserved: str = r"(?!)"


AWS_KEY = NameRule(r"[^A-Za-z0-9 +\-=._:/@]", 128, first=r"[^ ]", last=r"[^ ]", reserved=r"(?i)aws:")
AWS_VALUE = NameRule(r"[^A-Za-z0-9 +\-=._:/@]", 256, first=r"[^ ]", last=r"[^ ]")
GCP_KEY = NameRule(r"[^a-z0-9_-]", 63, lower=True, first=r"[a-z]", replacement="_")
GCP_VALUE = NameRule(r"[^a-z0-9_-]", 63, lower=True, replacement="_")
AZURE_KEY = NameRule(
    r"[<>%&\\?/\x00-\x1f\x7f]", 128, first=r"[^ ]", last=r"[^ ]", reserved=r"(?i)(azure|windows|microsoft)"
)
AZURE_VALUE = NameRule(r"[\x00-\x1f\x7f]", 256, first=r"[^ ]", last=r"[^ ]")
KUBERNETES_KEY = NameRule(r"[^A-Za-z0-9._-]", 63, first=r"[A-Za-z0-9]", last=r"[A-Za-z0-9]")
KUBERNETES_VALUE = KUBERNETES_KEY
KUBERNETES_NAME = NameRule(r"[^a-z0-9-]", 63, lower=True, first=r"[a-z]", last=r"[a-z0-9]")
SKYPILOT_KEY = NameRule(r"[^a-z0-9_-]", 63, lower=True, first=r"[a-z]", last=r"[a-z0-9]", replacement="_")
SKYPILOT_VALUE = NameRule(r"[^a-z0-9_-]", 63, lower=True, last=r"[a-z0-9]")
SLURM_NAME = NameRule(r"[^A-Za-z0-9._-]", 64, first=r"[A-Za-z0-9]", last=r"[A-Za-z0-9]")
FILE_NAME = NameRule(r"[^A-Za-z0-9._-]", 64, first=r"[A-Za-z0-9]", last=r"[A-Za-z0-9]")

TAG_RULES: Mapping[str, tuple[NameRule, NameRule]] = {
    "aws": (AWS_KEY, AWS_VALUE),
    "gcp": (GCP_KEY, GCP_VALUE),
    "azure": (AZURE_KEY, AZURE_VALUE),
    "kubernetes": (KUBERNETES_KEY, KUBERNETES_VALUE),
    "skypilot": (SKYPILOT_KEY, SKYPILOT_VALUE),
}
MOST_TAGS: Mapping[str, int] = {"aws": 50, "gcp": 64, "azure": 50, "kubernetes": 64, "skypilot": 50}


def clean(text: str, rule: NameRule, *, most: int | None = None) -> str:
    """Return `text` as the rule takes it: unchanged where it may be, else changed and with a hash of the original.

    Args:
        text: any text of a user.
        rule: of the target.
        most: a shorter limit than the rule's, in characters.
    """
    limit = min(rule.most, most or rule.most)
    if not text or is_clean(text, rule, limit):
        return text
    mark = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    cleaned = re.sub(rule.refused, rule.replacement, text.lower() if rule.lower else text)
    cleaned = re.sub(rf"(?:{re.escape(rule.replacement)}){{2,}}", rule.replacement, cleaned)
    if cleaned and (not re.match(rule.first, cleaned) or re.match(rule.reserved, cleaned)):
        cleaned = rule.prefix + (rule.replacement if cleaned[0] != rule.replacement else "") + cleaned
    cleaned = (cleaned or rule.prefix)[: limit - _HASH - 1].rstrip(f" .{rule.replacement}")
    return f"{cleaned}{rule.replacement}{mark}"


def is_clean(text: str, rule: NameRule, most: int | None = None) -> bool:
    """Whether a target takes `text` as it is."""
    limit = min(rule.most, most or rule.most)
    return bool(
        0 < len(text) <= limit
        and not re.search(rule.refused, text)
        and re.match(rule.first, text)
        and re.match(rule.last, text[-1])
        and not re.match(rule.reserved, text)
    )


def clean_tags(tags: Mapping[str, str], target: str) -> dict[str, str]:
    """Tags within the character rules and the number that a target takes; the first win.

    Args:
        tags: key to value, the most important first (`planner.export.view.Launch.tags`).
        target: a key of `TAG_RULES`.
    """
    key_rule, value_rule = TAG_RULES[target]
    cleaned = {clean(key, key_rule): clean(value, value_rule) for key, value in tags.items() if key}
    return dict(list(cleaned.items())[: MOST_TAGS[target]])
