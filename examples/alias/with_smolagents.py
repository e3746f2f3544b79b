"""An agent of smolagents whose answer does not depend on what its tools are called.

pip install 'smolagents[openai]'
MODEL=... OPENAI_BASE_URL=http://localhost:8001/v1 python examples/alias/with_smolagents.py
"""

import os

import httpx2
from smolagents import OpenAIModel, Tool, ToolCallingAgent

from hf_alpha import CanonicalTransport


def weather(name: str) -> Tool:
    """Return a tool with a name of your choice."""

    class Weather(Tool):
        description = "Returns the weather of a city."
        inputs = {"city": {"type": "string", "description": "Name of the city."}}  # noqa: RUF012
        output_type = "string"

        def forward(self, city: str) -> str:
            return f"rain in {city}"

    Weather.name = name
    return Weather()


http = httpx2.Client(transport=CanonicalTransport({"tool": {"rule": "tools"}}))
model = OpenAIModel(
    os.environ["MODEL"], os.environ["OPENAI_BASE_URL"], os.environ.get("OPENAI_API_KEY", "none"),
    client_kwargs={"http_client": http},
)  # fmt: skip
for name in ("get_weather", "delete_all_files"):  # to the model, both are tool_b
    agent = ToolCallingAgent([weather(name)], model, verbosity_level=0, max_steps=3)
    print(name, "->", agent.run("What is the weather in Paris?"))
