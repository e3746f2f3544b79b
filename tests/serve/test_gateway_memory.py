"""The gateway's memory does not grow with what it was asked, a hundred at once."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai_chats import echoing

ROUND = 500


def held(pid):
    """Megabytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"(?m)^VmRSS:\s*(\d+) kB$", status)[0]) / 1024


async def asked(url, first):
    """Ask so many times, a hundred at once, half of them streams; each has names of its own."""

    async def one(client, number):
        name = f"tool.{number}"
        tool = {"type": "function", "function": {"name": name, "description": "A tool."}}
        text = f"Call {name}, no other. " * 40
        how = {"model": "m", "messages": [{"role": "user", "content": text}], "tools": [tool]}
        if number % 2:
            answer = await client.chat.completions.create(**how)
            return answer.choices[0].message.content == text
        chunks = await client.chat.completions.create(**how, stream=True)
        return "".join([c.choices[0].delta.content or "" async for c in chunks]) == text

    async with AsyncOpenAI(api_key="k", base_url=url, timeout=120) as client:
        for start in range(first, first + ROUND, 100):
            got = await asyncio.gather(*[one(client, start + n) for n in range(100)])
            assert all(got)


@pytest.mark.slow
def test_memory_is_flat():
    with echoing() as echo:
        options = ["serve", "--upstream", echo.url, "--names", "{rule: tools}", "--port", "0"]
        command = [sys.executable, "-m", "hf_alpha", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            try:
                url = process.stdout.readline().split()[0]
                asyncio.run(asked(url, 0))
                before = held(process.pid)
                for number in range(1, 4):
                    asyncio.run(asked(url, number * ROUND))
                assert held(process.pid) < before + 3
            finally:
                process.terminate()
        assert len(echo.seen) == 4 * ROUND
        assert not any(re.search(rb"tool\.\d", data) for *_, data in echo.seen)
