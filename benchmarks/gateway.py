"""The gateway: what it adds to a request and to a token of a stream, and what it holds over time.

    python benchmarks/gateway.py --out gateway

`hf-alpha serve --upstream` stands before a server that says the last message again. Both are asked
in turns, by one client or by a hundred at once: a chat of about 4 KB with ten tools. Then a chat of
5 MB with 500 tools comes, and others ask meanwhile. Each side is a process of its own.
"""

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from measure import finish, in_turns, parser_of, table, three

AT_ONCE, TOKENS = 100, 100
WAIT = httpx2.Timeout(300)


async def echo(request: Request) -> JSONResponse | StreamingResponse:
    """Say the last message again, at once or word by word."""
    body = await request.json()
    said = body["messages"][-1]["content"]
    if not body.get("stream"):
        message = {"role": "assistant", "content": said}
        return JSONResponse(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        )

    async def events() -> Any:
        words = [f"{word} " for word in said.split()]
        for place, word in enumerate(words, start=1):
            end = "stop" if place == len(words) else None
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": end}
            yield f"data: {json.dumps({'choices': [choice]})}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


def chat(number: int, bytes_of_text: int, tools: int, stream: bool = False) -> dict[str, Any]:
    """A chat about tools, whose names no other chat has; the last message has `TOKENS` words."""
    names = [f"tool_{number}_{place}" for place in range(tools)]
    schema = {"type": "object", "properties": {"city": {"type": "string", "description": "Where"}}}
    functions = [{"name": n, "description": f"Ask {n}.", "parameters": schema} for n in names]
    words = [names[place % tools] if place % 10 == 0 else "word" for place in range(TOKENS)]
    text = " ".join(words)
    before = [{"role": "user", "content": text} for _ in range(bytes_of_text // len(text))]
    messages = [*before, {"role": "user", "content": text}]
    listed = [{"type": "function", "function": function} for function in functions]
    return {"model": "m", "messages": messages, "tools": listed, "stream": stream}


def delta_of(line: str) -> str:
    """What a line of a stream adds."""
    chunk = json.loads(line[6:]) if line.startswith("data: {") else {}
    return "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))


async def ask(client: httpx2.AsyncClient, body: dict[str, Any]) -> float:
    """Seconds of an answer, which has to be the last message with its names."""
    began, lines, said = time.perf_counter(), list[str](), body["messages"][-1]["content"]
    if body["stream"]:
        async with client.stream("POST", "/chat/completions", json=body) as answer:
            lines = [line async for line in answer.aiter_lines()]
        got = "".join(map(delta_of, lines))
    else:
        answer = await client.post("/chat/completions", json=body)
        assert answer.is_success, f"{answer}: {answer.text}"
        got = answer.json()["choices"][0]["message"]["content"]
    assert got.split() == said.split(), f"{answer}: an answer with other names: {lines or got}"
    return time.perf_counter() - began


def batch(url: str, bodies: Sequence[dict[str, Any]], at_once: int) -> None:
    """Ask all, so many at once."""

    async def run() -> None:
        limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        waiting = iter(bodies)
        async with httpx2.AsyncClient(base_url=url, timeout=WAIT, limits=limits) as client:

            async def one_client() -> None:
                for body in waiting:
                    await ask(client, body)

            await asyncio.gather(*[one_client() for _ in range(at_once)])

    asyncio.run(run())


def longest_wait(url: str, large: dict[str, Any] | None) -> tuple[float, float]:
    """The longest wait of one who asks again and again, and the seconds of a large request."""

    async def run() -> tuple[float, float]:
        async with httpx2.AsyncClient(base_url=url, timeout=WAIT) as client:
            body, waits = chat(0, 0, 10), []
            await ask(client, body)
            work = asyncio.create_task(ask(client, large) if large else asyncio.sleep(3, 3.0))
            while not work.done():
                await asyncio.sleep(0.05)
                waits.append(await ask(client, body))
            return max(waits), await work

    return asyncio.run(run())


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended with the block."""
    made = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        yield made
    finally:
        made.terminate()
        made.wait(30)


def tree(pid: int) -> list[int]:
    """A process and all that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text(encoding="utf-8").split():
            found += tree(int(child))
    return found


def used_by(pid: int) -> float:
    """Seconds of a processor that a process has used, and those that it started."""
    seconds = 0
    for one in tree(pid):
        text = Path(f"/proc/{one}/stat").read_text(encoding="utf-8")
        seconds += sum(map(int, text.rpartition(")")[2].split()[11:13]))
    return seconds / os.sysconf("SC_CLK_TCK")


def held_by(pid: int) -> tuple[float, float]:
    """Megabytes that a process holds, and those that it started hold together."""

    def held(one: int) -> float:
        status = Path(f"/proc/{one}/status").read_text(encoding="utf-8")
        return int(re.findall(r"^VmRSS:\s*(\d+) kB$", status, re.MULTILINE)[0]) * 1024 / 1e6

    first, *others = map(held, tree(pid))
    return first, sum(others)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, or be the server behind."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=5000, help="in which memory is watched")
    parser.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.echo:
        app = Starlette(routes=[Route("/v1/chat/completions", echo, methods=["POST"])])
        uvicorn.run(app, port=options.echo, log_level="error")
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    direct = f"http://127.0.0.1:{port}/v1"
    serve = ("-m", "hf_alpha", "serve", "--upstream", direct, "--names", "{rule: tools}")
    with process(__file__, "--echo", str(port)), process(*serve, "--port", "0") as gateway:
        assert gateway.stdout is not None
        url = gateway.stdout.readline().split()[0]
        while True:
            try:
                httpx2.get(direct)
                break
            except httpx2.TransportError:
                time.sleep(0.1)
        measure({"direct": direct, "gateway": url}, gateway.pid, options, argv)


def measure(urls: dict[str, str], pid: int, options: Any, argv: Sequence[str] | None) -> None:
    """Ask both sides in turns, then the gateway alone for long."""
    data, lines = dict[str, Any](), list[list[str]]()
    for what, at_once, number in (
        ("whole", 1, 50),
        ("stream", 1, 20),
        ("whole", AT_ONCE, 100),
        ("stream", AT_ONCE, 100),
    ):
        bodies = [chat(place, 3000, 10, what == "stream") for place in range(number)]
        sides = {}
        for side, url in urls.items():
            sides[side] = partial(batch, url, bodies, at_once)
        used = used_by(pid)
        seconds = in_turns(sides, options.rounds)
        processor = 1000 * (used_by(pid) - used) / number / (options.rounds + 1)
        times = {side: [1000 * s / number for s in taken] for side, taken in seconds.items()}
        added = [b - a for a, b in zip(times["direct"], times["gateway"], strict=True)]
        data[f"{what}, {at_once} at once"] = {**times, "processor of the gateway": processor}
        shown = [three(one) for one in (times["direct"], times["gateway"], added)]
        lines.append([what, f"{at_once}", *shown, f"{processor:.2f}"])
    large = chat(1, 5_000_000, 500)
    waits = {"alone": [], "beside 5 MB": [], "the 5 MB": []}  # type: dict[str, list[float]]
    for _ in range(options.rounds):
        waits["alone"].append(longest_wait(urls["gateway"], None)[0])
        longest, taken = longest_wait(urls["gateway"], large)
        waits["beside 5 MB"].append(longest)
        waits["the 5 MB"].append(taken)
    memory = {0: held_by(pid)}
    step = max(options.requests // 10, 1)
    for start in range(0, options.requests, step):
        bodies = [chat(place, 3000, 10, place % 2 == 0) for place in range(start, start + step)]
        batch(urls["gateway"], bodies, AT_ONCE)
        memory[start + step] = held_by(pid)
    data |= {"longest waits": waits, "memory": memory}
    columns = [
        "answer of 100 tokens",
        "at once",
        "direct, ms",
        "through the gateway, ms",
        "added, ms",
    ]
    text = table([*columns, "its processor, ms"], lines)
    text += "\n\n" + table(
        ["the longest wait of one who asks again and again", "seconds"],
        [[name, three(one)] for name, one in waits.items()],
    )
    text += "\n\n" + table(
        ["chats so far, 100 at once, half of them streams", *(f"{n:,}" for n in memory)],
        [
            ["MB that the gateway holds", *(f"{held:.1f}" for held, _ in memory.values())],
            ["MB of processes that spell", *(f"{others:.1f}" for _, others in memory.values())],
        ],
    )
    finish(text, data, options.out, argv)


if __name__ == "__main__":
    main()
