"""A Microsoft Teams message as JSON, for workflows and incoming webhooks (one Adaptive Card).

Words of the answer are runs of a `RichTextBlock`, in which Adaptive Cards know no Markdown: they are shown as they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planner.render.chat import ChatLine, chat_lines
from planner.render.text import clean

if TYPE_CHECKING:
    from planner.render.model import Answer

_CARD = "application/vnd.microsoft.card.adaptive"
_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
_VERSION = "1.4"
_MOST_HEADER_CHARACTERS = 150


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as a message with one card.

    Raises:
        InputError: the answer has no brief.
    """
    del width, color
    header = {
        "type": "RichTextBlock",
        "inlines": [_run(clean(answer.topic)[:_MOST_HEADER_CHARACTERS], size="Large", weight="Bolder")],
    }
    card = {
        "$schema": _SCHEMA,
        "type": "AdaptiveCard",
        "version": _VERSION,
        "msteams": {"width": "Full"},
        "body": [header, *map(_block, chat_lines(answer))],
    }
    message = {
        "type": "message",
        "attachments": [{"contentType": _CARD, "contentUrl": None, "content": card}],
    }
    return json.dumps(message, indent=1, ensure_ascii=False) + "\n"


def _block(line: ChatLine) -> dict[str, Any]:
    label = [_run(f"{line.label}: ", weight="Bolder")] if line.label else []
    spacing = "Default" if line.label else "Small"
    return {"type": "RichTextBlock", "spacing": spacing, "inlines": [*label, _run(line.text)]}


def _run(text: str, **style: str) -> dict[str, Any]:
    return {"type": "TextRun", "text": text, **style}
