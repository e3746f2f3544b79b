"""An MCP server with two tools, which `with_mcp.py` starts; OpenAI's API refuses their names."""

import logging

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")
NOTES = {"notes.txt": "milk, bread"}


@server.tool("files/read.text", description="Return the text of a file.")
def read(path: str) -> str:
    """Return a note."""
    return NOTES.get(path, f"there is no {path!r}, only {', '.join(NOTES)}")


@server.tool(
    "files/" + "with_a_name_that_tells_the_whole_story_" * 2, description="List all files."
)
def listed() -> str:
    """Return all names."""
    return ", ".join(NOTES)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # that a name has a slash, which clients may not like
    server.run("stdio")
