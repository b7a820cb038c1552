"""The tools of `Assistant` as an MCP server on standard input and output (https://modelcontextprotocol.io)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations

from planner.api.assistant import Assistant, refuse_network
from planner.asked.calls import as_planner_error
from planner.version import __version__

_INSTRUCTIONS = (
    "Plans machine-learning training on cloud machines: what to rent, where, how many, at what cost and risk. Figures "
    "are from a dated catalog of prices and a performance model; quote the interval and the date beside a figure. "
    "`optimize` needs a workload in YAML: model, data, batch and limits."
)


def make_server(folder: Path) -> MCPServer:
    """The server of a folder's questions.

    Args:
        folder: the only files that are read are below it.
    """
    hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools: list[Tool] = [
        _ExactTool.from_function(_with_messages(tool), annotations=hints, structured_output=False)
        for tool in Assistant(folder).tools
    ]
    for tool in tools:
        tool.parameters["additionalProperties"] = False
    return MCPServer(
        "planner", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR", tools=tools
    )


def serve(folder: Path) -> None:
    """Answer on standard input and output until the client goes away; the process then has no network at all."""
    sys.addaudithook(refuse_network)
    make_server(folder).run("stdio")


class _ExactTool(Tool):  # type: ignore[misc]  # the SDK is not checked
    """A tool that refuses arguments it does not have: the SDK drops them, and with a limit the answer is wrong."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        known = self.parameters["properties"]
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise ToolError(f"{self.name} has no argument {', '.join(unknown)}; it has {', '.join(known)}")
        return await super().run(arguments, context, convert_result)


def _with_messages(tool: Callable[..., str]) -> Callable[..., str]:
    """The tool, whose errors are messages for the assistant; a defect stays a crash, which the server logs."""

    @functools.wraps(tool)
    def run(**given: Any) -> str:
        try:
            return tool(**given)
        except MemoryError:
            raise ToolError(
                "the question needs more memory than the limit (--max-memory); narrow it"
            ) from None
        except Exception as error:
            message = as_planner_error(error)
            if message is None:
                raise
            raise ToolError(str(message)) from None

    return run
