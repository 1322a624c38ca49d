"""The reference of MCP, from what the server lists."""

import asyncio
from typing import cast

from docs_site.reference.tables import code, fields_of, prose, table
from esker.server.tools.backend import Backend
from esker.server.tools.instructions import INSTRUCTIONS
from esker.server.tools.mcp_server import EskerMcp, make_mcp


def tools_page() -> str:
    """Return the page with every tool, resource and prompt."""
    return asyncio.run(_page(make_mcp(cast("Backend", None))))


async def _page(mcp: EskerMcp) -> str:
    heads = ("argument", "type", "default", "meaning")
    tools = [
        f"## {tool.name}\n\n{prose(tool.description or '')}\n\n{table(heads, fields_of(tool.input_schema))}\n"
        for tool in await mcp.list_tools()
    ]
    resources = [(code(each.uri_template), each.description or "") for each in await mcp.list_resource_templates()]
    prompts = [
        (code(each.name), ", ".join(code(given.name) for given in each.arguments or ()), each.description or "")
        for each in await mcp.list_prompts()
    ]
    return f"""# Tools

Every MCP tool, resource and prompt, as clients see them. [HTTP and MCP](../api.md#mcp) says who sees which, and how
errors are answered.

{"".join(tools)}
## Resources

{table(("address", "content"), resources)}
## Prompts

{table(("name", "arguments", "meaning"), prompts)}
## Instructions

The server gives every client these instructions, which never change:

```text
{INSTRUCTIONS}
```
"""
