"""Take secrets out of texts that are shown or stored: the last line of defence behind not putting them in."""

from __future__ import annotations

import os
import re

HIDDEN = "[hidden]"
_SECRET_NAMES = re.compile(r"SECRET|TOKEN|PASSWORD|PRIVATE|ACCESS_KEY|API_?KEY|CREDENTIAL", re.IGNORECASE)
_LEAST_LENGTH = 8  # shorter values also occur in ordinary words
_PATTERNS = (
    re.compile(r"(?i)(\bbearer\s+)[\w.~+/=-]{8,}"),
    re.compile(r"(?i)((?:[?&]|\b)(?:key|sig|signature|token|password|secret|[\w-]*token)=)[^&\s'\"]+"),
    re.compile(r"()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"()\bLTAI[0-9A-Za-z]{12,}\b"),
    re.compile(r"()\bAIza[0-9A-Za-z_-]{30,}\b"),
    re.compile(r"()\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),  # a JSON web token
)


def redact(text: str) -> str:
    """Replace what looks like a secret, and the values of the environment's secret variables."""
    for name, value in os.environ.items():
        if len(value) >= _LEAST_LENGTH and _SECRET_NAMES.search(name) and not os.path.isabs(value):  # noqa: PTH117
            text = text.replace(value, HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text
