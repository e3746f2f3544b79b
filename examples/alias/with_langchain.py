"""A chat model of LangChain with canonical spelling.

pip install langchain-openai
MODEL=... OPENAI_BASE_URL=http://localhost:8001/v1 python examples/alias/with_langchain.py
"""

import os

import httpx2
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from hf_alpha import CanonicalTransport


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


model = ChatOpenAI(
    model=os.environ["MODEL"], base_url=os.environ["OPENAI_BASE_URL"],
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
    http_client=httpx2.Client(transport=CanonicalTransport({"tool": {"rule": "tools"}})),
)  # fmt: skip
answer = model.bind_tools([get_weather]).invoke("What is the weather in Paris?")
print(answer.content, [(call["name"], call["args"]) for call in answer.tool_calls])
