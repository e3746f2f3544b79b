"""An agent of Pydantic AI with canonical spelling.

pip install 'pydantic-ai-slim[openai]'
MODEL=... OPENAI_BASE_URL=http://localhost:8001/v1 python examples/alias/with_pydantic_ai.py
"""

import os

import httpx2
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from hf_alpha import CanonicalTransport

http = httpx2.AsyncClient(transport=CanonicalTransport({"tool": {"rule": "tools"}}))
key = os.environ.get("OPENAI_API_KEY", "none")
provider = OpenAIProvider(base_url=os.environ["OPENAI_BASE_URL"], api_key=key, http_client=http)
agent = Agent(OpenAIChatModel(os.environ["MODEL"], provider=provider))


@agent.tool_plain
def get_weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: its name.
    """
    return f"rain in {city}"


print(agent.run_sync("What is the weather in Paris?").output)
