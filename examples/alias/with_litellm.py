"""LiteLLM with canonical spelling: as a client of the gateway, or with the transport in one line.

    pip install litellm
    hf-alpha serve --upstream http://localhost:8001/v1 --names '{rule: tools}'
    MODEL=... OPENAI_BASE_URL=http://127.0.0.1:8000/v1 python examples/alias/with_litellm.py

Without a gateway, OPENAI_BASE_URL is the model's own server and TRANSPORT=1.
"""

import os

import httpx2
import litellm

from hf_alpha import CanonicalTransport

if os.environ.get("TRANSPORT"):
    transport = CanonicalTransport({"tool": {"rule": "tools"}})
    litellm.client_session = httpx2.Client(transport=transport)

tool = {
    "name": "weather.now",
    "description": "Return the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city."}},
    },
}
answer = litellm.completion(
    model=f"openai/{os.environ['MODEL']}",
    api_base=os.environ["OPENAI_BASE_URL"],
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
    messages=[{"role": "user", "content": "What is the weather in Paris?"}],
    tools=[{"type": "function", "function": tool}],
)
message = answer.choices[0].message
print(message.content, *[(c.function.name, c.function.arguments) for c in message.tool_calls or ()])
