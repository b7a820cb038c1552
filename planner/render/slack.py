"""A Slack message as JSON, for `chat.postMessage` and incoming webhooks (Block Kit).

Words of the answer are text elements of `rich_text` blocks, which Slack shows as they are: no markup, mention or link
in them has an effect. The fallback `text` of notifications is read as markup, so its control characters are escaped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planner.render.chat import ChatLine, chat_lines
from planner.render.text import clean

if TYPE_CHECKING:
    from planner.render.model import Answer

_MOST_HEADER_CHARACTERS = 150  # docs.slack.dev/reference/block-kit/blocks/header-block, read 2026-11-23


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as a message: a header and one block per labelled part.

    Raises:
        InputError: the answer has no brief.
    """
    del width, color
    lines = chat_lines(answer)
    parts: list[list[ChatLine]] = []
    for line in lines:
        if line.label or len(parts) < 2:
            parts.append([])
        parts[-1].append(line)
    topic = clean(answer.topic)[:_MOST_HEADER_CHARACTERS]
    header = {"type": "header", "text": {"type": "plain_text", "text": topic, "emoji": False}}
    message = {"text": _escape(lines[0].text), "blocks": [header, *map(_block, parts)]}
    return json.dumps(message, indent=2, ensure_ascii=False) + "\n"


def _block(part: list[ChatLine]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    for number, line in enumerate(part):
        before = "\n" if number else ""
        if line.label:
            elements.append({"type": "text", "text": f"{before}{line.label}: ", "style": {"bold": True}})
            before = ""
        elements.append({"type": "text", "text": before + line.text})
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
