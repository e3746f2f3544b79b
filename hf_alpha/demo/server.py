"""The page, in Gradio, with an interface for programs; and its server, with limits.

The limits are of a request's size, of those that wait, and of who may ask.
"""

import os
from collections.abc import Mapping
from typing import Any

import gradio

from hf_alpha.demo.choices import MAX_ANSWERS, MAX_CHARACTERS, Choice
from hf_alpha.demo.drawing import STYLE, draw_renamed, draw_solution

MAX_BODY = 64 * 1024
"""Bytes of a request."""
MAX_WAITING = 64
"""Requests that wait for an answer; further ones are refused."""
LOOPBACK = "127.0.0.1"
TITLE = "Names are only names"
INTRODUCTION = f"""# {TITLE}
A model or a solver answers; the task's check says whether the answer is right, and why.
**Rename** asks again with other names.
"""


def build_page(choices: Mapping[str, Choice]) -> Any:
    """Return the page as `gradio.Blocks`; one problem is answered at a time."""
    first_of_tasks: dict[str, Choice] = {}
    for choice in choices.values():
        first_of_tasks.setdefault(choice.task.name, choice)
    examples = [
        [text, choice.name]
        for choice in first_of_tasks.values()
        for text in choice.task.samples or (choice.task.example,)
        if text
    ]

    def solve(
        problem: str, model: str, answers: int, names: str = ""
    ) -> tuple[str, dict[str, Any]]:
        """Answer a problem: for people, and what docs/solve.schema.json describes."""
        solution = choices[model].solve(problem or "", answers, names or "")
        return draw_solution(choices[model], solution), solution.record()

    def rename(problem: str, model: str, answers: int, names: str = "") -> str:
        renamed = choices[model].rename(problem or "", answers, names or "")
        return draw_renamed(choices[model], renamed)

    with gradio.Blocks(
        title=f"hf_alpha: {TITLE}", analytics_enabled=False, fill_width=True
    ) as page:
        gradio.Markdown(INTRODUCTION)
        problem = gradio.Textbox(
            examples[0][0] if examples else "", label="Problem", lines=2, max_length=MAX_CHARACTERS
        )
        with gradio.Row() as row:
            model = gradio.Dropdown([*choices], label="Who answers")
            answers = gradio.Slider(1, MAX_ANSWERS, step=1, precision=0, label="Answers")
        with gradio.Row():
            solve_button = gradio.Button("Solve", variant="primary")
            rename_button = gradio.Button("Rename")
        reply = gradio.HTML(elem_id="reply")
        record = gradio.JSON(visible=False)
        inputs = [problem, model, answers]
        if classes := {kind: None for one in choices.values() for kind in one.names_by_row}:
            label = f"Names in it: zoe,max or {next(iter(classes))}=zoe,max"
            with row:
                inputs.append(gradio.Textbox("", label=label, max_length=MAX_CHARACTERS))
        solve_button.click(solve, inputs, [reply, record], concurrency_id="model")
        hidden: dict[str, Any] = {"api_visibility": "private"}
        rename_button.click(rename, inputs, reply, concurrency_id="model", **hidden)
        if examples:
            gradio.Examples(examples, [problem, model], examples_per_page=len(examples), **hidden)
    return page


class SmallRequests:
    """Refuses requests that are too large, before they are read, and uploads of files (in ASGI)."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.exceptions import HTTPException
        from starlette.responses import PlainTextResponse

        too_large, size = f"a request has at most {MAX_BODY:,} bytes\n", 0

        async def limited() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY:  # and its header did not say so
                raise HTTPException(413, too_large)
            return message

        length = dict(scope.get("headers", ())).get(b"content-length", b"0")
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"].rstrip("/").endswith("/upload"):
            await PlainTextResponse("this page takes no files\n", 404)(scope, receive, send)
        elif not length.isdigit() or int(length) > MAX_BODY:
            await PlainTextResponse(too_large, 413)(scope, receive, send)
        else:
            await self.app(scope, limited, send)


def serve(choices: Mapping[str, Choice], port: int | None = None, host: str = LOOPBACK) -> Any:
    """Serve the page, by default at the first free port from 7860 on.

    Args:
        host: whom the server listens to, by default this machine alone; "0.0.0.0" for everyone.

    Returns:
        The page, `gradio.Blocks`: `local_url` is its address, `block_thread` waits for Ctrl-C, and
        `close` stops the server.

    Raises:
        OSError: the port is taken.
    """
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # or it asks for its latest version
    # Nor may a page from elsewhere reach this one, by a name that it has pointed at this machine.
    hosts = [LOOPBACK, "localhost"] if host == LOOPBACK else ["*"]
    layers = [Middleware(TrustedHostMiddleware, allowed_hosts=hosts), Middleware(SmallRequests)]
    page = build_page(choices)
    page.queue(max_size=MAX_WAITING, default_concurrency_limit=1, api_open=False)  # none passes by
    try:
        page.launch(
            server_name=host, server_port=port, prevent_thread_lock=True, quiet=True,
            show_error=True, ssr_mode=False, share=False, css=STYLE, footer_links=["api"],
            app_kwargs={"middleware": layers},
        )  # fmt: skip
    except OSError:
        where = "the ports from 7860 on are" if port is None else f"port {port} is"
        raise OSError(f"{where} taken: name another by --port") from None
    return page
