"""The MCP server, the same over HTTP and stdio: its instructions, tools, resources and prompt."""

from collections.abc import Iterable
from typing import Any

from anyio import AsyncFile
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import (
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult
from pydantic import AnyUrl, ValidationError

from esker.server import VERSION
from esker.server.core.errors import EskerError
from esker.server.tools.backend import Backend
from esker.server.tools.briefing_tool import add_briefing
from esker.server.tools.expand_tool import add_expand
from esker.server.tools.instructions import INSTRUCTIONS
from esker.server.tools.recall_tool import add_recall
from esker.server.tools.refusals import UNEXPECTED, PlainErrors, problems_of, unknown
from esker.server.tools.remember_tool import add_forget, add_remember
from esker.server.tools.resources import ADDRESSES, add_resources
from esker.server.tools.scopes import NeededTools
from esker.server.tools.status_tool import add_status

_LONGEST = 200


class EskerMcp(MCPServer[Any]):
    """The library's server with errors for the caller; the library's own describe faults in the server's code."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises MCPError if it does not exist, and ToolError with a message for the model."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise MCPError(INVALID_PARAMS, unknown("tool", name, tools))
        known = tools[name].input_schema.get("properties", {})
        if unexpected := sorted(arguments.keys() - known.keys()):
            raise ToolError(unknown("argument", unexpected[0], known))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            raise UnexpectedToolError(UNEXPECTED) from error.__cause__
        except ToolError as error:
            raise ToolError(_plain_message(name, error)) from error.__cause__

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt. Raises MCPError."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            raise MCPError(INVALID_PARAMS, unknown("prompt", name, prompts))
        given = arguments or {}
        known = {argument.name: argument for argument in prompts[name].arguments or ()}
        if unexpected := sorted(given.keys() - known.keys()):
            raise MCPError(INVALID_PARAMS, unknown("argument", unexpected[0], known))
        for argument in known.values():
            if argument.required and not str(given.get(argument.name, "")).strip():
                raise MCPError(INVALID_PARAMS, f"{argument.name} is missing: {argument.description}")
        return await super().get_prompt(name, given, context)

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource. Raises ResourceError."""
        try:
            return await super().read_resource(uri, context)
        except UnexpectedResourceError as error:
            raise UnexpectedResourceError(UNEXPECTED) from error.__cause__
        except ResourceNotFoundError as error:
            if isinstance(error.__cause__, EskerError):
                raise
            raise ResourceNotFoundError(f"{str(uri)[:_LONGEST]!r} does not exist. {ADDRESSES}") from error

    async def run_between(self, stdin: AsyncFile[str], stdout: AsyncFile[str]) -> None:
        """Answer the messages of one client, one a line, until its input ends."""
        server = self._lowlevel_server
        async with stdio_server(stdin, stdout) as (read, write):
            await server.run(read, write, server.create_initialization_options())


def _plain_message(tool: str, error: ToolError) -> str:
    """Return the message of a tool error without the prefix that the library adds."""
    match error.__cause__:
        case ValidationError() as cause:
            return f"Invalid arguments of {tool}; nothing was done: {problems_of(cause)}."
        case ToolError() as cause:
            return str(cause)
        case _:
            return str(error)


def make_mcp(backend: Backend) -> EskerMcp:
    """Return an MCP server whose tools answer through `backend`."""
    mcp = EskerMcp("esker", title="Esker memory", version=VERSION, instructions=INSTRUCTIONS)
    for add in (add_recall, add_expand, add_remember, add_forget, add_status, add_briefing, add_resources):
        add(mcp, backend)
    mcp.middleware.extend([PlainErrors(), NeededTools(backend)])
    return mcp
