"""Tools of an MCP server, with names that OpenAI's API refuses: long ones, with dots and slashes.

pip install mcp openai
MODEL=... OPENAI_BASE_URL=http://localhost:8001/v1 python examples/alias/with_mcp.py
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from openai import AsyncOpenAI

from hf_alpha import CanonicalTransport

SERVER = Path(__file__).with_name("mcp_server.py")


async def main() -> None:
    """Ask a model about a file, and call what it calls."""
    http = httpx2.AsyncClient(transport=CanonicalTransport({"tool": {"rule": "tools"}}))
    server = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with Client(stdio_client(server)) as mcp, AsyncOpenAI(http_client=http) as model:
        tools = [{"type": "function", "function": {"name": tool.name, "parameters":
                  tool.input_schema, "description": tool.description}}
                 for tool in (await mcp.list_tools()).tools]  # fmt: skip
        messages = [{"role": "user", "content": "What is in notes.txt?"}]
        asked = {"model": os.environ["MODEL"], "messages": messages, "tools": tools}
        answer = await model.chat.completions.create(**asked)
        for call in answer.choices[0].message.tool_calls or ():
            name, arguments = call.function.name, json.loads(call.function.arguments)
            print(name, arguments, (await mcp.call_tool(name, arguments)).content[0].text)


asyncio.run(main())
